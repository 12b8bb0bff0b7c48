"""The MARCH audit of an answer: do its numbers come from its documents?

By lookup, or by the model in the role `grader`, which proposes, checks and votes. The claims stand in the
score's metadata with their places in the answer and what was found, so that Inspect's viewer shows them. An
answer without numbers is neither faithful nor unfaithful; an audit that failed is no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from pipeline.evaluate.benchmarks.replies import judged_text
from pipeline.evaluate.numeric_faithfulness import Auditor, numeric_scores
from pipeline.evaluate.tasks.grader import grader_sampler
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import asked_of, generations_of
from pipeline.evaluate.tasks.scores import AUDITOR, FIGURES, NAN, VERDICT, as_values, unanswered
from reward.auditor import audit
from reward.config import AuditConfig
from reward.roles.prompts import load_prompts
from reward.types import ClaimVerdict, Outcome, Verdict

_UNSCORED = {Outcome.UNSCORED: "scoring_failed", Outcome.NO_CLAIMS: "no_numbers"}
_HEAD = ("", "| claim | found | documents say | evidence |", "|---|---|---|---|")


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
            return unanswered(about, generation.failure)
        text = judged_text(name, generation.text)
        sampler = await grader_sampler() if auditor == "model" else None
        found = (await audit(asked.item.query, text, sampler=sampler, prompts=prompts, config=config)).verdict
        claims, primary = [_claim(one, text) for one in found.claims], f"numeric_{auditor}"
        reason = _UNSCORED.get(found.outcome)
        return Score(
            value=NAN if reason else as_values({primary: numeric_scores(auditor, [found])[primary]}),
            answer=text,
            explanation=_explained(found, claims),
            reason=reason,
            metadata={
                **about,
                "outcome": found.outcome.value,
                "claims": claims,
                VERDICT: found.model_dump(mode="json"),
            },
        )

    return score


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


def _explained(verdict: Verdict, claims: Sequence[Mapping[str, Any]]) -> str:
    """The claims as a table of Markdown."""
    lines = [f"**{verdict.outcome.value}** {verdict.detail or verdict.reason}".strip()]
    lines += _HEAD if claims else ()
    for one in claims:
        state = one["state"].replace("_", " ")
        found = state if state == "supported" else f"**{state}**"
        cells = (one["text"], found, one["documents_say"] or "", one["evidence"] or one["note"])
        lines.append(
            "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"
        )
    return "\n".join(lines)
