"""Options of `march evaluate` as a typed job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.settings.sampler import audit_sampler, engine_servers
from pipeline.evaluate.plan import EvaluationJob
from reward.assignments import assign
from reward.config import OpenAISamplerConfig, SamplerConfig, SamplingSettings

# As `march audit` has it: what the auditing model writes is bound to its format, so that it parses.
_AUDIT_BY_MODEL = {"structured": "all"}
_MLFLOW_SCHEMES = ("models:/", "runs:/", "mlflow-artifacts:/")


def evaluation_job(
    model: str,
    benchmarks: Sequence[str],
    *,
    model_name: str | None,
    judge: OpenAISamplerConfig | None,
    seed: int,
    named: Mapping[str, Any],
    assignments: Sequence[str],
    timeout_s: float = 600.0,
    max_tokens: int | None = None,
) -> EvaluationJob:
    """Builds the job.

    Args:
        model: A URL, a folder or name, or an MLflow URI.
        benchmarks: "name=path" each.
        model_name: The model's name, with a URL.
        judge: The judge's server.
        seed: Of generations, judgements and audits.
        named: Further keys of `EvaluationJob`.
        assignments: "key=value" over them, dots for parts of a key, values in YAML.
        timeout_s: For one request to model or judge.
        max_tokens: Of one generation; None: the paper's.

    Raises:
        ValueError: an option cannot be used.
    """
    under_test, weights_sha256 = _model(model, model_name)
    bound = {} if max_tokens is None else {"max_tokens": max_tokens}
    tree: dict[str, Any] = {
        **named,
        "benchmarks": _sources(benchmarks),
        "model": {**under_test.model_dump(), "timeout_s": timeout_s},
        "weights_sha256": weights_sha256,
        "judge": {**judge.model_dump(), "timeout_s": timeout_s} if judge else None,
        "generation": {**_defaults("generation"), **bound, "seed": seed},
        "judging": {**_defaults("judging"), "seed": seed},
        "audit_settings": _AUDIT_BY_MODEL | {"seed": seed} if named.get("audit") == "model" else {},
    }
    return EvaluationJob.model_validate(assign(tree, assignments))


def judge_config(
    url: str | None, name: str | None, *, key_env: str = "OPENAI_API_KEY"
) -> OpenAISamplerConfig | None:
    """The judge's server; None without one.

    Raises:
        ValueError: a URL without a name, a name without a URL, or something that is no URL.
    """
    if url is None:
        if name is not None:
            raise ValueError(f"--judge-model: {name!r} is for a judge; give its server with --judge")
        return None
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"--judge: {url!r} is no URL; give an OpenAI-compatible server, http://host:port/v1")
    if name is None:
        raise ValueError(f"--judge-model: missing; say which model {url} shall judge with")
    return engine_servers(url, name).model_copy(update={"api_key_env": key_env})


def _defaults(key: str) -> dict[str, Any]:
    """How a job samples where nothing else is said."""
    settings = EvaluationJob.model_fields[key].default
    assert isinstance(settings, SamplingSettings)
    return settings.model_dump()


def _sources(texts: Sequence[str]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not name or not path:
            raise ValueError(f"--benchmark {text!r}: write it as NAME=PATH, such as ragtruth=data/ragtruth")
        if name in sources:
            raise ValueError(f"--benchmark {text!r}: {name} is given twice; leave it out once")
        sources[name] = path
    return sources


def _model(model: str, model_name: str | None) -> tuple[SamplerConfig, str | None]:
    """How the model is sampled, and what its weights are when they lie here."""
    if model.startswith(_MLFLOW_SCHEMES):
        from pipeline.evaluate.track import fetch_model

        model = str(fetch_model(model))
    config, folder = audit_sampler(model, model_name), Path(model)
    if config.kind != "vllm" or not folder.is_dir():
        return config, None
    from pipeline.evaluate.weights import weights_sha256

    return config, weights_sha256(folder)
