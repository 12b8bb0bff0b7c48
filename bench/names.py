"""Names without a model: exchanged names found, answers flagged for nothing, and speed.

The answers are those that people left unmarked in the RAGTruth slice of the tests, as they are and with one
name exchanged for a name of another source. Nearly every flag of an answer as it is is a false alarm.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from bench.measure import in_turn, write_result
from reward.claims.names import Name, Names
from reward.offline.rows import RowFormat, read_rows
from reward.types import RagQuery

_SLICE = Path(__file__).parent.parent / "tests" / "data" / "ragtruth"
_NAME = re.compile(r"(?<=[a-z,] )([A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2})(?=[ ,.;])")
_ROUNDS = 5
_SEED = 7
_NAMES = Names()


def unsupported(query: RagQuery, response: str) -> list[Name]:
    """The names of a response that neither its documents nor its query hold."""
    asked = query.documents[0].model_copy(update={"id": "query", "title": "", "text": query.query})
    lookup, of_query = _NAMES.lookup(query.documents), _NAMES.lookup([asked])
    names = _NAMES.find(response, query)
    return [name for name in names if lookup.find(name) is None and of_query.find(name) is None]


def exchanged(rows: list[tuple[RagQuery, str]]) -> list[tuple[RagQuery, str, str]]:
    """Responses with one name exchanged for one whose words their documents do not hold, and that name."""
    rng = random.Random(_SEED)
    texts = ["\n".join(document.text for document in query.documents) for query, _ in rows]
    names = [
        {name for name in _NAME.findall(response) if name in text}
        for (_, response), text in zip(rows, texts, strict=True)
    ]
    made = []
    for (query, response), text, own in zip(rows, texts, names, strict=True):
        others = sorted({n for some in names for n in some if not any(word in text for word in n.split())})
        if own and others:
            new = rng.choice(others)
            made.append((query, response.replace(rng.choice(sorted(own)), new), new))
    return made


def run() -> None:
    """Measures and writes `names.json`."""
    rows = [
        (row.query, row.response) for row in read_rows(_SLICE, RowFormat.RAGTRUTH) if row.human_spans == ()
    ]
    swaps = exchanged(rows)
    flagged = sum(bool(unsupported(query, response)) for query, response in rows)
    caught = sum(
        any(word in name.text for name in unsupported(query, response) for word in new.split())
        for query, response, new in swaps
    )

    def once() -> None:
        for query, response in rows:
            unsupported(query, response)

    samples = in_turn({"names": once}, rounds=_ROUNDS)
    figures = {
        "responses": len(rows),
        "flagged": flagged,
        "exchanged": len(swaps),
        "exchanged_found": caught,
        "responses_per_s": len(rows) / min(samples["names"]),
    }
    path = write_result("names", samples_s=samples, figures=figures)
    print(f"{path}: {figures}")
