"""Tables of a text: lines with vertical bars, as Markdown has them, or with tabs.

Tables of HTML and comma-separated lines are such tables once they are laid out (`laid_out`). Objects of JSON
and paragraphs of "key: value" lines are rows, whose keys are the heads of columns.

The first lines without values are heads of columns, and so are all lines above a rule (`---`). The first cell
of a line is the head of its row. A line with nothing but this cell is a heading of the rows below it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Protocol, TypeVar

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
_FOOTNOTE = re.compile(  # "km²" has none
    r"\(\d\)|\*+|(?:(?<=[^\W\d_]{3})|(?<=\)))[\u00b9\u00b2\u00b3]|(?<=[^\W\d_]{4})\d$|(?<=\))\d$"
)
_NON = re.compile(r"\b([Nn]on)[-\u2010\u2011\u2013 ](?=\w)")
_YEAR_HEAD = re.compile(r"(?:FY ?|(?:fiscal|year) )?(?:1[89]|20)\d\d(?: ?\(\w\))?", re.IGNORECASE)
_FIRST_HEAD = re.compile(  # "Year ended", "(in millions)", "Revenue:"
    r"\(|(?:(?:fiscal )?years?|quarters?|months?|periods?|weeks?|as|for)\b|.*:$|$", re.IGNORECASE
)
_BETWEEN_ITEMS = re.compile(r"[,;/]| and | or | und | et | y ")
_PARENTHESES = re.compile(r"\([^()]*\)")
_FIELD = r'(?:"[^"\n]*"|[^",\n]*)'
_CSV_LINE = rf"^{_FIELD}(?:,(?! ){_FIELD}){{2,}}(?:\n|\Z)"
_CSV = re.compile(rf"(?:{_CSV_LINE}){{3,}}", re.MULTILINE)
_QUOTED_OR_COMMA = re.compile(r'("[^"\n]*")|,')
_TR = re.compile(r"<tr\b[^<>]{0,500}>.{0,20000}?</tr>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(
    r"</?(table|thead|tbody|tfoot|tr|td|th|p|br|b|strong|span|div)\b[^<>]{0,500}>", re.IGNORECASE
)
_OBJECT = re.compile(r"\{[^{}]{1,5000}\}")
_JSON_PAIR = re.compile(r'"([^"\n]{1,60})"\s*:\s*("(?:[^"\\]|\\.){0,500}"|[-\d.eE]+|true|false|null)')
_PARAGRAPH = re.compile(r"(?:^[ \t>*-]*[^\W\d_][^:\n]{0,40}:[ \t]+\S[^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_LINE_PAIR = re.compile(r"^[ \t>*-]*([^\W\d_][^:\n]{0,40}?)\**:\**[ \t]+(\S[^\n]*)", re.MULTILINE)
_THOUSANDS = re.compile(r'(?<![\d"])\d{1,3},\d{3}(?!\d)')
_MOST_ROWS, _MOST_COLUMNS = 500, 100
_FEWEST_KEYS = 2  # that records share
_LONGEST_VALUE = 40  # characters
_MOST_WORDS = 6  # of a text in a cell that tells rows apart
_SMALL = frozenset(TABLES["tables"]["small"].split())


class _Located(Protocol):
    @property
    def start(self) -> int: ...


Located = TypeVar("Located", bound=_Located)


@dataclass(frozen=True)
class Label:
    """What a row or a column is about."""

    text: str = ""  # its head
    words: frozenset[str] = frozenset()  # of the head without its parentheses
    years: frozenset[str] = frozenset()  # of the head
    context: frozenset[str] = frozenset()  # words of the head's parentheses, and of the heading above the row
    name: str = ""  # the head without its parentheses
    cell_texts: tuple[frozenset[str], ...] = ()  # of a row: the words of each short text in its cells


@dataclass(frozen=True)
class Cell:
    """A cell, `text[start:end]`. Column 0 is the heads of rows in lines, and the first key of records."""

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
    cells: Sequence[Cell]  # from left to right, without the heads
    years: frozenset[str]

    def numbers(self, numbers: Sequence[Located]) -> list[tuple[Cell, Located]]:
        """Those of some numbers of the text, from left to right, that are in cells, each with its cell."""
        if not self.cells:
            return []
        low, high = self.cells[0].start, self.cells[-1].end
        first, last = (bisect_left(numbers, place, key=attrgetter("start")) for place in (low, high))
        cells = ((self.at(one.start), one) for one in numbers[first:last])
        return [(cell, one) for cell, one in cells if cell is not None]

    def at(self, place: int) -> Cell | None:
        """The cell at a place of the text; None outside of the cells, and in heads."""
        before = bisect_right(self.cells, place, key=attrgetter("start")) - 1
        return self.cells[before] if before >= 0 and place < self.cells[before].end else None


def words_of(text: str) -> frozenset[str]:
    """The stems of a text's words without the smallest, and numbers with a word beside them: "aero 14"."""
    text = _NON.sub(r"\1", text)  # "non-current" is one word, and so is not "current"
    found = [(stem(fold(word[0])), word.start(), word.end()) for word in _WORD.finditer(text)]
    pairs = {
        f"{one} {other}"
        for (one, _, end), (other, start, _) in pairwise(found)
        if one.isdigit() != other.isdigit() and text[end:start] in ("", " ", "-", "\u00a0")
    }
    single = frozenset(word for word, *_ in found if not word.isdigit() or _YEAR.fullmatch(word))
    return (single - _SMALL) | pairs


