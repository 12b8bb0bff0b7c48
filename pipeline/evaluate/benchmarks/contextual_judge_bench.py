"""ContextualJudgeBench: which of two responses is better, by a context? The model under test is the judge.

https://github.com/SalesforceAIResearch/ContextualJudgeBench. Each pair is judged twice, with the positive
response first and second. As by the official `compute_acc`, consistent accuracy is that the positive response
was chosen both times (chance is 25%), consistency that both times the same one was.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from pipeline.data.evaluation_rows import PairRow
from pipeline.data.rows import parse_row
from pipeline.evaluate.benchmark import Benchmark, Item, LabelledResponse, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.majority import Judgement, Scores, majority

_KINDS, _TASKS = ("faithfulness", "completeness", "conciseness"), ("qa", "summ")
SPLITS = ("refusal_answerable", "refusal_unanswerable", *map("_".join, product(_KINDS, _TASKS)))
POSITIVE_FIRST, POSITIVE_SECOND = "positive first", "positive second"
_POSITIVE, _NEGATIVE = "positive", "negative"
_ORDERS = {POSITIVE_FIRST: (_POSITIVE, _NEGATIVE), POSITIVE_SECOND: (_NEGATIVE, _POSITIVE)}
_RESULT = re.compile(r"\*\*Result:\*\*\s*\**([AB])\**\.?\Z")


class ContextualJudgeBench(Benchmark):
    name, title, licence = "contextual_judge_bench", "ContextualJudgeBench", "CC-BY-4.0"
    url = "https://huggingface.co/datasets/Salesforce/ContextualJudgeBench"
    primary, scored_by = "consistent_accuracy", "rule, as the official compute_acc"
    has_answers = False  # they are verdicts on two responses
    texts, official = "contextual_judge_bench", "official_accuracy"

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the pairs of the splits that are there, in the paper's order; see `Benchmark.items`."""
        numbers: Counter[str] = Counter()
        for file in self.published(source, *(f"data/{split}-*.parquet" for split in SPLITS)):
            split = file.stem.partition("-")[0]
            for raw in PairRow.raw_rows(file):
                row, name = parse_row(raw, PairRow), f"{split}-{numbers[split]}"
                numbers[split] += 1
                yield Item(
                    id=name,
                    slice=split,
                    cluster=hashlib.sha256(row.context.encode()).hexdigest()[:16],
                    query=row.queries(raw.place)[0],
                    responses=(
                        LabelledResponse(id=_POSITIVE, text=row.positive_response),
                        LabelledResponse(id=_NEGATIVE, text=row.negative_response),
                    ),
                )

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        texts = {one.id: one.text for one in item.responses}
        return tuple(
            Prompt(name=name, messages=self.chat(style.value, item, response_a=texts[a], response_b=texts[b]))
            for name, (a, b) in _ORDERS.items()
        )

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the model's own choice off the end of what it wrote."""
        found = _RESULT.search(judged_text(prompt.name, reply))
        if found is None:
            return None
        chosen = _ORDERS[prompt.name][found[1] == "B"]
        return Judgement(passed=chosen == _POSITIVE, label=chosen)

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Scores:
        """The official four, by the majority of each order, and what was tied or unread."""
        first, second = majority(judged[POSITIVE_FIRST]), majority(judged[POSITIVE_SECOND])
        verdicts, ties = (first.passed, second.passed), (first.tie, second.tie)
        is_read = None not in verdicts
        unjudged = [one.unjudged for one in (first, second) if one.unjudged is not None]
        return {
            "consistent_accuracy": float(all(verdicts)) if is_read else None,
            "consistency": float(len(set(verdicts)) == 1 and not any(ties)) if is_read else None,
            "positive_first_accuracy": first.passed,
            "positive_second_accuracy": second.passed,
            self.official: float(all(verdicts)) if unjudged else None,
            "tie": float(any(ties)) if is_read else None,
            "unjudged": sum(unjudged) / 2 if unjudged else None,
        }
