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
with a reference response of the judge's own.) One judge takes the place of the report's three.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from pipeline.evaluate.benchmark import Benchmark, Item, JudgeRequest, Prompt
from pipeline.evaluate.benchmarks.files import published, rows
from pipeline.evaluate.benchmarks.replies import JudgeVerdict, judged_text, read_json, without_fence
from pipeline.evaluate.majority import Judgement, majority, majority_scores
from reward.offline.rows import InputRecord, make_query
from reward.samplers import Message
from reward.samplers.special import neutralise
from reward.types import Document, Record

EXAMPLES, PROMPTS = "examples.csv", "evaluation_prompts.csv"
_NEEDED, _OPTIONAL = ("{{context_document}}", "{{response}}"), "{{user_request}}"


class _Row(InputRecord):
    system_instruction: str
    user_request: Annotated[str, Field(pattern=r"\S")]
    context_document: Annotated[str, Field(pattern=r"\S")]


class _Method(InputRecord):
    evaluation_method: str
    evaluation_prompt: str


class _OfficialSentence(Record):
    """The official prompt asks for no excerpt with two of the labels."""

    sentence: str
    label: Literal["supported", "unsupported", "contradictory", "no_rad"]
    rationale: str = ""
    excerpt: str | None = None


class _Sentence(_OfficialSentence):
    rationale: str
    excerpt: str


class _OfficialVerdict(JudgeVerdict):
    sentences: tuple[_OfficialSentence, ...] = Field(min_length=1)
    instruction_following: str = ""

    @property
    def judgement(self) -> Judgement:
        faults = [one for one in self.sentences if one.label not in ("supported", "no_rad")]
        is_eligible = self.instruction_following != "Major Issue(s)"
        label = "inaccurate" if faults else "accurate"
        reasons = [self.instruction_following, *(f"{one.label}: {one.sentence}" for one in faults)]
        return Judgement(
            passed=is_eligible and not faults,
            label=label if is_eligible else f"ineligible, {label}",
            reason="\n".join(filter(None, reasons)),
        )


class _Verdict(_OfficialVerdict):
    sentences: tuple[_Sentence, ...] = Field(min_length=1)
    instruction_following: Literal["No Issues", "Minor Issue(s)", "Major Issue(s)"]


class FactsGrounding(Benchmark):
    """FACTS Grounding with one judge."""

    name, title, licence = "facts_grounding", "FACTS Grounding", "CC-BY-4.0"
    url = "https://huggingface.co/datasets/google/FACTS-grounding-public"
    primary, scored_by = "factual", "judge, by the structure of the official json method"
    texts, verdict = "facts_grounding", _Verdict

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the rows of `examples.csv`, or of the folder that holds it; see `Benchmark.items`."""
        (file,) = published(source, EXAMPLES, url=self.url, renamed=True)
        judge_text = _official_prompt(file.with_name(PROMPTS))
        for number, (place, row) in enumerate(rows(file, _Row)):
            name, documents = f"facts-{number}", [Document(id="document", text=row.context_document)]
            yield Item(
                id=name,
                slice="all",
                cluster=name,
                query=make_query(place, name, row.user_request, documents),
                instruction=row.system_instruction.strip() or None,
                judge_text=judge_text,
            )

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest | None:
        """Document, request and response, by the official prompt where it is there."""
        if item.judge_text is None:
            return super().judge_request(item, prompt, generation)
        response, (document,) = judged_text(prompt.name, generation), item.query.documents
        values = {_NEEDED[0]: document.text, _NEEDED[1]: response, _OPTIONAL: item.query.query}
        # All places at once, so that a text that names a place is only a text.
        places = re.compile("|".join(map(re.escape, values)))
        filled = places.sub(lambda found: values[found[0]], item.judge_text)
        return JudgeRequest(messages=(Message(role="user", content=neutralise(filled)),))

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the JSON verdict; one without any sentence says nothing of the response."""
        if item.judge_text is None:
            return super().read_judgement(item, prompt, reply)
        official = read_json(_as_one(reply), _OfficialVerdict)
        return None if official is None else official.judgement

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Mapping[str, float | None]:
        """`factual` by majority; `grounded` leaves eligibility out (the report's unadjusted score)."""
        (generations,) = judged.values()
        labels = [one.label for one in generations if one is not None]
        grounded = sum(not label.endswith("inaccurate") for label in labels)
        unadjusted = replace(majority(generations), num_passed=grounded)
        ineligible = sum(label.startswith("ineligible") for label in labels)
        return {
            **majority_scores(generations, "factual"),
            "grounded": unadjusted.passed,
            "ineligible": ineligible / len(labels) if labels else None,
        }


def _official_prompt(file: Path) -> str | None:
    """The prompt of the `json` method; None where the file is not there."""
    if not file.is_file():
        return None
    texts = {row.evaluation_method: row.evaluation_prompt for _, row in rows(file, _Method)}
    text = texts.get("json", "")
    if missing := [place for place in _NEEDED if place not in text]:
        raise ValueError(
            f"{file}: method 'json' never shows {missing[0]}; use the published file, or take it away to be "
            "judged by our prompt"
        )
    return text


def _as_one(reply: str) -> str:
    """The official format as one object: it is an object a sentence, one after the other, or a list of them.

    The official scripts pass over what is not JSON among them; here the whole is then no judgement.
    """
    left, objects = without_fence(reply), []
    if left.startswith("["):
        return f'{{"sentences": {left}}}'
    while left:
        try:
            _, end = json.JSONDecoder().raw_decode(left)
        except (ValueError, RecursionError):
            return ""
        objects.append(left[:end])
        left = left[end:].lstrip()
    return f'{{"sentences": [{",".join(objects)}]}}'
