"""How fast the audit without a model is: answers a second on one core, and seconds for megabytes of input.

    known     the documents of each answer were seen before, as in a training or a benchmark; so were most of
              its names and numbers, in other answers
    new       each document is seen for the first time; several answers are about one

No answer was seen before. Seconds of the processor are counted, so that other work of the machine does not
count; more than one core is never used.
Both on the RAGTruth slice of the tests, with all kinds of claims and with numbers alone. The megabytes are
prose with numbers and names, and shapes that a careless pattern is slow on; as documents with a short answer,
and as the answer itself, where the bounds of the settings are raised to let it in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import in_turn, write_result
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.offline.inputs import RowFormat, read_rows
from reward.offline.rows import AuditRow
from reward.types import Document, RagQuery

_SLICE = Path(__file__).parent.parent / "tests" / "data" / "ragtruth"
_ROUNDS = 5
_MEGABYTE = 1_000_000  # characters
_KINDS = ("number", "name", "date")
_SHAPES = {
    "digits": "1 ",
    "one number": "1",
    "groups": "1,000,",
    "capitals": "Ab ",
    "one word": "Ab",
    "initials": "A. ",
    "titles": '"Ab Cd" ',
    "number words": "twenty-one hundred and ",
    "times": "5:30 pm to ",
    "spaces": " ",
    "signs": "-+/.:,",
    "newlines": "\n",
    "open brackets": "(",
    "brackets": ")(",
    "commas": "1,",
    "lists": "Ab, ",
    "headings": "# Ab\n",
    "bold words": "**Ab** ",
    "dates": "3 May 2021, 5/3/2021 ",
    "months": "in May ",
    "halves": "half ",
    "vulgar fractions": "\u00bd",
    "Roman numerals": "XIV ",
    "wide spaces": "1\u2003",
    "emoji": "\U0001f6001",
    "hyphens": "a-",
    "apostrophes": "A'",
    "accents": "e\u0301",
}


def run() -> None:
    """Measures and writes `lexical.json`."""
    rows = list(read_rows(_SLICE, RowFormat.RAGTRUTH))
    samples = in_turn(
        {
            "known": _Anew(rows, _config(*_KINDS), documents=False),
            "known, numbers": _Anew(rows, _config("number"), documents=False),
            "new": _Anew(rows, _config(*_KINDS), documents=True),
        },
        rounds=_ROUNDS,
        clock=time.process_time,
    )
    seconds = {name: _seconds(audit) for name, audit in _megabytes(rows).items()}
    figures = {
        "kinds": _KINDS,
        "responses": len(rows),
        "responses_per_s": {name: len(rows) / min(found) for name, found in samples.items()},
        "megabyte_s": seconds,
        "slowest_megabyte_s": max(seconds.values()),
    }
    path = write_result("lexical", samples_s=samples, figures=figures)
    print(f"{path}: {figures}")


def _config(*kinds: str, **changes: Any) -> AuditConfig:
    return AuditConfig.model_validate({"kinds": kinds, **changes})


def _all(rows: Sequence[AuditRow], config: AuditConfig) -> None:
    for row in rows:
        lexical_audit(row.query, row.response, config)


class _Anew:
    """Audits the rows with answers, and perhaps documents, that no earlier call has seen."""

    def __init__(self, rows: Sequence[AuditRow], config: AuditConfig, *, documents: bool) -> None:
        calls = range(_ROUNDS + 1)  # in_turn warms up once
        self._rows = iter(
            [[_changed(row, "!" * call, documents=documents) for row in rows] for call in calls]
        )
        self._config = config

    def __call__(self) -> None:
        _all(next(self._rows), self._config)


def _changed(row: AuditRow, mark: str, *, documents: bool) -> AuditRow:
    row = row.model_copy(update={"response": f"{row.response} {mark}"})
    if not documents:
        return row
    changed = tuple(
        document.model_copy(update={"text": f"{document.text} {mark}"}) for document in row.query.documents
    )
    return row.model_copy(update={"query": row.query.model_copy(update={"documents": changed})})


def _megabytes(rows: Sequence[AuditRow]) -> dict[str, Callable[[], object]]:
    """One audit for each shape and place of a megabyte."""
    texts = [document.text for row in rows for document in row.query.documents]
    prose = _filled("\n".join(dict.fromkeys(texts)) + "\n")
    shapes = {"prose": prose} | {name: _filled(piece) for name, piece in _SHAPES.items()}
    config = _config(*_KINDS, max_response_chars=_MEGABYTE, max_claims=512)
    short, answer = "50 people came to Oslo in May 2021.", rows[0].response
    return {
        f"{name}, {place}": partial(lexical_audit, _query(document), response, config)
        for name, text in shapes.items()
        for place, document, response in (("documents", text, answer), ("answer", short, text))
    }


def _filled(piece: str) -> str:
    return (piece * (_MEGABYTE // len(piece) + 1))[:_MEGABYTE]


def _query(text: str) -> RagQuery:
    return RagQuery(id="1", query="What is said?", documents=(Document(id="a", text=text),))


def _seconds(audit: Callable[[], object]) -> float:
    start = time.process_time()
    audit()
    return time.process_time() - start
