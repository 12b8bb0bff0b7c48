"""An OpenAI-compatible engine, vLLM's as a rule: it lists its models and really writes a token."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestration.doctor.asking import Answer, UnansweredError, ask
from orchestration.doctor.records import Finding, failed, ok, skipped, warning

KEY_VARIABLE = "OPENAI_API_KEY"
_NAME, _ANSWER = "engine", "engine's answer"
_PROMPT = "1 2 3"


@dataclass(frozen=True)
class EngineFacts:
    """What the server said; None for what was not asked."""

    url: str
    models: Answer | None = None
    version: Answer | None = None  # of vLLM alone
    completion: Answer | None = None
    development: Answer | None = None  # what only VLLM_SERVER_DEV_MODE opens
    problem: str | None = None
    model: str | None = None


def gather_engine(url: str, *, timeout_s: float) -> EngineFacts:
    """Asks for its models, and for one token of the first."""
    base = url.removesuffix("/v1")
    key = os.environ.get(KEY_VARIABLE)
    how: dict[str, Any] = {
        "timeout_s": timeout_s,
        "headers": {"Authorization": f"Bearer {key}"} if key else None,
    }
    try:
        models = ask(f"{base}/v1/models", **how)
        version, development = ask(f"{base}/version", **how), ask(f"{base}/server_info", **how)
    except UnansweredError as error:
        return EngineFacts(url, problem=str(error))
    model = _model(models)
    facts = EngineFacts(url, models, version, development=development, model=model)
    if model is None:
        return facts
    body = {"model": model, "prompt": _PROMPT, "max_tokens": 1, "temperature": 0, "return_token_ids": True}
    try:
        completion = ask(f"{base}/v1/completions", body=body, **how)
    except UnansweredError as error:
        return EngineFacts(url, models, version, development=development, model=model, problem=str(error))
    return EngineFacts(url, models, version, completion, development, model=model)


def check_engine(facts: EngineFacts, *, ours: str | None) -> Iterator[Finding]:
    """Judges it.

    Args:
        facts: What it said.
        ours: vLLM's version here; None where there is none.
    """
    models = facts.models
    if models is None:
        yield failed(_NAME, facts.problem or "did not answer", "start it, or fix --engine")
        return
    if models.status in (401, 403):
        yield failed(_NAME, f"{facts.url}: HTTP {models.status}, the key is refused", f"fix {KEY_VARIABLE}")
        return
    if facts.model is None:
        said = f"{facts.url}: lists no model (HTTP {models.status}, {models.line})"
        yield failed(_NAME, said, "give the address of an OpenAI-compatible server; see its log")
        return
    yield _version(facts, ours)
    yield _answer(facts)
    if facts.development is not None and facts.development.is_good:
        fix = "unset VLLM_SERVER_DEV_MODE, or let nobody but its own trainer reach it"
        yield warning("engine's door", "its development endpoints are open to all who reach it", fix)


def check_no_engine() -> Finding:
    """Where none was named."""
    return skipped(_NAME, "no --engine URL was given")


def _version(facts: EngineFacts, ours: str | None) -> Finding:
    assert facts.models is not None
    served = {str(one.get("id")): one.get("max_model_len") for one in _listed(facts.models)}
    shown = ", ".join(f"{name} ({length:,} tokens)" if length else name for name, length in served.items())
    theirs = facts.version.read().get("version") if facts.version else None
    found = f"{facts.url}: {shown}; {f'vLLM {theirs}' if theirs else 'no vLLM, or an old one'}"
    if ours and theirs and theirs.partition("+")[0] != ours:
        return warning(
            _NAME, f"{found}; here {ours}", "run one version; its samples may differ from training's"
        )
    return ok(_NAME, found)


def _answer(facts: EngineFacts) -> Finding:
    answer = facts.completion
    if answer is None:
        fix = "its engine hangs or is full: look at its log and at vllm:num_requests_waiting"
        return failed(_ANSWER, facts.problem or "none", fix)
    if answer.status == 404:
        return skipped(_ANSWER, "it has no /v1/completions to try")
    if not answer.is_good:
        return failed(_ANSWER, f"HTTP {answer.status}: {answer.line}", "see the engine's log")
    choices = answer.read().get("choices") or [{}]
    ids = "with token ids" if choices[0].get("token_ids") else "without token ids, so no trajectories"
    return ok(_ANSWER, f"a token in {answer.took_s * 1000:,.0f} ms, {ids}")


def _model(models: Answer) -> str | None:
    listed = _listed(models) if models.is_good else []
    return str(listed[0].get("id")) if listed else None


def _listed(models: Answer) -> list[dict[str, Any]]:
    found = models.read().get("data")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
