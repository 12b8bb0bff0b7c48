"""FACTS Grounding: long answers to requests about one long document; is every sentence borne out by it?

https://huggingface.co/datasets/google/FACTS-grounding-public, CC BY 4.0; Jacovi et al. 2025 (arXiv
2501.03200). 860 public rows in `examples.csv`, with the columns that two loaders use (none of the rows
could be had here; this one is made up):

    system_instruction,user_request,context_document,full_prompt
    Answer from the document only.,When did the mill open?,The mill opened in 1902.,"Answer from ..."

The judge labels each sentence: accurate if all are `supported` or `no_rad`. Where `evaluation_prompts.csv` of
the data set lies beside the rows, its `json` method is the judge's prompt, word by word, as in the paper:

    evaluation_method,evaluation_prompt
    json,"You are ... {{context_document}} ... {{response}}"

Else the prompt is ours, of the same structure, and it also asks whether the response does what was requested:
with Major Issue(s) it is ineligible and not factual, as in the report. (Officially that is another request,
with a reference response of the judge's own.) One judge stands in place of the report's three.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, JudgeRequest, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.prompts import load_texts
from pipeline.evaluate.benchmarks.replies import (
    judged_text,
    read_json,
    schema_of,
    without_fence,
)
from pipeline.evaluate.majority import Judged, Judgement, as_score, majority, majority_scores
from reward.offline.rows import make_query
from reward.offline.tables import read_csv
from reward.samplers import Message
from reward.samplers.special import neutralise
from reward.types import Document, Record

URL = "https://huggingface.co/datasets/google/FACTS-grounding-public"
TEXTS = "facts_grounding"
STYLES = (PromptStyle.PLAIN, PromptStyle.COT)
EXAMPLES, PROMPTS = "examples.csv", "evaluation_prompts.csv"
_COLUMNS = ("system_instruction", "user_request", "context_document")
_METHOD = "json"
_SPACES = re.compile(r"\s*")
_NEEDED, _OPTIONAL = ("{{context_document}}", "{{response}}"), "{{user_request}}"
_GROUNDED = frozenset({"supported", "no_rad"})


Label = Literal["supported", "unsupported", "contradictory", "no_rad"]


class _Sentence(Record):
    sentence: str
    label: Label
    rationale: str
    excerpt: str


class _Verdict(Record):
    sentences: tuple[_Sentence, ...] = Field(min_length=1)
    instruction_following: Literal["No Issues", "Minor Issue(s)", "Major Issue(s)"]


class _OfficialSentence(Record):
    """The official prompt asks for no excerpt with two of the labels."""

    sentence: str
    label: Label
    rationale: str = ""
    excerpt: str | None = None


class _OfficialVerdict(Record):
    sentences: tuple[_OfficialSentence, ...] = Field(min_length=1)


class FactsGrounding(Benchmark):
    """FACTS Grounding with one judge."""

    texts = TEXTS

    card = BenchmarkCard(
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
        judge_text = _official_prompt(file.with_name(PROMPTS))
        for number, (place, cells) in enumerate(_records(file, _COLUMNS)):
            yield _item(place, f"facts-{number}", cells, judge_text)

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest:
        """Document, request and response, by the official prompt where it is there."""
        response = judged_text(prompt.name, generation)
        if item.judge_text is not None:
            return JudgeRequest(messages=(_filled(item.judge_text, item, response),))
        messages = load_texts(TEXTS).render(
            "judge", query=item.query.query, documents=item.query.documents, response=response
        )
        return JudgeRequest(messages=messages, json_schema=schema_of(_Verdict))

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the JSON verdict; one without any sentence says nothing of the response."""
        if item.judge_text is not None:
            official = read_json(_as_one(reply), _OfficialVerdict)
            return None if official is None else _judgement(official.sentences, "")
        verdict = read_json(reply, _Verdict)
        return None if verdict is None else _judgement(verdict.sentences, verdict.instruction_following)

    def by_majority(self, judged: Mapping[str, Sequence[Judged]]) -> Mapping[str, float | None]:
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


def _records(file: Path, columns: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Place and cells of each record of a file that must have these columns."""
    header, records = read_csv(file)
    if missing := [name for name in columns if name not in header]:
        found = f"found {', '.join(header):.200}"
        raise ValueError(f"{file}:1: {missing[0]}: no such column ({found}); use the published file")
    for record in records:
        yield record.place, dict(zip(header, record.cells, strict=True))


def _item(place: str, item_id: str, cells: Mapping[str, str], judge_text: str | None) -> Item:
    instruction, request, document = (cells[name] for name in _COLUMNS)
    if not request.strip() or not document.strip():
        name = _COLUMNS[1 if not request.strip() else 2]
        raise ValueError(f"{place}: {name}: is empty; fix the row or remove it")
    return Item(
        id=item_id,
        slice="all",
        cluster=item_id,
        query=make_query(place, item_id, request, [Document(id="document", text=document)]),
        instruction=instruction.strip() or None,
        judge_text=judge_text,
    )


def _official_prompt(file: Path) -> str | None:
    """The prompt of the `json` method; None where the file is not there."""
    if not file.is_file():
        return None
    columns = ("evaluation_method", "evaluation_prompt")
    prompts = {cells[columns[0]]: cells[columns[1]] for _, cells in _records(file, columns)}
    text = prompts.get(_METHOD, "")
    if missing := [place for place in _NEEDED if place not in text]:
        raise ValueError(
            f"{file}: method {_METHOD!r} never shows {missing[0]}; use the published file, or take it away "
            "to be judged by our prompt"
        )
    return text


def _filled(text: str, item: Item, response: str) -> Message:
    """The prompt with its places filled at once, so that a text that names a place is only a text."""
    (document,) = item.query.documents
    values = {_NEEDED[0]: document.text, _NEEDED[1]: response, _OPTIONAL: item.query.query}
    filled = re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text)
    return Message(role="user", content=neutralise(filled))


def _as_one(reply: str) -> str:
    """The official format as one object: it is an object a sentence, one after the other, or a list of them.

    The official scripts pass over what is not JSON among them; here the whole is then no judgement.
    """
    text = without_fence(reply)
    if text.startswith("["):
        return f'{{"sentences": {text}}}'
    objects, place, decoder = [], 0, json.JSONDecoder()
    while place < len(text):
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return ""
        objects.append(text[place:end])
        spaces = _SPACES.match(text, end)
        place = spaces.end() if spaces else end
    return f'{{"sentences": [{",".join(objects)}]}}'


def _judgement(sentences: Sequence[_Sentence | _OfficialSentence], following: str) -> Judgement:
    faults = [one for one in sentences if one.label not in _GROUNDED]
    is_eligible = following != "Major Issue(s)"
    label = "inaccurate" if faults else "accurate"
    return Judgement(
        passed=is_eligible and not faults,
        label=label if is_eligible else f"ineligible, {label}",
        reason="\n".join(filter(None, [following, *(f"{one.label}: {one.sentence}" for one in faults)])),
    )
