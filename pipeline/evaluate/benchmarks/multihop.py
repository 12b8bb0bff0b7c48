"""HotpotQA, 2WikiMultihopQA and MuSiQue: short answers to questions that take several documents.

`pipeline/data/` has URL, licence, example rows and reader of each. A judge holds each answer against the
reference; beside its accuracy are exact match and F1 as the official scripts have them:

    HotpotQA   hotpot_evaluate_v1.py (github.com/hotpotqa/hotpot at 3635853); one answer
    2Wiki      2wikimultihop_evaluate_v1.1.py (github.com/Alab-NII/2wikimultihop at 13800e5); the same two
               functions, and the best over the answer and its aliases
    MuSiQue    metrics/answer.py (github.com/StonyBrookNLP/musique at 922ac98); the best over answer and
               aliases; "yes" and "no" are words like others, and two empty answers agree

All three normalise alike, so that "3.5" equals "35" and "5%" equals "$5": they decide nothing.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.data.musique import MusiqueRow
from pipeline.data.rows import MultiHopRow, parse_row
from pipeline.data.twowiki import HotpotRow, TwoWikiRow
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import Benchmark, Item, JudgeVerdict, PromptStyle
from pipeline.evaluate.benchmarks.prompts import judged_text, last_answer
from pipeline.evaluate.majority import Judgement, Scores
from pipeline.statistics import linked
from reward.offline.rows import InputRecord, read_records

NUM_ROWS = 500  # of the development sets, as in the paper: the test sets have no answers
_ALIASES_FILE = "id_aliases.json"
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})

Score = Callable[[str, str], float]


def normalise(text: str) -> str:
    """The scripts' `normalize_answer`: no case, ASCII punctuation, articles. Example: "The 3.5%" is "35"."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> float:
    """1 if the two are the same once normalised; of all three scripts."""
    return float(normalise(prediction) == normalise(gold))


def hotpot_f1(prediction: str, gold: str) -> float:
    """Overlap of words; 0 where one side is yes, no or noanswer and the other is not the same."""
    ours, theirs = normalise(prediction), normalise(gold)
    if ours != theirs and not _CLOSED.isdisjoint((ours, theirs)):
        return 0.0
    return _f1(ours.split(), theirs.split())


def musique_f1(prediction: str, gold: str) -> float:
    """Overlap of words; 1 where both hold none."""
    ours, theirs = normalise(prediction).split(), normalise(gold).split()
    return _f1(ours, theirs) if ours and theirs else float(ours == theirs)


def _f1(prediction: Sequence[str], gold: Sequence[str]) -> float:
    num_same = (Counter(prediction) & Counter(gold)).total()
    if num_same == 0:
        return 0.0
    precision, recall = num_same / len(prediction), num_same / len(gold)
    return 2 * precision * recall / (precision + recall)


def em_and_f1(text: str, references: Sequence[str], f1: Score = hotpot_f1) -> Scores:
    """The best over the references, of the last "Answer:" line or all of a text; None without a reference."""
    answer, scores = last_answer(text) or text, {"em": exact_match, "f1": f1}
    return {
        name: max((score(answer, gold) for gold in references), default=None)
        for name, score in scores.items()
    }


class _Verdict(JudgeVerdict):
    reasoning: str = Field(description="Why, before the verdict.")
    verdict: Literal["correct", "incorrect"]

    @property
    def judgement(self) -> Judgement:
        return Judgement(passed=self.verdict == "correct", label=self.verdict, reason=self.reasoning)


class _Aliases(InputRecord):
    """{"Q_id": "Q30", "aliases": ["USA", "United States"], "demonyms": ["American"]}"""

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
            (query,), irrelevant = row.queries(raw.place), row.irrelevant()
            found.append((row, query))
            texts = enumerate(one.text for one in query.documents)
            needed.append([text for i, text in texts if irrelevant is not None and i not in irrelevant])
        for (row, query), cluster in zip(found, linked(needed), strict=True):
            names = (*row.answers, *aliases.get(row.answer_id or "", ()))
            yield Item(
                id=row.id,
                slice=row.slice,
                cluster=found[cluster][0].id,
                query=query,
                references=tuple(dict.fromkeys(names)),
            )

    def measured(self, item: Item, prompt: str, generation: str) -> Scores:
        """Official EM and F1 of the last "Answer:" line, or of all without one; they need no judge."""
        return em_and_f1(judged_text(prompt, generation), item.references, type(self).f1)


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
