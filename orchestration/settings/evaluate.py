"""Options of `march evaluate`, and `evaluation` of a retraining's job, as a typed job."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from orchestration.settings import InputPath
from orchestration.settings.sampler import BY_MODEL, audit_sampler, engine_servers
from pipeline.evaluate.plan import GENERATION, JUDGING, EvaluationJob
from reward.assignments import assign
from reward.config import SamplerConfig, Settings

_MLFLOW_SCHEMES = ("models:/", "runs:/", "mlflow-artifacts:/")


class JudgeSettings(Settings):
    """The server that judges."""

    url: str = Field(
        pattern=r"^https?://[^@?#]+$",
        description="OpenAI-compatible: http://host:port/v1, without a secret in it: that is `key_env`'s.",
    )
    model: str
    key_env: str = Field(default="OPENAI_API_KEY", description="Variable that holds its key.")


class EvaluationSettings(Settings):
    """How models are evaluated: options of `march evaluate`, and keys of a job of `march retrain`."""

    benchmarks: dict[str, InputPath] = Field(min_length=1, description="Name and official files.")
    judge: JudgeSettings | None = Field(default=None, description="None where rules judge.")
    style: Literal["plain", "cot", "10-shot"] = "plain"
    limit: int | None = Field(default=None, ge=1)
    generations: int = Field(default=8, ge=1, le=128)
    max_tokens: int = Field(default=8192, ge=1)
    seed: int = Field(default=0, ge=0, description="Of generations, judgements and audits.")
    audit: Literal["lexical", "model", "none"] = "lexical"
    concurrency: int = Field(default=16, ge=1, le=1024)
    timeout_s: float = Field(default=600.0, gt=0, description="For one request to model or judge.")
    overrides: tuple[str, ...] = Field(
        default=(), description="KEY=VALUE, as `march evaluate --set` takes them."
    )


def evaluation_job(
    given: EvaluationSettings, model: str, *, model_name: str | None = None, **run: object
) -> EvaluationJob:
    """Builds the job.

    Args:
        given: What is evaluated, and how.
        model: A URL, a folder or name, or an MLflow URI.
        model_name: The model's name, with a URL.
        **run: Further keys of `EvaluationJob`: `out`, `logs`, `only`.

    Raises:
        ValueError: a setting cannot be used.
    """
    under_test, weights_sha256 = _model(model, model_name)
    judge: dict[str, Any] | None = None
    if given.judge:
        judge = engine_servers(given.judge.url, given.judge.model).model_dump()
        judge |= {"api_key_env": given.judge.key_env, "timeout_s": given.timeout_s}
    tree: dict[str, Any] = {
        **given.model_dump(include={"benchmarks", "style", "limit", "concurrency", "audit"}),
        **run,
        "num_generations": given.generations,
        "model": {**under_test.model_dump(), "timeout_s": given.timeout_s},
        "weights_sha256": weights_sha256,
        "judge": judge,
        "generation": {**GENERATION.model_dump(), "max_tokens": given.max_tokens, "seed": given.seed},
        "judging": {**JUDGING.model_dump(), "seed": given.seed},
        "audit_settings": BY_MODEL | {"seed": given.seed} if given.audit == "model" else {},
    }
    return EvaluationJob.model_validate(assign(tree, given.overrides))


def judge_settings(url: str | None, name: str | None) -> JudgeSettings | None:
    """The judge of `--judge` and `--judge-model`; None without one.

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
    return JudgeSettings(url=url, model=name)


def benchmark_paths(texts: Sequence[str]) -> dict[str, str]:
    """Benchmarks and their files, from "name=path" each.

    Raises:
        ValueError: one is not written so, or is given twice.
    """
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
        from pipeline.models.sources import fetch_model
        from pipeline.record.tracking import registry_address, usable_database

        server = registry_address(os.environ.get("MLFLOW_TRACKING_URI"))
        with usable_database(server):
            model = str(fetch_model(model, server=server))
    config = audit_sampler(model, model_name)
    if config.kind != "vllm" or not (folder := Path(config.model)).is_dir():
        return config, None
    from reward.offline.files import weights_sha256

    return config, weights_sha256(folder)