def without_pairs(words: Iterable[str]) -> frozenset[str]:
    """The words of `words_of` without the pairs of a number and a word, which differ from label to label."""
    return frozenset(word for word in words if " " not in word)


def years_of(text: str) -> frozenset[str]:
    """The years from 1800 that a text writes in four digits."""
    return frozenset(_YEAR.findall(text))


@lru_cache(maxsize=256)
def tables_of(text: str) -> tuple[Table, ...]:
    """The tables of a text; one with heads of columns further down makes several.

    Those of more than 500 rows or 100 columns are left out: each label is compared with each number.
    """
    tables = [table for found in _TABLE.finditer(text) for table in _of_lines(text, found)]
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
    """A tag as a line end or a bar if it begins a row or a cell, filled with spaces to its length."""
    opens = {"tr": "\n", "td": "|", "th": "|"}.get(tag[1].lower(), " ") if tag[0][1] != "/" else " "
    return opens.ljust(len(tag[0]))


def _with_tabs(lines: re.Match[str]) -> str:
    """Lines with tabs for commas, if all have as many fields as the first, whose fields all have letters.

    Lines in which a comma may be within a number ("12,400") stay as they are.
    """
    rows = lines[0].splitlines(keepends=True)
    split = [_QUOTED_OR_COMMA.sub(lambda one: one[1] or "\t", row) for row in rows]
    is_even = len({row.count("\t") for row in split}) == 1
    has_heads = all(any(map(str.isalpha, head)) for head in split[0].split("\t"))
    is_table = is_even and has_heads and not any(map(_THOUSANDS.search, rows))
    return "".join(split) if is_table else lines[0]


def _of_records(text: str, rows: Sequence[Sequence[re.Match[str]]]) -> list[Table]:
    """The table of records that have keys in common, if they have; the first text of each is its label."""
    keys = list(dict.fromkeys(pair[1] for row in rows for pair in row))
    common = set(keys).intersection(*({pair[1] for pair in row} for row in rows))
    if not 1 < len(rows) <= _MOST_ROWS or len(common) < _FEWEST_KEYS or len(keys) > _MOST_COLUMNS:
        return []
    labels, cells = [], []
    for place, row in enumerate(rows):
        values = {pair: pair[2].strip('"') for pair in row}
        head = next((pair for pair, value in values.items() if not _is_value(value)), None)
        label = values.pop(head) if head else ""
        labels.append(_label(label, texts=values.values()))
        cells += [Cell(*pair.span(2), place, keys.index(pair[1])) for pair in values]
    years = frozenset().union(*map(years_of, keys))
    return [Table(text, labels, [_label(key.replace("_", " ")) for key in keys], cells, years)]


