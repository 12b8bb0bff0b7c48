"""FaithJudge's protocol, by which RAGTruth and FaithBench are evaluated (paper, Table 1).

https://github.com/vectara/FaithJudge; Tamber et al. 2025 (arXiv 2505.04847). The model under test answers
for a source. The judge sees the source, up to 6 (RAGTruth) or 10 (FaithBench) answers of other models for
the same source with what people marked in them, and the answer; it says Consistent, Inconsistent or
Invalid. The consistency rate is the share of Consistent: Invalid counts against the model
(`generate_table.py`).

Three things are ours: the prompts' words, since the repository has no licence; verdicts in JSON in place of
"Final classification: ..."; and that a verdict which cannot be read is counted apart. The official script
takes it for Inconsistent; `consistent_unparsed_is_inconsistent` is the rate by that rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.evaluate.benchmark import (
    Benchmark,
    Item,
    JudgeRequest,
    LabelledResponse,
    Prompt,
    PromptStyle,
)
from pipeline.evaluate.benchmarks.prompts import load_texts
from pipeline.evaluate.benchmarks.replies import judged_text, read_json, schema_of
from pipeline.evaluate.majority import Judged, Judgement, as_score, majority, majority_scores
from reward.types import Record

TEXTS = "faithjudge"
STYLES = (PromptStyle.PLAIN, PromptStyle.COT)
SCORED_BY = "judge, by FaithJudge's protocol; rates as its generate_table.py"
CONSISTENT, INVALID = "Consistent", "Invalid"
# What the judge calls the text, and when it is none, by task.
_NOUNS = {
    "qa": ("response", "responses"),
    "summary": ("summary", "summaries"),
    "data2txt": ("overview", "overviews"),
}
_INVALID_WHEN = {
    "qa": "it does not answer the question in any meaningful way",
    "summary": "it does not summarise the source",
    "data2txt": "it does not cover the data in any meaningful way",
}


class _Verdict(Record):
    reasoning: str = Field(description="Why, before the classification.")
    classification: Literal["Consistent", "Inconsistent", "Invalid"]


class FaithJudgeBenchmark(Benchmark):
    """What RAGTruth and FaithBench share; a subclass reads the files."""

    judge_chat: str  # the judge's chat in prompts/faithjudge.yaml
    texts = TEXTS

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest:
        """Source, labelled answers and the answer; one of the very same text is left out, as officially."""
        text = judged_text(prompt.name, generation)
        shown = [one for one in item.responses if one.text.strip() != text]
        messages = load_texts(TEXTS).render(
            self.judge_chat,
            task=item.slice,
            noun=_NOUNS[item.slice][0],
            nouns=_NOUNS[item.slice][1],
            invalid=_INVALID_WHEN[item.slice],
            query=item.query.query,
            documents=item.query.documents,
            annotated=shown,
            response=text,
        )
        return JudgeRequest(messages=messages, json_schema=schema_of(_Verdict))

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the JSON verdict."""
        verdict = read_json(reply, _Verdict)
        if verdict is None:
            return None
        passed = verdict.classification == CONSISTENT
        return Judgement(passed=passed, label=verdict.classification, reason=verdict.reasoning)

    def by_majority(self, judged: Mapping[str, Sequence[Judged]]) -> Mapping[str, float | None]:
        """`consistent` by majority, the official variant of it, and what was Invalid."""
        (generations,) = judged.values()
        found = majority(generations)
        official = found.model_copy(update={"num_judged": found.num_generations})
        labels = [one.judgement.label for one in generations if one.judgement is not None]
        return {
            **majority_scores(generations, "consistent"),
            "consistent_unparsed_is_inconsistent": as_score(official.passed),
            "invalid": labels.count(INVALID) / len(labels) if labels else None,
        }


def labelled(response_id: str, text: str, *, consistent: bool, notes: Sequence[str]) -> LabelledResponse:
    """An answer with what people marked in it, notes in one line each."""
    tidy = tuple(" ".join(note.split()) for note in notes)
    return LabelledResponse(id=response_id, text=text.strip(), consistent=consistent, notes=tidy)
