"""RAGTruth and FaithBench by FaithJudge's protocol (paper, Table 1).

https://github.com/vectara/FaithJudge; Tamber et al. 2025 (arXiv 2505.04847). The model under test answers
for a source. The judge sees the source, up to 6 (RAGTruth) or 10 (FaithBench) answers of other models for
the same source with what people marked in them, and the answer. What differs from the official code is in
docs/evaluation-benchmarks.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.data.evaluation_rows import FaithBenchRow
from pipeline.data.ragtruth import RagTruthRow, responses_by_source
from pipeline.data.rows import parse_row
from pipeline.evaluate.benchmark import Benchmark, Item, JudgeVerdict, LabelledResponse, Prompt, PromptStyle
from pipeline.evaluate.majority import Judgement, Scores, counted, majority, majority_scores
from pipeline.statistics import HUMAN, JUDGE, Estimate, ItemScores, judge_agreement
from reward.offline.bootstrap import share
from reward.offline.ragtruth import RESPONSES
from reward.offline.rows import make_query
from reward.types import Document

QUERY = "Summarise this passage concisely. Cover the core pieces of information that it describes."
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
    texts, verdict, official = "faithjudge", _Verdict, "consistent_unparsed_is_inconsistent"

    def shown_to_judge(self, item: Item, response: str) -> Mapping[str, object]:
        """The labelled answers; one of the very same text is left out, as officially."""
        task = item.slice.partition(" ")[0]  # a calibration's slice says more
        noun, nouns, invalid = _WORDS[task]
        annotated = [one for one in item.responses if one.text.strip() != response]
        return {"task": task, "noun": noun, "nouns": nouns, "invalid": invalid, "annotated": annotated}

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Scores:
        """`consistent` by majority, the official variant of it, and what was Invalid."""
        (generations,) = judged.values()
        labels = [one.label for one in generations if one is not None]
        official = counted(labels.count(CONSISTENT), len(generations), len(generations))
        return {
            **majority_scores(generations, "consistent"),
            self.official: official.passed,
            "invalid": share(labels.count(INVALID), len(labels)),
        }


class RagTruth(FaithJudgeBenchmark):
    name, title, licence = "ragtruth", "RAGTruth", "MIT"
    url = "https://github.com/ParticleMedia/RAGTruth"
    judge_chat = "judge_ragtruth"

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a source; see `Benchmark.items`."""
        (file,) = self.published(source, RESPONSES)
        responses = responses_by_source(file, "test")
        for raw in RagTruthRow.raw_rows(file, "test"):
            row = parse_row(raw, RagTruthRow)
            # Others are no examples for the judge, as in RAGTruth's own evaluation.
            good = (one for one in responses[row.source_id] if one.quality in (None, "good"))
            yield Item(
                id=row.source_id,
                slice=row.task_type.lower(),
                cluster=row.source_id,
                query=row.queries(raw.place)[0],
                responses=tuple(_given(one.id, one.response, [x.note for x in one.labels]) for one in good),
            )


class FaithBench(FaithJudgeBenchmark):
    name, title, licence = "faithbench", "FaithBench", "CC-BY-NC-SA-4.0"
    url = "https://github.com/vectara/FaithBench"
    judge_chat = "judge_faithbench"

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item an article, with all summaries of it; see `Benchmark.items`."""
        files = self.published(source, "batch_[0-9]*.json")
        for file in sorted(files, key=lambda file: (len(file.name), file.name)):  # 2 before 10
            batch = file.stem.removeprefix("batch_")
            articles: dict[str, list[tuple[str, FaithBenchRow]]] = defaultdict(list)
            for raw in FaithBenchRow.raw_rows(file):
                row = parse_row(raw, FaithBenchRow)
                articles[row.source].append((raw.place, row))
            for text, rows in articles.items():
                place, first = rows[0]
                name = f"{batch}-{first.sample_id}"
                yield Item(
                    id=name,
                    slice="summary",
                    cluster=name,
                    query=make_query(place, name, QUERY, [Document(id=name, text=text)]),
                    responses=tuple(
                        _given(f"{batch}-{row.sample_id}", row.summary, row.notes, benign=row.is_benign)
                        for _, row in rows
                    ),
                )


class Calibration(FaithJudgeBenchmark):
    """The labelled answers of a benchmark, the judged one first among the item's responses.

    It asks whether the judge agrees with people. The generation of an item is an answer that people labelled;
    the judge sees the source and the other labelled answers, and not what people said of this one. A subclass
    names it before the benchmark whose items it takes.
    """

    primary, scored_by = "agreement", "people's labels"
    styles = (PromptStyle.PLAIN,)
    is_given, official = True, ""

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a labelled answer; see `Benchmark.items`."""
        for item in super().items(source):  # type: ignore[safe-super]  # of the benchmark behind it
            for response in item.responses:
                # An answer that has marks and yet counts as consistent is kept apart: FaithBench's Benign.
                is_benign = response.consistent and response.notes
                part = f"{item.slice} (worst label benign)" if is_benign else item.slice
                responses = (response, *(one for one in item.responses if one is not response))
                changes = {"id": f"{item.id}/{response.id}", "slice": part, "responses": responses}
                yield item.model_copy(update=changes)

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The given answer; no style changes it."""
        return (Prompt(name="given answer", given=item.responses[0].text),)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """As the benchmark reads it; passed where judge and people agree."""
        found = super().read_judgement(item, prompt, reply)
        agrees = found and found.passed == item.responses[0].consistent
        return found and found.model_copy(update={"passed": agrees})

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Scores:
        """Whether judge and people agree, and what the judge said of the one answer."""
        (generations,) = judged.values()
        found = majority(generations)
        said = [float(one.label == CONSISTENT) for one in generations if one is not None]
        return {"agreement": found.passed, JUDGE: said[0] if said else None, "unjudged": found.unjudged}

    def measured(self, item: Item, prompt: str, generation: str) -> Scores:
        return {HUMAN: float(item.responses[0].consistent)}

    def estimates(self, items: Iterable[ItemScores]) -> dict[str, Estimate]:
        items = list(items)
        return {**super().estimates(items), **judge_agreement(items)}


class RagTruthJudge(Calibration, RagTruth):
    name, title = "ragtruth_judge", "Judge on RAGTruth's labelled answers"


class FaithBenchJudge(Calibration, FaithBench):
    name, title = "faithbench_judge", "Judge on FaithBench's labelled answers"


def _given(name: str, text: str, notes: Iterable[str], *, benign: bool = False) -> LabelledResponse:
    """An answer with what people marked in it, notes in one line each; benign: though marked, no fault."""
    tidy = tuple(" ".join(note.split()) for note in notes)
    return LabelledResponse(id=name, text=text.strip(), consistent=benign or not tidy, notes=tidy)
