"""What a measurement is: its setup, the figures of each row, and those of all of them; pure.

Intervals are Wilson's for a share of answers, the bootstrap (scipy's) for the rest. What is drawn is a
cluster: the questions and votes of one row and, of real text, of all rows that share a subject, directly or
over others.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field
from scipy.stats import bootstrap

from pipeline.settings.worlds import PLAIN_WORLD, WikiSettings, WorldSettings
from pipeline.worlds.world import NUM_MEASURED, StatedValue
from reward.config import AuditConfig, SamplingSettings
from reward.types import Outcome, RagQuery, Record, Verdict

EVALUATION_SEED = 20_260_101  # no training reads held-out rows at all, and no other measurement these
NUM_ROWS = NUM_MEASURED
NUM_EXAMPLES = 8
_CONFIDENCE, _Z = 0.95, 1.959963984540054
_NUM_RESAMPLES = 2000
_BOOTSTRAP_SEED = 0


class Estimate(Record):
    """A measured figure. Example: `Estimate(value=0.6, low=0.55, high=0.65, num_rows=400)`."""

    value: float
    low: float = Field(description="Lower end of the 95% interval.")
    high: float = Field(description="Upper end of the 95% interval.")
    num_rows: int = Field(ge=1, description="Rows that the figure rests on.")


class KindCount(Record):
    num_asked: int = Field(description="Items that the documents answer.")
    num_stated: int = Field(description="Of these, items that the answer states rightly.")
    num_votes: int
    num_votes_right: int


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
    cluster: str = Field(default="", description="Rows that are drawn together; the row alone when empty.")
    response: str = Field(default="", description="Kept, so that another judge can judge it again.")
    outcome: Outcome
    reward: float | None
    right: bool = Field(default=False, description="All that was asked and nothing wrong beside it.")
    faithful: bool = Field(description="Nothing that it says is wrong.")
    num_faithful: int = Field(description="Of all tries.")
    false_accept: bool
    false_reject: bool
    coverage: float | None = Field(
        description="Share of the asked facts that it states rightly; None where no document says one."
    )
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
    figures: dict[str, Estimate | None] = Field(
        description="By the names of `MEASURES`, and `stated/KIND` and `votes/KIND`; None of nothing."
    )
    outcomes: dict[Outcome, int]
    answers: tuple[JudgedAnswer, ...] = Field(description="One a row, in order; all figures follow.")
    examples: tuple[Example, ...] = Field(description="The first rows' answers, not chosen.")

    def __getitem__(self, name: str) -> Estimate:
        """A figure that every measurement has."""
        found = self.figures[name]
        assert found is not None, f"{name}: no row says anything of it"
        return found


Answers = Sequence[JudgedAnswer]


@dataclass(frozen=True)
class Measure:
    label: str  # in the table
    of: Callable[[Answers], Estimate | None]
    is_share: bool = True


def _share(name: str) -> Callable[[Answers], Estimate | None]:
    return lambda answers: rate([getattr(one, name) for one in answers], clusters_of(answers))


def _outcome(outcome: Outcome) -> Callable[[Answers], Estimate | None]:
    return lambda answers: rate([one.outcome is outcome for one in answers], clusters_of(answers))


def _ratio(part: str, whole: str = "") -> Callable[[Answers], Estimate | None]:
    """Of two counts of a row, or the mean of one; rows that do not have the first are left out."""

    def of(answers: Answers) -> Estimate | None:
        having = [one for one in answers if getattr(one, part) is not None]
        wholes = [getattr(one, whole) if whole else 1.0 for one in having]
        return ratio([getattr(one, part) for one in having], wholes, clusters_of(having))

    return of


def _covers(answers: Answers) -> Estimate | None:
    having = [one for one in answers if one.covered is not None]
    return rate([bool(one.covered) for one in having], clusters_of(having)) if having else None


def _abstentions(*, answerable: bool) -> Callable[[Answers], Estimate | None]:
    """The share of abstentions among the queries of one sort; None where no query is unanswerable."""

    def of(answers: Answers) -> Estimate | None:
        asked = [one for one in answers if one.answerable is answerable]
        if not asked or all(one.answerable for one in answers):
            return None
        return rate([one.abstained for one in asked], clusters_of(asked))

    return of


MEASURES = {
    "solver_right": Measure("Right answers (all that was asked)", _share("right")),
    "oracle_faithfulness": Measure("Faithful answers (nothing wrong)", _share("faithful")),
    "false_accept": Measure("False accepts (accepted, but wrong)", _share("false_accept")),
    "false_reject": Measure("False rejects (refused, but true)", _share("false_reject")),
    "supported": Measure("Accepted by the check", _outcome(Outcome.SUPPORTED)),
    "reward": Measure("Reward of scored answers", _ratio("reward"), is_share=False),
    "checker_accuracy": Measure("Checker right, single votes", _ratio("num_votes_right", "num_votes")),
    "consensus_accuracy": Measure("Checker right, consensus", _ratio("num_consensus_right", "num_questions")),
    "answer_coverage": Measure("Asked facts that are stated rightly", _ratio("coverage")),
    "proposer_covers": Measure("Answers whose every mention is asked about", _covers),
    "mentions_per_answer": Measure("Mentions an answer", _ratio("num_mentions"), is_share=False),
    "claims_per_answer": Measure("Claims an answer", _ratio("num_claims"), is_share=False),
    "unscored": Measure("Answers without a score", _outcome(Outcome.UNSCORED)),
    "abstention_right": Measure("Abstentions where no document answers", _abstentions(answerable=False)),
    "abstention_wrong": Measure("Abstentions though a document answers", _abstentions(answerable=True)),
}
BY_KIND = {"stated": "Items stated rightly", "votes": "Checker right, single votes"}


def summarise(
    answers: Answers, examples: Sequence[Example], *, setup: EvaluationSetup, prompt_digest: str
) -> Evaluation:
    return Evaluation(
        setup=setup,
        prompt_digest=prompt_digest,
        figures={name: one.of(answers) for name, one in MEASURES.items()} | dict(_by_kind(answers)),
        outcomes=dict(Counter(answer.outcome for answer in answers)),
        answers=tuple(answers),
        examples=tuple(examples),
    )


def _by_kind(answers: Answers) -> Iterator[tuple[str, Estimate]]:
    """Ratios for each kind; rows that do not ask for a kind are left out of its ratio."""
    for kind in sorted({kind for one in answers for kind in one.kinds}):
        asked = [one.kinds[kind] for one in answers if kind in one.kinds]
        clusters = clusters_of([one for one in answers if kind in one.kinds])
        stated = ratio([one.num_stated for one in asked], [one.num_asked for one in asked], clusters)
        votes = ratio([one.num_votes_right for one in asked], [one.num_votes for one in asked], clusters)
        for name, found in zip(BY_KIND, (stated, votes), strict=True):
            if found is not None:
                yield f"{name}/{kind}", found


def clusters_of(answers: Answers) -> list[str]:
    return [one.cluster or f"row {place}" for place, one in enumerate(answers)]


def rate(flags: Sequence[bool], clusters: Sequence[str] = ()) -> Estimate:
    """Returns the share of true flags, one a row, with Wilson's interval.

    Of clustered rows it is that of as many independent rows as tell as much (Korn and Graubard 1998, Survey
    Methodology 24:193): at most all, and as many as there are clusters where all rows are alike.
    """
    value = sum(flags) / len(flags)
    size = _effective_size(flags, clusters, value)
    middle, stretch = value + _Z**2 / (2 * size), 1 + _Z**2 / size
    reach = _Z * math.sqrt(value * (1 - value) / size + (_Z / (2 * size)) ** 2)
    # At 0 and 1 a bound is the share itself, which rounding must not miss.
    low, high = min(value, (middle - reach) / stretch), max(value, (middle + reach) / stretch)
    return Estimate(value=value, low=max(0.0, low), high=min(1.0, high), num_rows=len(flags))


def _effective_size(flags: Sequence[bool], clusters: Sequence[str], value: float) -> float:
    deviations = _sums([flag - value for flag in flags], clusters)
    if value in (0.0, 1.0):
        return float(len(deviations))
    spread = sum(one**2 for one in deviations) / len(flags) ** 2
    return min(float(len(flags)), value * (1 - value) / spread) if spread else float(len(flags))


def _sums(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    """The sum of each cluster, in the order that they appear; without clusters the values."""
    if not clusters:
        return list(values)
    sums: dict[str, float] = defaultdict(float)
    for cluster, value in zip(clusters, values, strict=True):
        sums[cluster] += value
    return list(sums.values())


def ratio(parts: Sequence[float], wholes: Sequence[float], clusters: Sequence[str] = ()) -> Estimate | None:
    """Returns `sum(parts) / sum(wholes)` with a percentile bootstrap interval over clusters of rows.

    Args:
        parts: One a row, such as its right votes.
        wholes: One a row, such as all its votes; ones give the mean of `parts`.
        clusters: Of each row; without any a row is one.

    Returns:
        None when the rows have nothing to divide by, such as no vote at all.
    """
    if not sum(wholes):
        return None
    value, drawn = sum(parts) / sum(wholes), [_sums(one, clusters) for one in (parts, wholes)]
    if len(drawn[0]) == 1:  # nothing to resample
        return Estimate(value=value, low=value, high=value, num_rows=len(parts))
    interval = bootstrap(
        tuple(np.asarray(sample, dtype=float) for sample in drawn),
        _ratio_of_sums,
        paired=True,
        vectorized=True,
        n_resamples=_NUM_RESAMPLES,
        confidence_level=_CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_BOOTSTRAP_SEED),
    ).confidence_interval
    return Estimate(value=value, low=interval.low, high=interval.high, num_rows=len(parts))


def difference(before: Sequence[bool], after: Sequence[bool], clusters: Sequence[str] = ()) -> Estimate:
    """Returns how much a rate rose from one measurement to another of the same rows, in the same order."""
    changes = [float(new) - float(old) for old, new in zip(before, after, strict=True)]
    estimate = ratio(changes, [1.0] * len(changes), clusters)
    assert estimate is not None, "no rows"
    return estimate


def _ratio_of_sums(parts: Any, wholes: Any, axis: int) -> Any:
    whole = wholes.sum(axis=axis)
    return parts.sum(axis=axis) / np.where(whole == 0, np.nan, whole)