def _of_lines(text: str, found: re.Match[str]) -> Iterator[Table]:
    """The tables of lines that follow each other: heads with years, further down, begin another one."""
    lines = list(_LINE.finditer(text, *found.span()))
    rule = next((place for place, line in enumerate(lines) if _RULE.fullmatch(line[0])), 0)
    spans = [one for one in _spans([line for line in lines if not _RULE.fullmatch(line[0])]) if one]
    width = max(map(len, spans), default=0)
    if len(spans) > _MOST_ROWS or width > _MOST_COLUMNS:
        return
    years, heads, heading = years_of(found[0]), [""] * width, ""
    rows: list[Label] = []
    cells: list[Cell] = []
    for place, line_spans in enumerate(spans):
        texts = [text[start:end].strip() for start, end in line_spans]
        is_head = place < rule or _has_heads(texts, heads, has_rows=bool(rows), has_rule=rule > 0)
        if is_head and rows and any(map(years_of, texts[1:])):
            yield Table(text, rows, _columns(heads), cells, years)
            heads, heading, rows, cells = [""] * width, "", [], []
        if not any(texts[1:]):
            heading = texts[0]
        elif is_head and not rows:
            pairs = zip(heads, _filled(texts, width), strict=True)
            heads = [f"{head} {more}".strip() for head, more in pairs]
        else:
            cells += [Cell(*span, len(rows), column) for column, span in enumerate(line_spans) if column]
            rows.append(_label(texts[0], heading, texts[1:], heads[0]))
    yield Table(text, rows, _columns(heads), cells, years)


def _has_heads(texts: Sequence[str], heads: Sequence[str], *, has_rows: bool, has_rule: bool) -> bool:
    """Whether a line that is not above a rule has heads of columns, with the heads of the lines before."""
    if not (texts[0] or has_rows):
        return True
    # Texts alone are heads until a line names what the rows are; below a rule they are rows.
    is_open = not (has_rows or (heads[0] and texts[0]) or (has_rule and any(heads)))
    return not any(map(_is_value, texts[1:])) and (is_open or _are_heads(texts))


def _columns(heads: Sequence[str]) -> list[Label]:
    return [Label(), *map(_label, heads[1:])]


def _label(text: str, heading: str = "", texts: Iterable[str] = (), head_of_heads: str = "") -> Label:
    """The label of a column by its head, or of a row by its head, the heading above and its other cells."""
    text = " ".join(_FOOTNOTE.sub("", text).split())
    name = _PARENTHESES.sub("", text).strip()
    context = words_of(f"{heading} {' '.join(_PARENTHESES.findall(text))}")
    # The head of column 0, "Week", makes the row "12" that of "week 12".
    numbered = [frozenset([f"{word} {text}"]) for word in words_of(head_of_heads)] if text.isdigit() else []
    items = (words_of(item) for one in texts if not _is_value(one) for item in _BETWEEN_ITEMS.split(one))
    short = (words for words in items if 0 < len(words) <= _MOST_WORDS)
    return Label(text, words_of(name), years_of(text), context, name, (*numbered, *short))


def _are_heads(texts: Sequence[str]) -> bool:
    """Whether a line further down has heads of columns: its first text says so, or most others are years."""
    others = [one for one in texts[1:] if one]
    num_years = sum(_YEAR_HEAD.fullmatch(one) is not None for one in others)
    return _FIRST_HEAD.match(texts[0]) is not None or 2 * num_years > len(others)


def _filled(texts: Sequence[str], width: int) -> list[str]:
    """A line of heads with the empty ones filled, of which at least one is not empty.

    A lone head is that of all columns, and else each spans the empty ones behind it. If the first is empty,
    they are in the middle of what they span, and only their years are sure.
    """
    first, *heads = [*texts, *[""] * (width - len(texts))]
    written = [head for head in heads if head]
    if len(written) == 1:
        heads = written * len(heads)
    elif heads[0]:
        for place in range(1, len(heads)):
            heads[place] = heads[place] or heads[place - 1]
    else:
        heads = [" ".join(_YEAR.findall(head)) for head in heads]
    return [first, *heads]


def _spans(lines: Sequence[re.Match[str]]) -> list[list[tuple[int, int]]]:
    """Where the cells of each line begin and end in the text; bars at the ends of all lines make none."""
    mark = "|" if any("|" in line[0] for line in lines) else "\t"
    stripped = [line[0].strip() for line in lines]
    opens = mark == "|" and all(line.startswith(mark) for line in stripped)
    closes = mark == "|" and all(line.endswith(mark) for line in stripped)
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
    is_short = len(cell) <= _LONGEST_VALUE
    return is_short and not _YEAR.search(cell) and _VALUE.fullmatch(_FOOTNOTE.sub("", cell)) is not None
