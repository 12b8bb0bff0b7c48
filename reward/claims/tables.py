"""Tables of a text: lines with vertical bars, as Markdown has them, or with tabs.

Tables of HTML and comma-separated lines are such tables once they are laid out (`laid_out`); objects of JSON
and paragraphs of "key: value" lines are rows, whose keys are the heads of columns.

The first lines without values are the heads of columns, and so are all lines above a rule (`---`). The first
cell of a line is the head of its row. A line with nothing but this cell is a heading of the rows below it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter

from reward.claims.names.lexicon import fold, stem
from reward.claims.numbers.vocabulary import TABLES

_TABLE = re.compile(r"(?:^[^\n|]*\|[^\n]*(?:\n|\Z)){2,}|(?:^[^\n\t]*\t[^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_LINE = re.compile(r"[^\n]+")
_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
_WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_]+|%")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_VALUE = re.compile(
    r"[^\w.]*(?:[^\W\d_]{1,3}[ $€£]+)?\W*\d[\d.,]*\W*(?:[^\W\d_]+\W*){0,2}"
)  # "US$ 5 million"
_NOTE = re.compile(
    r"\(\d\)|\*+|(?:(?<=[^\W\d_]{3})|(?<=\)))[\u00b9\u00b2\u00b3]|(?<=[^\W\d_]{4})\d$|(?<=\))\d$"
)  # of a footnote
_NON = re.compile(r"\b([Nn]on)[-\u2010\u2011\u2013 ](?=\w)")
_A_YEAR = re.compile(r"(?:FY ?|(?:fiscal|year) )?(?:1[89]|20)\d\d(?: ?\(\w\))?", re.IGNORECASE)
_HEADS = re.compile(
    r"\(|(?:(?:fiscal )?years?|quarters?|months?|periods?|weeks?|as|for)\b|.*:$|$", re.IGNORECASE
)
_ITEMS = re.compile(r"[,;/]| and | or | und | et | y ")
_BESIDE = re.compile(r"\([^()]*\)")
_FIELD = r'(?:"[^"\n]*"|[^",\n]*)'
_CSV_LINE = rf"^{_FIELD}(?:,(?! ){_FIELD}){{2,}}(?:\n|\Z)"
_CSV = re.compile(rf"(?:{_CSV_LINE}){{3,}}", re.MULTILINE)
_SEPARATOR = re.compile(r'("[^"\n]*")|,')
_TR = re.compile(r"<tr\b[^<>]{0,500}>.{0,20000}?</tr>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(
    r"</?(table|thead|tbody|tfoot|tr|td|th|p|br|b|strong|span|div)\b[^<>]{0,500}>", re.IGNORECASE
)
_OBJECT = re.compile(r"\{[^{}]{1,5000}\}")
_JSON_PAIR = re.compile(r'"([^"\n]{1,60})"\s*:\s*("(?:[^"\\]|\\.){0,500}"|[-\d.eE]+|true|false|null)')
_PARAGRAPH = re.compile(r"(?:^[ \t>*-]*[^\W\d_][^:\n]{0,40}:[ \t]+\S[^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_LINE_PAIR = re.compile(r"^[ \t>*-]*([^\W\d_][^:\n]{0,40}?)\**:\**[ \t]+(\S[^\n]*)", re.MULTILINE)
_MOST_ROWS, _MOST_COLUMNS = 500, 100
_FEWEST_KEYS = 2  # that records share
_LONGEST_VALUE = 40  # characters
_MOST_WORDS = 6  # of a text in a cell that tells rows apart
_SMALL = frozenset(TABLES["tables"]["small"].split())


@dataclass(frozen=True)
class Label:
    """What a row or column is about: the words of its head, and of what is in parentheses there or above it.

    Of a row also the words of its short texts, cell by cell.
    """

    text: str = ""
    words: frozenset[str] = frozenset()
    years: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    name: str = ""  # the head without what is in parentheses
    texts: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class Cell:
    """A cell of a table, `text[start:end]`; columns count from the heads of rows, which are column 0."""

    start: int
    end: int
    row: int
    column: int


@dataclass(frozen=True)
class Table:
    """A table of a text, with the years of all its rows and columns."""

    text: str
    rows: Sequence[Label]
    columns: Sequence[Label]
    cells: Sequence[Cell]  # from left to right
    years: frozenset[str]

    def at(self, place: int) -> Cell | None:
        """The cell at a place of the text; None outside of them, and in heads."""
        before = bisect_right(self.cells, place, key=attrgetter("start")) - 1
        return self.cells[before] if before >= 0 and place < self.cells[before].end else None


def words_of(text: str) -> frozenset[str]:
    """The words of a text in one writing, without the smallest; a number with a word beside it: "aero 14"."""
    text = _NON.sub(r"\1", text)  # who is in non-current assets is not in current ones
    found = [(stem(fold(word[0])), word.start(), word.end()) for word in _WORD.finditer(text)]
    pairs = {
        f"{one} {other}"
        for (one, _, end), (other, start, _) in pairwise(found)
        if one.isdigit() != other.isdigit() and text[end:start] in ("", " ", "-", "\u00a0")
    }
    return (
        frozenset(word for word, *_ in found if not word.isdigit() or _YEAR.fullmatch(word)) - _SMALL | pairs
    )


def years_of(text: str) -> frozenset[str]:
    """The years from 1800 that a text writes in four digits."""
    return frozenset(_YEAR.findall(text))


@lru_cache(maxsize=256)
def tables_of(text: str) -> tuple[Table, ...]:
    """The tables of a text, in order; one with heads of columns further down makes several.

    Those of more than 500 rows or 100 columns are left out: each label is held against each number.
    """
    tables = [table for found in _TABLE.finditer(text) for table in _parts(text, found)]
    for record, pair in ((_OBJECT, _JSON_PAIR), (_PARAGRAPH, _LINE_PAIR)):
        rows = [list(pair.finditer(text, *found.span())) for found in record.finditer(text)]
        tables += _of_records(text, [row for row in rows if row])
    return tuple(tables)


@lru_cache(maxsize=256)
def laid_out(text: str) -> str:
    """A text of the same length, in which tables of HTML have bars, and comma-separated lines have tabs."""
    if 0 < text.lower().count("<tr") <= _MOST_ROWS:
        text = _TR.sub(lambda row: row[0].replace("\n", " "), text)
        text = _TAG.sub(_as_layout, text)
    return _CSV.sub(_with_tabs, text) if text.count("\n") > 1 else text


def _as_layout(tag: re.Match[str]) -> str:
    opens = {"tr": "\n", "td": "|", "th": "|"}.get(tag[1].lower(), " ") if tag[0][1] != "/" else " "
    return opens.ljust(len(tag[0]))


def _with_tabs(lines: re.Match[str]) -> str:
    """Lines of as many fields as their first one, which has no number, with tabs between the fields."""
    rows = lines[0].splitlines(keepends=True)
    split = [_SEPARATOR.sub(lambda one: one[1] or "\t", row) for row in rows]
    heads = split[0].split("\t")
    is_table = len({row.count("\t") for row in split}) == 1
    return "".join(split) if is_table and all(any(map(str.isalpha, one)) for one in heads) else lines[0]


def _of_records(text: str, rows: Sequence[Sequence[re.Match[str]]]) -> Iterator[Table]:
    """The table of records that have a key in common; the first text of each is its label."""
    keys = list(dict.fromkeys(pair[1] for row in rows for pair in row))
    common = set(keys).intersection(*({pair[1] for pair in row} for row in rows))
    if not 1 < len(rows) <= _MOST_ROWS or len(common) < _FEWEST_KEYS or len(keys) > _MOST_COLUMNS:
        return
    labels, cells = [], []
    for place, row in enumerate(rows):
        head = next((pair for pair in row if not _is_value(pair[2].strip('"'))), None)
        values = [pair for pair in row if pair is not head]
        label = "" if head is None else head[2].strip('"')
        labels.append(_label(label, values=[pair[2].strip('"') for pair in values]))
        cells += [Cell(*pair.span(2), place, keys.index(pair[1])) for pair in values]
    years = frozenset(year for key in keys for year in years_of(key))
    yield Table(text, labels, [_label(key.replace("_", " ")) for key in keys], cells, years)


def _parts(text: str, found: re.Match[str]) -> Iterator[Table]:
    lines = list(_LINE.finditer(text, *found.span()))
    rule = next((place for place, line in enumerate(lines) if _RULE.fullmatch(line[0])), 0)
    rows = _cells([line for line in lines if not _RULE.fullmatch(line[0])])
    if len(rows) > _MOST_ROWS or max(map(len, rows), default=0) > _MOST_COLUMNS:
        return
    values = [[text[low:high].strip() for low, high in row] for row in rows]
    width = max(map(len, rows), default=0)
    years = years_of(found[0])
    heads, heading = [""] * width, ""
    labels: list[Label] = []
    cells: list[Cell] = []
    for place, (row, said) in enumerate(zip(rows, values, strict=True)):
        # A line without values has heads, too, where none before it names what the rows are.
        is_open = not labels and (not heads[0] or not said[0]) and (not rule or not any(heads))
        has_values = any(map(_is_value, said[1:]))
        is_head = (
            place < rule or not (said[0] or labels) or (not has_values and (is_open or _are_heads(said)))
        )
        if is_head and labels and any(map(years_of, said[1:])):
            yield Table(text, labels, _columns(heads), cells, years)
            heads, labels, cells, heading = [""] * width, [], [], ""
        if not any(said[1:]):
            heading = said[0]
        elif is_head and not labels:
            heads = [f"{head} {more}".strip() for head, more in zip(heads, _filled(said, width), strict=True)]
        else:
            cells += [Cell(*span, len(labels), column) for column, span in enumerate(row) if column]
            labels.append(_label(said[0], heading, said[1:], heads[0]))
    yield Table(text, labels, _columns(heads), cells, years)


def _label(text: str, heading: str = "", values: Sequence[str] = (), head: str = "") -> Label:
    text = " ".join(_NOTE.sub("", text).split())
    name, beside = _BESIDE.sub("", text).strip(), words_of(f"{heading} {' '.join(_BESIDE.findall(text))}")
    numbered = [frozenset([f"{word} {text}"]) for word in words_of(head)] if text.isdigit() else []
    items = (words_of(item) for value in values if not _is_value(value) for item in _ITEMS.split(value))
    short = (words for words in items if 0 < len(words) <= _MOST_WORDS)
    return Label(text, words_of(name), years_of(text), beside, name, (*numbered, *short))


def _columns(heads: Sequence[str]) -> list[Label]:
    return [Label(), *map(_label, heads[1:])]


def _are_heads(values: Sequence[str]) -> bool:
    """Whether a line further down has the heads of columns: what its label says, or that most are years."""
    others = [one for one in values[1:] if one]
    years = sum(_A_YEAR.fullmatch(one) is not None for one in others)
    return _HEADS.match(values[0]) is not None or 2 * years > len(others)


def _filled(values: Sequence[str], width: int) -> list[str]:
    """The heads of all columns, where one can span several; only their years if they are in the middle."""
    filled = [*values, *[""] * (width - len(values))]
    others = filled[1:]
    if not all(others) and sum(map(bool, others)) == 1:
        others = [max(others)] * len(others)
    elif not all(others):
        is_spanned = others[0] != ""
        for place, one in enumerate(others):
            spanned = one or others[place - 1]
            others[place] = spanned if is_spanned else " ".join(_YEAR.findall(one))
    return [filled[0], *others]


def _cells(lines: Sequence[re.Match[str]]) -> list[list[tuple[int, int]]]:
    """Where the cells of each line begin and end in the text; bars at the ends of all lines make none."""
    mark = "|" if any("|" in line[0] for line in lines) else "\t"
    shown = [line[0].strip() for line in lines]
    opens = mark == "|" and all(line.startswith(mark) for line in shown)
    closes = mark == "|" and all(line.endswith(mark) for line in shown)
    return [list(_split(line, mark, opens=opens, closes=closes)) for line in lines]


def _split(line: re.Match[str], mark: str, *, opens: bool, closes: bool) -> Iterator[tuple[int, int]]:
    start = line.start()
    parts = line[0].split(mark)
    for place, part in enumerate(parts):
        if not (opens and place == 0) and not (closes and place == len(parts) - 1):
            yield start, start + len(part)
        start += len(part) + 1


def _is_value(cell: str) -> bool:
    """Whether a cell holds a number or an amount, and no year."""
    if len(cell) > _LONGEST_VALUE:
        return False
    return not _YEAR.search(cell) and _VALUE.fullmatch(_NOTE.sub("", cell)) is not None
