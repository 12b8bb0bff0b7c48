"""Wrong on purpose: one number, or one name, exchanged in answers that people left unmarked.

    python -m bench swaps                                   # the rows in tests/data
    python -m bench swaps --data RAGTRUTH --data HOTPOTQA   # other files, in a layout of `bench/answers.py`

Each answer is audited as it is, with one plain number of its own changed by a fifth at most, and with one
name changed, in all its mentions, into a name of another source. What is changed is in the documents, and
what replaces it is neither there nor in the query. So a sound audit refutes every changed answer and none
of the others. Reported with intervals by source: the share of changed numbers and of changed names that is
refuted, the share for which a claim at the changed place is what fails, and the false alarms, with all kinds
of claims and with numbers alone.

What people left unmarked is not always right, so a false alarm is at times the audit's find.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.answers import unmarked_answers
from bench.measure import write_result
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.offline.agreement import OVERALL
from reward.offline.bootstrap import share, summed
from reward.offline.ragtruth import CHECKS
from reward.offline.rows import AuditRow
from reward.types import ClaimState, Outcome, Verdict

_TESTS = Path(__file__).parent.parent / "tests" / "data"
DEFAULT = [
    _TESTS / name
    for name in (
        *("ragtruth", "faithbench_layout", "hotpotqa_cc-by-sa-4.0", "2wikimultihopqa", "musique_cc-by-4.0"),
    )
]
_KINDS = ("number", "name", "date")
_NUMBER = re.compile(r"(?<![\w.,:/$€£%#-])[1-9]\d{1,3}(?![\w%°]|[.,:/-]\d|-\w)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2}(?![\w'\u2019-]| [A-Z])")
# Words that are written like names and state none.
_NO_NAME = re.compile(
    r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|January|February|March|April|May|June|July|August|"
    r"September|October|November|December|Passages?|Documents?|The|This|These|And|But|However|Overall)\b"
)


class Change(StrEnum):
    NONE = "as_is"
    NUMBER = "number"
    NAME = "name"


@dataclass(frozen=True)
class Variant:
    """An answer, exchanged or not; `places` are where the new text is."""

    change: Change
    response: str
    places: tuple[tuple[int, int], ...] = ()


def run(data: Sequence[Path] = ()) -> None:
    read = (row for path in data or DEFAULT for row in unmarked_answers(path))
    rows = list({(row.task_type, row.query.id): row for row in read}.values())
    start = time.perf_counter()
    groups = count(rows)
    samples = {"all": [time.perf_counter() - start]}
    found = {name: _figures(clusters.values()) for name, clusters in groups.items()}
    figures = {"kinds": _KINDS, "checks": CHECKS, "groups": found}
    written = write_result("swaps", samples_s=samples, figures=figures, data=[path.name for path in data])
    for name, one in found.items():
        print(_line(name, one))
    print(written)


def variants(row: AuditRow, names: Iterable[str]) -> Iterator[Variant]:
    """The answer as it is, and exchanged where something in it can be; the same row gives the same.

    Args:
        row: An unmarked answer.
        names: Names of other sources, to choose from.
    """
    yield Variant(Change.NONE, row.response)
    known = _known_text(row)
    yield from _number_changed(row, known)
    yield from _name_changed(row, known, names)


def _known_text(row: AuditRow) -> str:
    """All that the answer may take its facts from."""
    documents = (f"{document.title}\n{document.text}" for document in row.query.documents)
    return "\n".join((row.query.query, *documents))


def _number_changed(row: AuditRow, known: str) -> Iterator[Variant]:
    draw = random.Random(f"number:{row.query.id}")
    found = [one for one in _NUMBER.finditer(row.response) if _stands_in(one[0], known)]
    if not found:
        return
    old = draw.choice(found)
    value = int(old[0])
    near = [new for new in range(value - value // 5 - 2, value + value // 5 + 3) if new > 9]
    new = [str(one) for one in near if str(one) not in known and str(one) not in row.response]
    if new:
        yield _exchanged(row.response, Change.NUMBER, [old], draw.choice(new))


def _name_changed(row: AuditRow, known: str, names: Iterable[str]) -> Iterator[Variant]:
    draw = random.Random(f"name:{row.query.id}")
    found = names_of(row, known)
    if not found:
        return
    old = draw.choice(found)
    words = set(re.findall(r"\w+", known))
    fitting = [one for one in names if len(one.split()) == len(old.split()) and not words & set(one.split())]
    if fitting:
        mentions = list(re.finditer(rf"\b{re.escape(old)}\b", row.response))
        yield _exchanged(row.response, Change.NAME, mentions, draw.choice(fitting))


def names_of(row: AuditRow, known: str) -> list[str]:
    """The names of an answer that its documents hold, in order."""
    found = (one[0] for one in _NAME.finditer(row.response))
    return [name for name in dict.fromkeys(found) if not _NO_NAME.search(name) and _stands_in(name, known)]


def _stands_in(words: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", text) is not None


def _exchanged(response: str, change: Change, old: Sequence[re.Match[str]], new: str) -> Variant:
    text, end = "", 0
    places: list[tuple[int, int]] = []
    for one in old:
        text += response[end : one.start()] + new
        places.append((len(text) - len(new), len(text)))
        end = one.end()
    return Variant(change, text + response[end:], tuple(places))


def count(rows: Sequence[AuditRow]) -> dict[str, dict[str, Counter[str]]]:
    """Counts of each source, by group; their names are those of `_SHARES`."""
    by_source: dict[str, list[str]] = {}
    for row in rows:
        by_source.setdefault(row.cluster, []).extend(names_of(row, _known_text(row)))
    groups: dict[str, dict[str, Counter[str]]] = {}
    for row in rows:
        several = (names for source, names in by_source.items() if source != row.cluster)
        others = sorted({name for names in several for name in names})
        counted = [name for variant in variants(row, others) for name in _counted(row, variant)]
        for group in (OVERALL, row.task_type or OVERALL):
            groups.setdefault(group, {}).setdefault(row.cluster, Counter()).update(counted)
    return groups


_SHARES = {
    "as_is": ("as_is_refuted", "as_is_refuted_by_numbers"),
    "number": ("number_refuted", "number_refuted_there"),
    "name": ("name_refuted", "name_refuted_there"),
}


def _counted(row: AuditRow, variant: Variant) -> Iterator[str]:
    """What one answer counts as."""
    verdict = _audit(row, variant.response)
    refuted, refuted_so = _SHARES[variant.change]
    yield variant.change.value
    if verdict.outcome is Outcome.REFUTED:
        yield refuted
    if variant.change is not Change.NONE:
        is_so = _fails_at(verdict, variant)
    else:
        is_so = _audit(row, variant.response, "number").outcome is Outcome.REFUTED
    if is_so:
        yield refuted_so


def _audit(row: AuditRow, response: str, *kinds: str) -> Verdict:
    config = AuditConfig.model_validate({"checks": CHECKS, "kinds": kinds or _KINDS})
    return lexical_audit(row.query, response, config)


def _fails_at(verdict: Verdict, variant: Variant) -> bool:
    wrong = [found.claim.span for found in verdict.claims if found.state is not ClaimState.SUPPORTED]
    return any(
        span.start < end and start < span.end for span in wrong if span for start, end in variant.places
    )


def _figures(clusters: Collection[Counter[str]]) -> dict[str, Any]:
    sums, shares, intervals = summed(clusters, _shares)
    names = [name for whole, parts in _SHARES.items() for name in (whole, *parts)]
    return {
        "num_sources": len(clusters),
        "counts": {name: sums[name] for name in names},
        "shares": {
            name: {"share": value, "interval": interval and [interval.low, interval.high]}
            for (name, value), interval in zip(shares.items(), intervals.values(), strict=True)
        },
    }


def _shares(sums: Mapping[str, int]) -> Mapping[str, float | None]:
    return {name: share(sums[name], sums[whole]) for whole, parts in _SHARES.items() for name in parts}


def _line(name: str, found: Mapping[str, Any]) -> str:
    said = (
        ("numbers refuted", "number_refuted", "number"),
        ("names refuted", "name_refuted", "name"),
        ("false alarms", "as_is_refuted", "as_is"),
        ("of numbers alone", "as_is_refuted_by_numbers", "as_is"),
    )
    return f"{name}: " + ", ".join(f"{words} {_written(found, *keys)}" for words, *keys in said)


def _written(found: Mapping[str, Any], share: str, whole: str) -> str:
    one = found["shares"][share]
    if one["share"] is None:
        return "-"
    low_high = "" if one["interval"] is None else " [{:.2f}, {:.2f}]".format(*one["interval"])
    return f"{one['share']:.3f}{low_high} of {found['counts'][whole]}"
