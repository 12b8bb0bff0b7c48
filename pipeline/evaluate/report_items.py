"""The items of the page as data for its script, which shows them a page at a time and writes them as text.

    {"benchmarks": [name, ...], "documents": [{"id", "title", "text", "size"}, ...],
     "items": [[benchmark, id, slice, state, passed, judged, total, query, [document, ...], [reference, ...],
                instruction, failure, {score: value}, [generation, ...]], ...]}

Documents stand in the page once. Long texts are cut so that the page stays below a size that browsers open at
once, and the page says how much is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from pipeline.evaluate.benchmark import Item
from pipeline.evaluate.results import ItemResult, JudgedGeneration
from reward.offline.page import inert
from reward.types import ClaimState, Document

_MOST_CHARS = 24_000_000  # of all texts of the page
_LEAST_CHARS, _LARGEST_CHARS = 600, 20_000  # of one text
_MOST_REASON_CHARS = 1_200

Pair = tuple[Item, ItemResult]


def items_data(benchmarks: Mapping[str, Sequence[Pair]], primary: Mapping[str, str]) -> str:
    """The items as JSON that is safe inside a script element.

    Args:
        benchmarks: Items and their results.
        primary: The primary score of each benchmark.
    """
    most = _most_chars([pair for pairs in benchmarks.values() for pair in pairs])
    places: dict[Document, int] = {}
    entries: list[JsonValue] = []
    for number, (name, pairs) in enumerate(benchmarks.items()):
        for item, result in pairs:
            documents: list[JsonValue] = [
                places.setdefault(document, len(places)) for document in item.query.documents
            ]
            entries.append(_item(number, item, result, documents, primary[name], most))
    shown: list[JsonValue] = [_document(document, most) for document in places]
    names: list[JsonValue] = list(benchmarks)
    text = json.dumps(
        {"benchmarks": names, "documents": shown, "items": entries}, ensure_ascii=False, separators=(",", ":")
    )
    return inert(text)


def state_of(result: ItemResult, primary: str) -> str:
    """What became of an item: passed, failed, or unscored."""
    score = result.scores.get(primary)
    return "unscored" if score is None else "passed" if score == 1 else "failed"


def _most_chars(pairs: Sequence[Pair]) -> int:
    """How much of one text is shown, so that all of them fit."""
    lengths = [len(text) for pair in pairs for text in _texts(*pair)]
    share = _MOST_CHARS // max(len(lengths), 1)
    return max(_LEAST_CHARS, min(_LARGEST_CHARS, share)) if sum(lengths) > _MOST_CHARS else _LARGEST_CHARS


def _texts(item: Item, result: ItemResult) -> Iterable[str]:
    yield from (document.text for document in item.query.documents)
    yield from (generation.text for generation in result.generations)


def _item(
    number: int, item: Item, result: ItemResult, documents: list[JsonValue], primary: str, most: int
) -> JsonValue:
    judged = [one.judgement for one in result.generations if one.judgement is not None]
    scores: dict[str, JsonValue] = {
        name: None if value is None else round(value, 4) for name, value in result.scores.items()
    }
    return [
        number,
        item.id,
        item.slice,
        state_of(result, primary),
        sum(judgement.passed for judgement in judged),
        len(judged),
        len(result.generations),
        cut(item.query.query, most),
        documents,
        list(item.references),
        item.instruction or "",
        result.failure,
        scores,
        [_generation(one, most) for one in result.generations],
    ]


def _generation(one: JudgedGeneration, most: int) -> JsonValue:
    judgement = one.judgement
    said: JsonValue = None
    if judgement is not None:
        said = [judgement.passed, judgement.label, cut(judgement.reason, _MOST_REASON_CHARS)]
    audit: JsonValue = None
    if one.verdict is not None:
        doubted: list[JsonValue] = [
            [found.claim.answer, found.state.value, found.consensus]
            for found in one.verdict.claims
            if found.state is not ClaimState.SUPPORTED
        ]
        audit = [one.verdict.outcome.value, one.verdict.num_mentions, doubted]
    unread = cut(one.reply, _MOST_REASON_CHARS) if judgement is None and one.reply is not None else None
    return [one.prompt, cut(one.text, most), one.finish_reason == "length", said, unread, audit]


def _document(document: Document, most: int) -> JsonValue:
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text[:most],
        "size": len(document.text),
    }


def cut(text: str, most: int) -> str:
    """A text, and how much of it is left out."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}\u2026 ({left:,} more characters)"
