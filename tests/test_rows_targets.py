"""Which marks of people are about a number."""

import re
import time

import pytest

from reward.offline.agreement import Target, is_marked, marked
from reward.offline.inputs import RowFormat, read_rows
from reward.types import Span
from tests.audit_jobs import RAGTRUTH


@pytest.mark.parametrize(
    ("text", "plain", "cleaned"),
    [
        ("He left early.", False, False),
        ("He left at 5.", True, True),
        ("2. He left.", True, False),
        ("  (2) He left.", True, False),
        ("- 3) He left.", True, False),
        ("It rose to 2. Then it fell.", True, True),
        ("as passage 3 says", True, False),
        ("Passages 1, 2 and 3 say so", True, False),
        ("passages 1 and 3 say 5", True, True),
        ("a summary in 80 words:", True, False),
        ("an 80-word summary", True, False),
        ("80 worded letters", True, True),
        ("two words", False, False),
    ],
)
def test_digits_that_state_nothing_are_cleaned_away(text: str, plain: bool, cleaned: bool) -> None:
    marks = (Span(start=0, end=len(text)),)
    assert is_marked(text, marks, Target.PLAIN) == plain
    assert is_marked(text, marks, Target.CLEANED) == cleaned


def test_a_mark_is_seen_in_its_place_in_the_answer() -> None:
    text = "See passage 3 for 4 more."
    three, four = text.index("3"), text.index("4")
    assert not is_marked(text, (Span(start=three, end=three + 1),), Target.CLEANED)
    assert is_marked(text, (Span(start=four, end=four + 1),), Target.CLEANED)


def test_without_marks_nothing_is_marked() -> None:
    assert not is_marked("5", (), Target.PLAIN)


def test_the_cleaned_target_is_the_stricter_one() -> None:
    rows = list(read_rows(RAGTRUTH, RowFormat.RAGTRUTH))
    assert sum(bool(marked(row, Target.PLAIN)) for row in rows) == 15
    for row in rows:
        assert not marked(row, Target.CLEANED) or marked(row, Target.PLAIN)
        texts = [row.response[span.start : span.end] for span in row.human_spans or ()]
        assert marked(row, Target.PLAIN) == any(re.search(r"\d", text) for text in texts)
        assert marked(row, Target.ANY) == bool(texts)


@pytest.mark.parametrize("piece", ["1", " ", "\t", "passage 1, ", "1 ", "- (1", "passages", "\n1. "])
def test_time_is_linear_in_the_answer(piece: str) -> None:
    text = piece * (1_000_000 // len(piece)) + "1"
    start = time.perf_counter()
    is_marked(text, (Span(start=0, end=len(text)),), Target.CLEANED)
    assert time.perf_counter() - start < 2
