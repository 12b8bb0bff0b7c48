"""HotpotQA, 2WikiMultihopQA and MuSiQue: short answers to questions that take several documents.

`pipeline/data/` has URL, licence and example rows of each. The files are those of the development sets, since
the test sets have no answers: HotpotQA's distractor setting (ten paragraphs, of which two are needed),
2WikiMultihopQA (ten, of which two or four) and MuSiQue (twenty, of which two to four). The release of 2Wiki
has a file with aliases of the answers, which is read where it lies beside the rows, one object a line:

    {"Q_id": "Q30", "aliases": ["USA", "United States"], "demonyms": ["American"]}

The model is given the question and its paragraphs and answers in one of three styles (paper, Table 4); a
judge holds each answer against the reference. The paper takes the first 500 rows of the development sets.
Beside the judge's accuracy stand the official EM and F1 of the answer line, as means over the generations,
and `numeric_em` for references that are numbers (`pipeline/evaluate/official_qa.py`).

The ten examples of the 10-shot style are rows of 2WikiMultihopQA's train split with the paragraphs that they
need, for all three benchmarks. One that shares its question or a paragraph with an item is passed over.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline.data.hotpotqa import HotpotRelevance, HotpotRow
from pipeline.data.musique import MusiqueParagraph, MusiqueRelevance, MusiqueRow, MusiqueSupport
from pipeline.data.rows import QuestionRow
from pipeline.data.twowiki import ParagraphsRelevance, TwoWikiRow
from pipeline.evaluate.benchmark import Benchmark, Item, PromptStyle
from pipeline.evaluate.benchmarks.files import published, rows
from pipeline.evaluate.benchmarks.replies import JudgeVerdict, judged_text, last_answer
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.official_qa import best_of, exact_match, hotpot_f1, musique_f1, numeric_match
from reward.offline.rows import InputRecord

NUM_ROWS = 500


class _Verdict(JudgeVerdict):
    reasoning: str = Field(description="Why, before the verdict.")
    verdict: Literal["correct", "incorrect"]

    @property
    def judgement(self) -> Judgement:
        return Judgement(passed=self.verdict == "correct", label=self.verdict, reason=self.reasoning)


class AnsweredRow(QuestionRow):
    """A row for training with what tells its answer."""

    answer: Annotated[str, Field(min_length=1)]
    answer_aliases: tuple[str, ...] = ()
    answer_id: str | None = None
    type: str = "all"

    @property
    def slice(self) -> str:
        """What figures are also given by."""
        return self.type

    @abstractmethod
    def irrelevant(self) -> list[int] | None:
        """The places of the paragraphs that the answer does not take; None where the file does not tell."""


class MultiHopBenchmark(Benchmark):
    """One of the three; a subclass says what a row is."""

    primary = "accuracy"
    styles = tuple(PromptStyle)
    texts, verdict = "multihop_qa", _Verdict
    file: ClassVar[str]  # as it is published
    row: ClassVar[type[AnsweredRow]]

    @staticmethod
    @abstractmethod
    def f1(prediction: str, gold: str) -> float:
        """The official F1 of one answer."""

    def aliases(self, file: Path) -> Mapping[str, tuple[str, ...]]:
        """Other names of an answer by its id, where the release has a file of them."""
        return {}

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the first rows of the file, or of the folder that holds it; see `Benchmark.items`."""
        (file,) = published(source, self.file, url=self.url, renamed=True)
        aliases = self.aliases(file)
        first = islice(rows(file, self.row), NUM_ROWS)
        found = [(row, query) for place, row in first for query in row.queries(place)]
        needed = []
        for row, query in found:
            irrelevant = row.irrelevant()
            if irrelevant is None:
                irrelevant = list(range(len(query.documents)))
            needed.append([one.text for place, one in enumerate(query.documents) if place not in irrelevant])
        for (row, query), cluster in zip(found, linked(needed), strict=True):
            others = [one for one in aliases.get(row.answer_id or "", ()) if one != row.answer]
            yield Item(
                id=row.id,
                slice=row.slice,
                cluster=found[cluster][0].id,
                query=query,
                references=(row.answer, *row.answer_aliases, *dict.fromkeys(others)),
            )

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """Official EM and F1 of the last "Answer:" line, or of all without one; they need no judge."""
        text = judged_text(prompt, generation)
        answer = last_answer(text) or text
        return {
            "em": best_of(exact_match, answer, item.references),
            "f1": best_of(self.f1, answer, item.references),
            "numeric_em": numeric_match(answer, item.references),
        }


class _HotpotRow(HotpotRow, HotpotRelevance, AnsweredRow): ...


class HotpotQA(MultiHopBenchmark):
    """HotpotQA in the distractor setting; the supporting facts are not asked for."""

    name, title, licence = "hotpotqa", "HotpotQA", "CC-BY-SA-4.0"
    url = "https://hotpotqa.github.io"
    scored_by = "judge against the reference; EM and F1 as hotpot_evaluate_v1.py"
    file, row, f1 = "hotpot_dev_distractor_v1.json", _HotpotRow, staticmethod(hotpot_f1)


class _TwoWikiRow(TwoWikiRow, ParagraphsRelevance, AnsweredRow): ...


class _Aliases(InputRecord):
    id: str = Field(alias="Q_id")
    aliases: tuple[str, ...]
    demonyms: tuple[str, ...]


class TwoWiki(MultiHopBenchmark):
    """2WikiMultihopQA; EM and F1 are the best over the answer and its aliases."""

    name, title, licence = "2wikimultihopqa", "2WikiMultihopQA", "Apache-2.0"
    url = "https://github.com/Alab-NII/2wikimultihop"
    scored_by = "judge against the reference; EM and F1 as 2wikimultihop_evaluate_v1.1.py"
    file, row, f1 = "dev.json", _TwoWikiRow, staticmethod(hotpot_f1)

    def aliases(self, file: Path) -> Mapping[str, tuple[str, ...]]:
        """Other names by entity; none where the file of them is not there."""
        beside = file.with_name("id_aliases.json")
        found = rows(beside, _Aliases) if beside.is_file() else ()
        return {row.id: (*row.aliases, *row.demonyms) for _, row in found}


class _MusiqueParagraph(MusiqueParagraph, MusiqueSupport): ...


class _MusiqueRow(MusiqueRow, MusiqueRelevance, AnsweredRow):
    paragraphs: tuple[_MusiqueParagraph, ...] = Field(min_length=1)
    answerable: Literal[True] = True  # the full set has rows that are not

    @property
    def slice(self) -> str:
        return self.id.partition("__")[0][:4]  # "2hop__85463_33311" is of "2hop"


class MuSiQue(MultiHopBenchmark):
    """MuSiQue's answerable questions; a slice is a number of hops."""

    name, title, licence = "musique", "MuSiQue", "CC-BY-4.0"
    url = "https://github.com/StonyBrookNLP/musique"
    scored_by = "judge against the reference; EM and F1 as metrics/answer.py"
    file, row, f1 = "musique_ans_v1.0_dev.jsonl", _MusiqueRow, staticmethod(musique_f1)


def linked(needed: Sequence[Iterable[str]]) -> list[int]:
    """Groups rows that need a paragraph in common, directly or over others.

    Returns:
        For each row the first row of its group.
    """
    groups, first = list(range(len(needed))), dict[str, int]()
    for row, keys in enumerate(needed):
        joined = {row, *(groups[first.setdefault(key, row)] for key in keys)}
        groups = [min(joined) if group in joined else group for group in groups]
    return groups
