"""Options of `march evaluate` as a typed job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.settings import audit_sampler
from pipeline.evaluate.plan import EvaluationJob
from reward.config import LocalSamplerConfig, OpenAISamplerConfig

# As `march audit` has it: what the auditing model writes is bound to its format, so that it parses.
_AUDIT_BY_MODEL = {"structured": "all"}
_MLFLOW_SCHEMES = ("models:/", "runs:/", "mlflow-artifacts:/")


def evaluation_job(
    model: str,
    benchmarks: Sequence[str],
    *,
    model_name: str | None,
    judge: str | None,
    judge_model: str | None,
    judge_key_env: str,
    timeout_s: float,
    cache: Path | None,
    use_cache: bool,
    sampling: Mapping[str, float | int | None],
    judging: Mapping[str, float | int],
    max_tokens: int,
    seed: int,
    settings: Mapping[str, Any],
) -> EvaluationJob:
    """Builds the job.

    Args:
        model: A URL, a folder or name, or an MLflow URI.
        benchmarks: "name=path" each.
        model_name: The model's name, with a URL.
        judge: URL of the judge's server.
        judge_model: The judge's name there.
        judge_key_env: Environment variable that holds the judge's key.
        timeout_s: For one request.
        cache: Where judges' replies are kept; None for the user's own place.
        use_cache: Whether they are kept at all.
        sampling: Temperature, top-p and top-k of the generations.
        judging: Temperature and length of the judgements.
        max_tokens: Of one generation.
        seed: Of both.
        settings: Other keys of `EvaluationJob`.

    Raises:
        ValueError: an option cannot be used.
    """
    under_test, weights_sha256 = _model(model, model_name, timeout_s)
    return EvaluationJob.model_validate(
        {
            **settings,
            "benchmarks": [_source(text) for text in benchmarks],
            "model": under_test.model_dump(),
            "weights_sha256": weights_sha256,
            "judge": _judge(judge, judge_model, judge_key_env, timeout_s),
            "generation": {**sampling, "max_tokens": max_tokens, "seed": seed},
            "judging": {**judging, "seed": seed},
            "audit_settings": _AUDIT_BY_MODEL | {"seed": seed} if settings["audit"] == "model" else {},
            "cache": (cache or _user_cache()) if use_cache else None,
        }
    )


def _source(text: str) -> dict[str, str]:
    name, separator, path = text.partition("=")
    if not separator or not name or not path:
        raise ValueError(f"--benchmark {text!r}: write it as NAME=PATH, such as ragtruth=data/ragtruth")
    return {"name": name, "path": path}


def _model(
    model: str, model_name: str | None, timeout_s: float
) -> tuple[OpenAISamplerConfig | LocalSamplerConfig, str | None]:
    """How the model is sampled, and what its weights are when they lie here."""
    if model.startswith(_MLFLOW_SCHEMES):
        from pipeline.evaluate.track import fetch_model

        model = str(fetch_model(model))
    config = audit_sampler(model, model_name)
    assert config.kind != "ray", "no option names a Ray cluster"
    folder = Path(model)
    if config.kind == "vllm" and folder.is_dir():
        from pipeline.evaluate.weights import weights_sha256

        return config.model_copy(update={"timeout_s": timeout_s}), weights_sha256(folder)
    return config.model_copy(update={"timeout_s": timeout_s}), None


def _judge(url: str | None, name: str | None, key_env: str, timeout_s: float) -> dict[str, Any] | None:
    if url is None:
        if name is not None:
            raise ValueError(f"--judge-model: {name!r} is for a judge; give its server with --judge")
        return None
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"--judge: {url!r} is no URL; give an OpenAI-compatible server, http://host:port/v1")
    if name is None:
        raise ValueError(f"--judge-model: missing; say which model {url} shall judge with")
    config = audit_sampler(url, name)
    return {**config.model_dump(), "api_key_env": key_env, "timeout_s": timeout_s}


def _user_cache() -> Path:
    """Where a user's own caches are (XDG)."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "march" / "judge.sqlite"
