"""HotpotQA, 2WikiMultihopQA and MuSiQue: short answers to questions that take several documents.

`pipeline/data/` has URL, licence, example rows and reader of each. The files are those of the development
sets, since the test sets have no answers: HotpotQA's distractor setting (ten paragraphs, of which two are
needed), 2WikiMultihopQA (ten, of which two or four) and MuSiQue's answerable questions (twenty, of which two
to four). The release of 2Wiki has a file with aliases of the answers, which is read where it lies beside the
rows, one object a line:

    {"Q_id": "Q30", "aliases": ["USA", "United States"], "demonyms": ["American"]}

The model is given the question and its paragraphs and answers in one of three styles (paper, Table 4); a
judge holds each answer against the reference. The paper takes the first 500 rows of the development sets.
Beside the judge's accuracy stand the official EM and F1 of the answer line, as means over the generations,
and `numeric_em` for references that are numbers (`pipeline/evaluate/official_qa.py`).

The ten examples of the 10-shot style are rows of 2WikiMultihopQA's train split with the paragraphs that they
need, for all three benchmarks. One that shares its question or a paragraph with an item is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.data.hotpotqa import HotpotRow
from pipeline.data.musique import MusiqueRow
from pipeline.data.rows import MultiHopRow, parse_row
from pipeline.data.twowiki import TwoWikiRow
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import Benchmark, Item, PromptStyle
from pipeline.evaluate.benchmarks.prompts import JudgeVerdict, judged_text, last_answer
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.official_qa import Score, best_of, exact_match, hotpot_f1, musique_f1, numeric_match
from reward.offline.rows import InputRecord, read_records

NUM_ROWS = 500
_ALIASES_FILE = "id_aliases.json"


class _Verdict(JudgeVerdict):
    reasoning: str = Field(description="Why, before the verdict.")
    verdict: Literal["correct", "incorrect"]

    @property
    def judgement(self) -> Judgement:
        return Judgement(passed=self.verdict == "correct", label=self.verdict, reason=self.reasoning)


class _Aliases(InputRecord):
    id: str = Field(alias="Q_id")
    aliases: tuple[str, ...]
    demonyms: tuple[str, ...]


class MultiHopBenchmark(Benchmark):
    """One of the three; a subclass says what a row is."""

    primary = "accuracy"
    styles = tuple(PromptStyle)
    texts, verdict = "multihop_qa", _Verdict
    file: ClassVar[str]  # as it is published
    row: ClassVar[type[MultiHopRow]]
    f1: ClassVar[Score]

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the first rows of the file, or of the folder that holds it; see `Benchmark.items`."""
        (file,) = self.published(source, self.file)
        beside = file.with_name(_ALIASES_FILE)
        named = read_records(beside, _Aliases) if beside.is_file() else ()
        aliases = {one.id: (*one.aliases, *one.demonyms) for _, one in named}
        found, needed = [], []
        for raw in islice(raw_rows(file), NUM_ROWS):
            row = parse_row(raw, self.row)
            if not row.answers:
                raise ValueError(f"{raw.place}: answer: none is known; give the answerable development set")
            (query,) = row.queries(raw.place)
            irrelevant = row.irrelevant()
            texts = [one.text for one in query.documents]
            found.append((row, query))
            needed.append(
                [] if irrelevant is None else [t for i, t in enumerate(texts) if i not in irrelevant]
            )
        for (row, query), cluster in zip(found, linked(needed), strict=True):
            names = (*row.answers, *aliases.get(row.answer_id or "", ()))
            yield Item(
                id=row.id,
                slice=row.slice,
                cluster=found[cluster][0].id,
                query=query,
                references=tuple(dict.fromkeys(names)),
            )

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """Official EM and F1 of the last "Answer:" line, or of all without one; they need no judge."""
        text = judged_text(prompt, generation)
        answer = last_answer(text) or text
        return {
            "em": best_of(exact_match, answer, item.references),
            "f1": best_of(type(self).f1, answer, item.references),
            "numeric_em": numeric_match(answer, item.references),
        }


class HotpotQA(MultiHopBenchmark):
    """HotpotQA in the distractor setting; the supporting facts are not asked for."""

    name, title, licence = "hotpotqa", "HotpotQA", "CC-BY-SA-4.0"
    url = "https://hotpotqa.github.io"
    scored_by = "judge against the reference; EM and F1 as hotpot_evaluate_v1.py"
    file, row, f1 = "hotpot_dev_distractor_v1.json", HotpotRow, hotpot_f1


class TwoWiki(MultiHopBenchmark):
    """2WikiMultihopQA; EM and F1 are the best over the answer and its aliases."""

    name, title, licence = "2wikimultihopqa", "2WikiMultihopQA", "Apache-2.0"
    url = "https://github.com/Alab-NII/2wikimultihop"
    scored_by = "judge against the reference; EM and F1 as 2wikimultihop_evaluate_v1.1.py"
    file, row, f1 = "dev.json", TwoWikiRow, hotpot_f1


class MuSiQue(MultiHopBenchmark):
    """MuSiQue's answerable questions; a slice is a number of hops."""

    name, title, licence = "musique", "MuSiQue", "CC-BY-4.0"
    url = "https://github.com/StonyBrookNLP/musique"
    scored_by = "judge against the reference; EM and F1 as metrics/answer.py"
    file, row, f1 = "musique_ans_v1.0_dev.jsonl", MusiqueRow, musique_f1


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
