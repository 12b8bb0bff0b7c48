"""What a measurement is: its setup, the figures of each row, and those of all of them; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pipeline.demo.by_kind import KindCount, shares_by_kind
from pipeline.demo.intervals import Estimate, rate, ratio
from pipeline.settings.worlds import PLAIN_WORLD, WikiSettings, WorldSettings
from pipeline.worlds.world import StatedValue
from reward.config import AuditConfig, SamplingSettings
from reward.types import Outcome, RagQuery, Record, Verdict

EVALUATION_SEED = 20_260_101  # no training reads held-out rows at all, and no other measurement these
NUM_ROWS = 400
NUM_EXAMPLES = 8


class EvaluationSetup(Record):
    """What was measured and how; two results are comparable when these agree but for the model."""

    model: str = Field(description="Folder of a Hugging Face model.")
    num_rows: int = Field(default=NUM_ROWS, ge=1)
    num_tries: int = Field(default=1, ge=1, description="Answers to each row; the first is audited.")
    num_votes: int = Field(default=3, ge=1, description="Of the Checker by itself, on each asked question.")
    world: Literal["tiny", "wiki"] = "tiny"
    tiny: WorldSettings = PLAIN_WORLD
    wiki: WikiSettings | None = None
    dtype: Literal["bfloat16", "float32"] | None = Field(
        default=None, description="Of the engine's weights; as the engine chooses when left out."
    )
    seed: int = Field(default=EVALUATION_SEED, ge=0, description="Of drawn rows and of the sampling.")
    solver: SamplingSettings = SamplingSettings(temperature=1.0, max_tokens=128)
    audit: AuditConfig


class JudgedAnswer(Record):
    """The figures of one row: the answer, its audit, the truth, and the Checker by itself."""

    query_id: str
    response: str = Field(default="", description="Kept, so that another judge can judge it again.")
    outcome: Outcome
    reward: float | None
    right: bool = Field(default=False, description="All that was asked and nothing wrong beside it.")
    faithful: bool = Field(description="Nothing that it says is wrong.")
    num_faithful: int = Field(description="Of all tries.")
    false_accept: bool
    false_reject: bool
    coverage: float = Field(description="Share of the asked facts that the answer states rightly.")
    truncated: bool = Field(description="The Solver was cut at its token limit.")
    num_mentions: int
    num_claims: int
    covered: bool | None = Field(
        default=None, description="Each mention has a usable claim; None where there is no mention."
    )
    num_questions: int = Field(description="Asked facts, put to the Checker as they are.")
    num_votes: int = Field(description="`num_questions` times the voters.")
    num_votes_right: int
    num_consensus_right: int = Field(description="Questions whose consensus is the truth.")
    abstained: bool = Field(default=False, description="The answer is that the documents do not say.")
    answerable: bool = Field(default=True, description="The documents answer the query.")
    kinds: dict[str, KindCount] = Field(
        default_factory=dict, description="By kind of the asked items; `unanswerable` where nobody knows."
    )


class Example(Record):
    """An answer in full, for a person to read."""

    query: RagQuery
    response: str
    verdict: Verdict
    faithful: bool
    abstained: bool = False
    values: tuple[StatedValue, ...] = Field(default=(), description="What it claims, and what is true.")


class Evaluation(Record):
    """What a model did on all rows. Rates are over all answers; each figure has a 95% interval."""

    setup: EvaluationSetup
    prompt_digest: str
    solver_right: Estimate = Field(description="All that was asked, rightly, and nothing wrong beside it.")
    oracle_faithfulness: Estimate = Field(description="All its values are true, or it rightly abstains.")
    supported: Estimate = Field(description="Accepted by the audit.")
    false_accept: Estimate = Field(description="Accepted by the audit, but not faithful.")
    false_reject: Estimate = Field(description="Refused by the audit, but faithful.")
    checker_accuracy: Estimate = Field(description="Single votes on the asked questions that are right.")
    consensus_accuracy: Estimate = Field(description="Asked questions whose consensus is right.")
    answer_coverage: Estimate = Field(description="Asked facts that the answers state rightly.")
    abstention_right: Estimate | None = Field(
        default=None, description="Abstentions among the queries that no document answers."
    )
    abstention_wrong: Estimate | None = Field(
        default=None, description="Abstentions among the queries that the documents answer."
    )
    stated_by_kind: dict[str, Estimate] = Field(
        default_factory=dict, description="Items of a kind that the answers state rightly."
    )
    votes_by_kind: dict[str, Estimate] = Field(default_factory=dict, description="Right votes, by kind.")
    proposer_covers: Estimate | None = Field(
        description="Answers with mentions, of which each has a usable claim; None when there is none."
    )
    mentions_per_answer: Estimate
    claims_per_answer: Estimate
    reward: Estimate | None = Field(description="Mean over scored answers; None when there is none.")
    unscored: Estimate = Field(description="Answers without a verdict.")
    num_unscored: int
    num_truncated: int
    outcomes: dict[Outcome, int]
    answers: tuple[JudgedAnswer, ...] = Field(description="One a row, in order; all figures follow.")
    examples: tuple[Example, ...] = Field(description="The first rows' answers, not chosen.")


def summarise(
    answers: Sequence[JudgedAnswer],
    examples: Sequence[Example],
    *,
    setup: EvaluationSetup,
    prompt_digest: str,
) -> Evaluation:
    """Returns the figures of all answers; pure."""
    ones = [1.0] * len(answers)
    rewards = [answer.reward for answer in answers if answer.reward is not None]
    numbers = [answer.num_mentions for answer in answers]
    claims = [answer.num_claims for answer in answers]
    questions = [answer.num_questions for answer in answers]
    covered = [answer.covered for answer in answers if answer.covered is not None]
    counts = [answer.kinds for answer in answers]
    return Evaluation(
        setup=setup,
        prompt_digest=prompt_digest,
        solver_right=rate([answer.right for answer in answers]),
        oracle_faithfulness=rate([answer.faithful for answer in answers]),
        supported=rate([answer.outcome is Outcome.SUPPORTED for answer in answers]),
        false_accept=rate([answer.false_accept for answer in answers]),
        false_reject=rate([answer.false_reject for answer in answers]),
        checker_accuracy=_some(ratio([a.num_votes_right for a in answers], [a.num_votes for a in answers])),
        consensus_accuracy=_some(ratio([answer.num_consensus_right for answer in answers], questions)),
        abstention_right=_abstentions(answers, answerable=False),
        abstention_wrong=_abstentions(answers, answerable=True),
        stated_by_kind=shares_by_kind(counts, "num_stated", "num_asked"),
        votes_by_kind=shares_by_kind(counts, "num_votes_right", "num_votes"),
        answer_coverage=_some(ratio([answer.coverage for answer in answers], ones)),
        proposer_covers=rate(covered) if covered else None,
        mentions_per_answer=_some(ratio(numbers, ones)),
        claims_per_answer=_some(ratio(claims, ones)),
        reward=ratio(rewards, [1.0] * len(rewards)),
        unscored=rate([answer.outcome is Outcome.UNSCORED for answer in answers]),
        num_unscored=len(answers) - len(rewards),
        num_truncated=sum(answer.truncated for answer in answers),
        outcomes=dict(Counter(answer.outcome for answer in answers)),
        answers=tuple(answers),
        examples=tuple(examples),
    )


def _abstentions(answers: Sequence[JudgedAnswer], *, answerable: bool) -> Estimate | None:
    """The share of abstentions among the queries of one sort; None where no query is unanswerable."""
    flags = [answer.abstained for answer in answers if answer.answerable is answerable]
    is_asked = any(not answer.answerable for answer in answers)
    return rate(flags) if flags and is_asked else None


def _some(estimate: Estimate | None) -> Estimate:
    assert estimate is not None, "every row asks at least one question"
    return estimate
