"""Does the judge agree with people? The labelled answers of a benchmark, judged like a model's.

Nothing is asked of the model under test: the generation of an item is an answer that people labelled. The
judge sees the source and the other labelled answers, as FaithJudge's judge does when it judges a model, and
not what people said of this one. `pipeline/evaluate/judge_agreement.py` turns the scores into kappa and the
like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.evaluate.benchmark import (
    Benchmark,
    BenchmarkCard,
    Item,
    JudgeRequest,
    LabelledResponse,
    Prompt,
    PromptStyle,
)
from pipeline.evaluate.benchmarks.faithjudge import CONSISTENT, FaithJudgeBenchmark
from pipeline.evaluate.judge_agreement import HUMAN, JUDGE
from pipeline.evaluate.majority import Judged, Judgement, as_score, majority

GIVEN = "given answer"


@dataclass(frozen=True)
class Calibration(Benchmark):
    """The labelled answers of RAGTruth or FaithBench.

    Args:
        of: The benchmark whose answers and judge they are.
    """

    of: FaithJudgeBenchmark

    @property
    def card(self) -> BenchmarkCard:
        """What it is."""
        card = self.of.card
        return card.model_copy(
            update={
                "name": f"{card.name}_judge",
                "title": f"Judge on {card.title}'s labelled answers",
                "primary": "agreement",
                "scored_by": "people's labels",
                "styles": (PromptStyle.PLAIN,),
            }
        )

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a labelled answer, the answer first among the item's responses.

        Raises:
            FileNotFoundError: the files are not there.
            ValueError: a row is not what it must be.
        """
        for item in self.of.items(source):
            for response in item.responses:
                if response.consistent is None:
                    continue
                others = [one for one in item.responses if one is not response]
                changes: dict[str, object] = {
                    "id": f"{item.id}/{response.id}",
                    "slice": _slice(item.slice, response),
                    "responses": (response, *others),
                }
                yield item.model_copy(update=changes)

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The given answer; no style changes it."""
        return (Prompt(name=GIVEN, given=item.responses[0].text),)

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest:
        """As the benchmark asks about a model's answer."""
        return self.of.judge_request(_as_asked(item), prompt, generation)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """As the benchmark reads it; passed where judge and people agree."""
        found = self.of.read_judgement(item, prompt, reply)
        if found is None:
            return None
        agrees = found.passed == bool(item.responses[0].consistent)
        return found.model_copy(update={"passed": agrees})

    def by_majority(self, judged: Mapping[str, Sequence[Judged]]) -> Mapping[str, float | None]:
        """Whether judge and people agree, and what the judge said of the one answer."""
        found = majority(judged[GIVEN])
        said = [one.judgement.label == CONSISTENT for one in judged[GIVEN] if one.judgement is not None]
        return {
            "agreement": as_score(found.passed),
            JUDGE: as_score(said[0]) if said else None,
            "unjudged": found.unjudged,
        }

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """What people said."""
        return {HUMAN: float(bool(item.responses[0].consistent))}


_BENIGN = " (worst label benign)"


def _slice(task: str, response: LabelledResponse) -> str:
    """An answer that has marks and yet counts as consistent is told apart: FaithBench's Benign."""
    return f"{task}{_BENIGN}" if response.consistent and response.notes else task


def _as_asked(item: Item) -> Item:
    return item.model_copy(update={"slice": item.slice.removesuffix(_BENIGN)})
