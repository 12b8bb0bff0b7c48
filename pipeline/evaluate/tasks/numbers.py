"""The MARCH audit of an answer: do its numbers come from its documents?

By lookup, or by the model in the role `grader`, which proposes, checks and votes. The audit's verdict is in
the score's metadata, with the claims' places in the answer and what was found; Inspect's viewer shows a table
of them. An answer without numbers is neither faithful nor unfaithful; an audit that failed is no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.numeric_faithfulness import Auditor, numeric_scores
from pipeline.evaluate.tasks.grader import grader_sampler
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import asked_of, generations_of
from pipeline.evaluate.tasks.scores import AUDITOR, FIGURES, NAN, VERDICT, as_values, unanswered
from reward.auditor import audit
from reward.config import AuditConfig
from reward.roles.prompts import load_prompts
from reward.types import ClaimState, Outcome, Verdict

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
        result = await audit(asked.item.query, text, sampler=sampler, prompts=prompts, config=config)
        found, primary = result.verdict, f"numeric_{auditor}"
        reason = _UNSCORED.get(found.outcome)
        return Score(
            value=NAN if reason else as_values({primary: numeric_scores(auditor, [found])[primary]}),
            answer=text,
            explanation=_explained(found, text),
            reason=reason,
            metadata={**about, VERDICT: found.model_dump(mode="json")},
        )

    return score


def _explained(verdict: Verdict, text: str) -> str:
    """The claims as a table of Markdown."""
    lines = [f"**{verdict.outcome.value}** {verdict.detail or verdict.reason}".strip()]
    lines += _HEAD if verdict.claims else ()
    for one in verdict.claims:
        span, state = one.claim.span, one.state.value.replace("_", " ")
        claimed = text[span.start : span.end] if span else one.claim.answer
        found = state if one.state is ClaimState.SUPPORTED else f"**{state}**"
        evidence = next((vote.evidence for vote in one.votes if vote and vote.evidence), one.note)
        cells = (claimed, found, one.consensus or "", evidence)
        shown = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)
