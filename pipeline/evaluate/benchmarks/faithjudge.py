"""FaithJudge's protocol, by which RAGTruth and FaithBench are evaluated (paper, Table 1).

https://github.com/vectara/FaithJudge; Tamber et al. 2025 (arXiv 2505.04847). The model under test answers
for a source. The judge sees the source, up to 6 (RAGTruth) or 10 (FaithBench) answers of other models for
the same source with what people marked in them, and the answer; it says Consistent, Inconsistent or
Invalid. The consistency rate is the share of Consistent: Invalid counts against the model
(`generate_table.py`).

Three things are ours: the prompts' words, since the repository has no licence; verdicts in JSON in place of
"Final classification: ..."; and that a verdict which cannot be read is counted apart. The official script
takes it for Inconsistent; `consistent_unparsed_is_inconsistent` is the rate by that rule.

`Calibration` asks whether the judge agrees with people: their labelled answers are judged like a model's.
`pipeline/evaluate/judge_agreement.py` turns its scores into kappa and the like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.evaluate.benchmark import Benchmark, Item, LabelledResponse, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.prompts import JudgeVerdict
from pipeline.evaluate.judge_agreement import HUMAN, JUDGE
from pipeline.evaluate.majority import Judgement, majority, majority_scores

CONSISTENT, INVALID = "Consistent", "Invalid"
# By task: what the judge calls the text, one and several, and when it is none.
_WORDS = {
    "qa": ("response", "responses", "it does not answer the question in any meaningful way"),
    "summary": ("summary", "summaries", "it does not summarise the source"),
    "data2txt": ("overview", "overviews", "it does not cover the data in any meaningful way"),
}


class _Verdict(JudgeVerdict):
    reasoning: str = Field(description="Why, before the classification.")
    classification: Literal["Consistent", "Inconsistent", "Invalid"]

    @property
    def judgement(self) -> Judgement:
        passed = self.classification == CONSISTENT
        return Judgement(passed=passed, label=self.classification, reason=self.reasoning)


class FaithJudgeBenchmark(Benchmark):
    """What RAGTruth and FaithBench share; a subclass reads the files."""

    primary = "consistent"
    scored_by = "judge, by FaithJudge's protocol; rates as its generate_table.py"
    texts, verdict = "faithjudge", _Verdict

    def shown_to_judge(self, item: Item, response: str) -> Mapping[str, object]:
        """The labelled answers; one of the very same text is left out, as officially."""
        task = item.slice.partition(" ")[0]  # a calibration's slice says more
        noun, nouns, invalid = _WORDS[task]
        annotated = [one for one in item.responses if one.text.strip() != response]
        return {"task": task, "noun": noun, "nouns": nouns, "invalid": invalid, "annotated": annotated}

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Mapping[str, float | None]:
        """`consistent` by majority, the official variant of it, and what was Invalid."""
        (generations,) = judged.values()
        found = majority(generations)
        official = replace(found, num_judged=found.num_generations)
        labels = [one.label for one in generations if one is not None]
        return {
            **majority_scores(generations, "consistent"),
            "consistent_unparsed_is_inconsistent": official.passed,
            "invalid": labels.count(INVALID) / len(labels) if labels else None,
        }


class Calibration(FaithJudgeBenchmark):
    """The labelled answers of a benchmark, the judged one first among the item's responses.

    Nothing is asked of the model under test: the generation of an item is an answer that people labelled. The
    judge sees the source and the other labelled answers, and not what people said of this one. A subclass
    names it before the benchmark whose items it takes.
    """

    primary, scored_by = "agreement", "people's labels"
    styles = (PromptStyle.PLAIN,)
    is_given = True

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a labelled answer; see `Benchmark.items`."""
        for item in super().items(source):  # type: ignore[safe-super]  # of the benchmark behind it
            for response in item.responses:
                # An answer that has marks and yet counts as consistent is told apart: FaithBench's Benign.
                is_benign = response.consistent and response.notes
                changes: dict[str, object] = {
                    "id": f"{item.id}/{response.id}",
                    "slice": f"{item.slice} (worst label benign)" if is_benign else item.slice,
                    "responses": (response, *(one for one in item.responses if one is not response)),
                }
                yield item.model_copy(update=changes)

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The given answer; no style changes it."""
        return (Prompt(name="given answer", given=item.responses[0].text),)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """As the benchmark reads it; passed where judge and people agree."""
        found = super().read_judgement(item, prompt, reply)
        if found is None:
            return None
        return found.model_copy(update={"passed": found.passed == item.responses[0].consistent})

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Mapping[str, float | None]:
        """Whether judge and people agree, and what the judge said of the one answer."""
        (generations,) = judged.values()
        found = majority(generations)
        said = [float(one.label == CONSISTENT) for one in generations if one is not None]
        return {
            "agreement": found.passed,
            JUDGE: said[0] if said else None,
            "unjudged": found.unjudged,
        }

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """What people said."""
        return {HUMAN: float(item.responses[0].consistent)}


def labelled(response_id: str, text: str, notes: Iterable[str], *, consistent: bool) -> LabelledResponse:
    """An answer with what people marked in it, notes in one line each."""
    tidy = tuple(" ".join(note.split()) for note in notes)
    return LabelledResponse(id=response_id, text=text.strip(), consistent=consistent, notes=tidy)
