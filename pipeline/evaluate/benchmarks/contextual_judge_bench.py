"""ContextualJudgeBench: which of two responses is better, by a context? The model under test is the judge.

https://github.com/SalesforceAIResearch/ContextualJudgeBench (code Apache-2.0; the data's licence is on its
card, https://huggingface.co/datasets/Salesforce/ContextualJudgeBench); Xu et al. 2025 (arXiv 2503.15620).
2,000 pairs in eight splits. The fields are those that the official loader uses (`main_eval.py`); no rows
could be had here, so this one is made up:

    {"question_id": "q7", "question": "When did the mill open?", "context": "The mill opened in 1902.",
     "positive_response": "In 1902.", "negative_response": "In 1920."}

A folder holds one file a split, `faithfulness_qa.jsonl` or `faithfulness_qa-00000-of-00001.parquet`, or a
single file is given. Each pair is judged twice, with the positive response first and second. As
`compute_acc` has it:

    consistent accuracy     the positive response was chosen both times; chance is 25%
    consistency             both times the same response was chosen
    accuracy, by order      the positive response was chosen when it stood first, or second

With several generations the choice of an order is that of the majority; with one, these are the official
figures. A reply without a choice is no choice and is counted; the official script takes two such replies
for a consistent wrong one, and `official_accuracy` has one for wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from pipeline.data.rows import parse_row
from pipeline.data.values import RawRow, raw_rows
from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, LabelledResponse, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.prompts import load_texts
from pipeline.evaluate.benchmarks.replies import judged_text
from pipeline.evaluate.majority import Judged, Judgement, as_score, majority
from reward.offline.rows import InputRecord, make_query
from reward.types import Document

URL = "https://github.com/SalesforceAIResearch/ContextualJudgeBench"
DATA_URL = "https://huggingface.co/datasets/Salesforce/ContextualJudgeBench"
TEXTS = "contextual_judge_bench"
STYLES = (PromptStyle.PLAIN, PromptStyle.COT)
SPLITS = (
    "refusal_answerable",
    "refusal_unanswerable",
    "faithfulness_qa",
    "faithfulness_summ",
    "completeness_qa",
    "completeness_summ",
    "conciseness_qa",
    "conciseness_summ",
)
POSITIVE_FIRST, POSITIVE_SECOND = "positive first", "positive second"
_POSITIVE, _NEGATIVE = "positive", "negative"
_RESULT = re.compile(r"\*\*Result:\*\*\s*\**([AB])\**\.?\Z")


class _Row(InputRecord):
    question: str
    context: str = Field(min_length=1)
    positive_response: str
    negative_response: str


class ContextualJudgeBench(Benchmark):
    """ContextualJudgeBench in both orders."""

    card = BenchmarkCard(
        name="contextual_judge_bench",
        title="ContextualJudgeBench",
        url=URL,
        licence="see the data's card",
        primary="consistent_accuracy",
        scored_by="rule, as the official compute_acc",
        styles=STYLES,
        prompt_digest=load_texts(TEXTS).digest,
        has_answers=False,  # they are verdicts on two responses
    )

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the pairs of the splits that are there, in the paper's order.

        Raises:
            FileNotFoundError: there is no file of a split.
            ValueError: a row is not what it must be.
        """
        files = [(split, file) for split in SPLITS for file in _files(source, split)]
        if not files:
            raise FileNotFoundError(
                f"{source}: holds no file of a split, such as {SPLITS[2]}.jsonl or {SPLITS[2]}*.parquet; "
                f"save the splits of {DATA_URL} under their names"
            )
        for split, file in files:
            for number, (place, row) in enumerate(_rows(file)):
                yield _item(place, split, f"{split}-{number}", row)

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """Both orders."""
        self.require_style(style)
        texts = {one.id: one.text for one in item.responses}
        return tuple(
            Prompt(
                name=name,
                messages=load_texts(TEXTS).render(
                    style.value,
                    query=item.query.query,
                    documents=item.query.documents,
                    response_a=texts[order[0]],
                    response_b=texts[order[1]],
                ),
            )
            for name, order in _ORDERS.items()
        )

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the model's own choice off the end of what it wrote."""
        found = _RESULT.search(judged_text(prompt.name, reply))
        if found is None:
            return None
        chosen = _ORDERS[prompt.name][found[1] == "B"]
        return Judgement(passed=chosen == _POSITIVE, label=chosen)

    def by_majority(self, judged: Mapping[str, Sequence[Judged]]) -> Mapping[str, float | None]:
        """The official four, by the majority of each order, and what was tied or unread."""
        first, second = majority(judged[POSITIVE_FIRST]), majority(judged[POSITIVE_SECOND])
        verdicts, ties = (first.passed, second.passed), (first.is_tie, second.is_tie)
        is_read = None not in verdicts
        is_answered = bool(first.num_generations and second.num_generations)
        return {
            "consistent_accuracy": float(all(verdicts)) if is_read else None,
            "consistency": float(len(set(verdicts)) == 1 and not any(ties)) if is_read else None,
            "positive_first_accuracy": as_score(first.passed),
            "positive_second_accuracy": as_score(second.passed),
            "official_accuracy": float(all(verdicts)) if is_answered else None,
            "tie": float(any(ties)) if is_read else None,
            "unjudged": _mean(first.unjudged, second.unjudged),
        }


_ORDERS = {POSITIVE_FIRST: (_POSITIVE, _NEGATIVE), POSITIVE_SECOND: (_NEGATIVE, _POSITIVE)}


def _files(source: Path, split: str) -> list[Path]:
    if source.is_file():
        return [source] if source.name.startswith(split) else []
    folders = (source, source / "data")
    names = (f"{split}.jsonl", f"{split}.json", f"{split}*.parquet")
    return sorted(file for folder in folders for name in names for file in folder.glob(name))


def _rows(file: Path) -> Iterator[tuple[str, _Row]]:
    for raw in _parquet_rows(file) if file.suffix == ".parquet" else raw_rows(file):
        yield raw.place, parse_row(raw, _Row)


def _parquet_rows(file: Path) -> Iterator[RawRow]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError:
        fix = "install march-pipeline[parquet] to read Parquet files"
        raise ValueError(f"{file}: pyarrow is not installed; {fix}") from None
    try:
        with ParquetFile(file) as table:
            records = (record for batch in table.iter_batches() for record in batch.to_pylist())
            for number, record in enumerate(records, start=1):
                yield RawRow(f"{file}:{number}", json.dumps(record, default=str))
    except pyarrow.ArrowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{file}: not a Parquet file ({problem:.120}); fetch it again") from error


def _item(place: str, split: str, item_id: str, row: _Row) -> Item:
    query = make_query(place, item_id, row.question, [Document(id="context", text=row.context)])
    return Item(
        id=item_id,
        slice=split,
        cluster=hashlib.sha256(row.context.encode()).hexdigest()[:16],
        query=query,
        responses=(
            LabelledResponse(id=_POSITIVE, text=row.positive_response),
            LabelledResponse(id=_NEGATIVE, text=row.negative_response),
        ),
    )


def _mean(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else (a + b) / 2
