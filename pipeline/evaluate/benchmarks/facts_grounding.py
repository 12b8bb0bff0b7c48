"""FACTS Grounding: long answers to requests about one long document; is every sentence borne out by it?

https://huggingface.co/datasets/google/FACTS-grounding-public, CC BY 4.0; Jacovi et al. 2025 (arXiv
2501.03200). 860 public rows in `examples.csv`, with the columns that two loaders use (none of the rows
could be had here; this one is made up):

    system_instruction,user_request,context_document,full_prompt
    Answer from the document only.,When did the mill open?,The mill opened in 1902.,"Answer from ..."

The judge labels each sentence, after the official `json` method of `evaluation_prompts.csv`: accurate if
all are `supported` or `no_rad`. A response with Major Issue(s) in doing what was asked is ineligible and
counts as not factual, as in the report. Ours are the prompts' words, one request for both questions
(officially two, the second with a reference response of the judge's own beside it), and one judge in place
of three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.evaluate.benchmark import (
    BenchmarkCard,
    Item,
    Judged,
    Judgement,
    JudgeRequest,
    Prompt,
    PromptStyle,
)
from pipeline.evaluate.benchmarks.prompts import load_texts, require_style
from pipeline.evaluate.benchmarks.replies import judged_text, prompt_name, read_json, schema_of
from pipeline.evaluate.majority import as_score, majority, majority_scores
from reward.offline.rows import make_query
from reward.offline.tables import read_csv
from reward.types import Document, Record

URL = "https://huggingface.co/datasets/google/FACTS-grounding-public"
TEXTS = "facts_grounding"
STYLES = (PromptStyle.PLAIN, PromptStyle.COT)
EXAMPLES = "examples.csv"
_COLUMNS = ("system_instruction", "user_request", "context_document")
_GROUNDED = frozenset({"supported", "no_rad"})


class _Sentence(Record):
    sentence: str
    label: Literal["supported", "unsupported", "contradictory", "no_rad"]
    rationale: str
    excerpt: str


class _Verdict(Record):
    sentences: tuple[_Sentence, ...] = Field(min_length=1)
    instruction_following: Literal["No Issues", "Minor Issue(s)", "Major Issue(s)"]

    @property
    def is_accurate(self) -> bool:
        return all(one.label in _GROUNDED for one in self.sentences)

    @property
    def is_eligible(self) -> bool:
        return self.instruction_following != "Major Issue(s)"

    @property
    def label(self) -> str:
        accurate = "accurate" if self.is_accurate else "inaccurate"
        return accurate if self.is_eligible else f"ineligible, {accurate}"


class FactsGrounding:
    """FACTS Grounding with one judge."""

    @property
    def card(self) -> BenchmarkCard:
        """What it is."""
        return BenchmarkCard(
            name="facts_grounding",
            title="FACTS Grounding",
            url=URL,
            licence="CC-BY-4.0",
            primary="factual",
            scored_by="judge, by the structure of the official json method",
            styles=STYLES,
            prompt_digest=load_texts(TEXTS).digest,
        )

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the rows of `examples.csv`, or of the folder that holds it.

        Raises:
            FileNotFoundError: the file is not there.
            ValueError: a column is missing, or a record is not what it must be.
        """
        file = source / EXAMPLES if source.is_dir() else source
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file; it is published at {URL}")
        header, records = read_csv(file)
        if missing := [name for name in _COLUMNS if name not in header]:
            found = f"found {', '.join(header):.200}"
            raise ValueError(f"{file}:1: {missing[0]}: no such column ({found}); use the published file")
        for number, record in enumerate(records):
            cells = dict(zip(header, record.cells, strict=True))
            yield _item(record.place, f"facts-{number}", *(cells[name] for name in _COLUMNS))

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """One chat: the row's own instruction, its document and its request."""
        require_style(self.card.name, style, STYLES)
        messages = load_texts(TEXTS).render(
            style.value,
            instruction=item.instruction or "",
            query=item.query.query,
            documents=item.query.documents,
        )
        return (Prompt(name=prompt_name(style), messages=messages),)

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest:
        """Document, request and response; both questions at once."""
        messages = load_texts(TEXTS).render(
            "judge",
            query=item.query.query,
            documents=item.query.documents,
            response=judged_text(prompt.name, generation),
        )
        return JudgeRequest(messages=messages, json_schema=schema_of(_Verdict))

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the JSON verdict; one without any sentence says nothing of the response."""
        verdict = read_json(reply, _Verdict)
        if verdict is None:
            return None
        faults = [f"{one.label}: {one.sentence}" for one in verdict.sentences if one.label not in _GROUNDED]
        passed = verdict.is_accurate and verdict.is_eligible
        reason = "\n".join([verdict.instruction_following, *faults])
        return Judgement(passed=passed, label=verdict.label, reason=reason)

    def scores(self, item: Item, judged: Mapping[str, Sequence[Judged]]) -> Mapping[str, float | None]:
        """`factual` by majority; `grounded` leaves eligibility out (the report's unadjusted score)."""
        (generations,) = judged.values()
        labels = [one.judgement.label for one in generations if one.judgement is not None]
        grounded = sum(not label.endswith("inaccurate") for label in labels)
        unadjusted = majority(generations).model_copy(update={"num_passed": grounded})
        ineligible = sum(label.startswith("ineligible") for label in labels)
        return {
            **majority_scores(generations, "factual"),
            "grounded": as_score(unadjusted.passed),
            "ineligible": ineligible / len(labels) if labels else None,
        }


def _item(place: str, item_id: str, instruction: str, request: str, document: str) -> Item:
    if not request.strip() or not document.strip():
        name = _COLUMNS[1 if not request.strip() else 2]
        raise ValueError(f"{place}: {name}: is empty; mend the row or remove it")
    query = make_query(place, item_id, request, [Document(id="document", text=document)])
    told = instruction.strip() or None
    return Item(id=item_id, slice="all", cluster=item_id, query=query, instruction=told)
