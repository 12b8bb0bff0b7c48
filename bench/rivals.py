"""What else audits without a model: two baselines, and the packages on PyPI that promise to (extra `bench`).

    everything            every answer is refuted
    verbatim              some run of digits of the answer is nowhere in the documents
    corroborate           MIT, 0.1.0: numbers, dates and quotations of the answer against the documents
    opengate-grounding    MIT, 0.1.0: numbers of the answer against the documents and the question
    grounded-check        MIT, 0.1.2: numbers alone, and by default with names, quotations and citations

Each is asked as its documentation says, with the query's documents as its sources.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from reward.offline.rows import AuditRow

Refutes = Callable[[AuditRow], bool]
_DIGITS = re.compile(r"\d+(?:[.,:/]\d+)*")


def rivals() -> Iterator[tuple[str, Refutes]]:
    """Yields name and auditor of each that is installed; says on standard output which are not."""
    yield "everything", lambda row: True
    yield "verbatim", _verbatim
    for load in (_corroborate, _opengate, _grounded):
        try:
            yield from load()
        except ModuleNotFoundError as error:
            print(f"{error.name}: not installed, so left out; uv pip install '.[bench]'")


def _texts(row: AuditRow) -> list[str]:
    return [f"{document.title}\n{document.text}".strip() for document in row.query.documents]


def _verbatim(row: AuditRow) -> bool:
    known = set(_DIGITS.findall("\n".join(_texts(row))))
    return not known.issuperset(_DIGITS.findall(row.response))


def _corroborate() -> Iterator[tuple[str, Refutes]]:
    import corroborate

    yield (
        "corroborate",
        lambda row: not corroborate.check_answer(row.query.query, _texts(row), row.response).ok(),
    )


def _opengate() -> Iterator[tuple[str, Refutes]]:
    from opengate_grounding import check_grounding

    def refutes(row: AuditRow) -> bool:
        return not check_grounding(row.response, _texts(row), question=row.query.query).grounded

    yield "opengate-grounding", refutes


def _grounded() -> Iterator[tuple[str, Refutes]]:
    from grounded import Kind, Source, extract, verify

    def refutes(row: AuditRow, kinds: set[Kind]) -> bool:
        sources = [Source(path=Path(str(i)), raw=text) for i, text in enumerate(_texts(row))]
        return not verify(extract(row.response, kinds=kinds), sources).passed

    default = {Kind.QUOTE, Kind.NUMBER, Kind.CITATION, Kind.ENTITY}
    yield "grounded-check, numbers", lambda row: refutes(row, {Kind.NUMBER})
    yield "grounded-check", lambda row: refutes(row, default)
