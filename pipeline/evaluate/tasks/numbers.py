"""The MARCH audit of an answer: do its numbers come from its documents?

By lookup, or by the model in the role `grader`, which proposes, checks and votes. The claims stand in the
score's metadata with their places in the answer and what was found, so that Inspect's viewer shows them. An
answer without numbers is neither faithful nor unfaithful; an audit that failed is no score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from pipeline.evaluate.benchmarks.replies import judged_text
from pipeline.evaluate.numeric_faithfulness import Auditor, numeric_scores
from pipeline.evaluate.tasks.grader import grader_sampler
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import asked_of, generations_of
from pipeline.evaluate.tasks.scores import (
    AUDITOR,
    FIGURES,
    KIND,
    VERDICT,
    Kind,
    as_values,
    unanswered,
)
from reward.auditor import audit
from reward.config import AuditConfig
from reward.roles.prompts import load_prompts
from reward.types import ClaimState, ClaimVerdict, Outcome, Verdict

_UNSCORED = {Outcome.UNSCORED: "scoring_failed", Outcome.NO_CLAIMS: "no_numbers"}


@scorer(metrics=FIGURES, name="march/numbers")
@of_march
def numbers(auditor: Auditor = "lexical", settings: Mapping[str, Any] | None = None) -> Scorer:
    """Audits each answer.

    Args:
        auditor: "lexical" looks the numbers up; "model" has the grader propose, check and vote.
        settings: Of the audit (`AuditConfig`), such as `{"checks": ["ratings"]}` for documents of one layout.
    """
    config = AuditConfig.model_validate(settings or {})
    prompts = load_prompts(config.prompts) if auditor == "model" else None

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        ((name, generation),) = generations_of(state, asked.prompts).items()
        about = {**asked.about, AUDITOR: auditor}
        if generation.failure:
            return unanswered(about, Kind.NUMBERS, generation.failure)
        text = judged_text(name, generation.text)
        sampler = await grader_sampler() if auditor == "model" else None
        result = await audit(asked.item.query, text, sampler=sampler, prompts=prompts, config=config)
        return _score(about, auditor, text, result.verdict)

    return score


def _score(about: dict[str, Any], auditor: Auditor, text: str, verdict: Verdict) -> Score:
    metadata = {
        **about,
        KIND: Kind.NUMBERS.value,
        "outcome": verdict.outcome.value,
        "claims": [_claim(one, text) for one in verdict.claims],
        VERDICT: verdict.model_dump(mode="json"),
    }
    explanation = "\n".join(_explained(verdict, text))
    if (reason := _UNSCORED.get(verdict.outcome)) is not None:
        return Score.unscored(reason=reason, answer=text, explanation=explanation, metadata=metadata)
    primary = f"numeric_{auditor}"
    values = as_values({primary: numeric_scores(auditor, [verdict])[primary]})
    return Score(value=values, answer=text, explanation=explanation, metadata=metadata)


def _claim(one: ClaimVerdict, text: str) -> dict[str, Any]:
    span = one.claim.span
    return {
        "text": text[span.start : span.end] if span else one.claim.answer,
        "state": one.state.value,
        "span": [span.start, span.end] if span else None,
        "documents_say": one.consensus,
        "question": one.claim.question,
        "evidence": next((vote.evidence for vote in one.votes if vote and vote.evidence), ""),
        "note": one.note,
    }


def _explained(verdict: Verdict, text: str) -> Iterator[str]:
    """The claims as a table of Markdown."""
    yield f"**{verdict.outcome.value}** {verdict.detail or verdict.reason}".strip()
    if not verdict.claims:
        return
    yield from ("", "| claim | found | documents say | evidence |", "|---|---|---|---|")
    for one in verdict.claims:
        claim = _claim(one, text)
        state = one.state.value.replace("_", " ")
        found = state if one.state is ClaimState.SUPPORTED else f"**{state}**"
        cells = (claim["text"], found, claim["documents_say"] or "", claim["evidence"] or one.note)
        yield "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"
