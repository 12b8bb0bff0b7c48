"""FACTS Grounding: long answers to requests about one long document; is every sentence borne out by it?

The judge labels each sentence: accurate if all are `supported` or `no_rad`. It is also asked whether the
response does what was requested: with Major Issue(s) it is ineligible and not factual, as in the report.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.data.evaluation_rows import FactsRow
from pipeline.data.rows import parse_row
from pipeline.evaluate.benchmark import Benchmark, Item, JudgeVerdict
from pipeline.evaluate.majority import Judgement, Scores, counted, majority_scores
from reward.offline.bootstrap import share
from reward.types import Record


class _Sentence(Record):
    sentence: str
    label: Literal["supported", "unsupported", "contradictory", "no_rad"]
    rationale: str
    excerpt: str


class _Verdict(JudgeVerdict):
    sentences: tuple[_Sentence, ...] = Field(min_length=1)
    instruction_following: Literal["No Issues", "Minor Issue(s)", "Major Issue(s)"]

    @property
    def judgement(self) -> Judgement:
        faults = [one for one in self.sentences if one.label not in ("supported", "no_rad")]
        is_eligible = self.instruction_following != "Major Issue(s)"
        label = "inaccurate" if faults else "accurate"
        reasons = [self.instruction_following, *(f"{one.label}: {one.sentence}" for one in faults)]
        return Judgement(
            passed=is_eligible and not faults,
            label=label if is_eligible else f"ineligible, {label}",
            reason="\n".join(reasons),
        )


class FactsGrounding(Benchmark):
    name, title, licence = "facts_grounding", "FACTS Grounding", "CC-BY-4.0"
    url = "https://huggingface.co/datasets/google/FACTS-grounding-public"
    primary, scored_by = "factual", "judge, by the structure of the official json method"
    texts, verdict = "facts_grounding", _Verdict

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the rows of `examples.csv`, or of the folder that holds it; see `Benchmark.items`."""
        (file,) = self.published(source, "examples.csv")
        for raw in FactsRow.raw_rows(file):
            row = parse_row(raw, FactsRow)
            (query,) = row.queries(raw.place)
            instruction = row.system_instruction.strip() or None
            yield Item(id=query.id, slice="all", cluster=query.id, query=query, instruction=instruction)

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Scores:
        """`factual` by majority; `grounded` leaves eligibility out (the report's unadjusted score)."""
        (generations,) = judged.values()
        labels = [one.label for one in generations if one is not None]
        grounded = sum(not label.endswith("inaccurate") for label in labels)
        ineligible = sum(label.startswith("ineligible") for label in labels)
        return {
            **majority_scores(generations, "factual"),
            "grounded": counted(grounded, len(labels), len(generations)).passed,
            "ineligible": share(ineligible, len(labels)),
        }
