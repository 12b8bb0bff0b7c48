"""Reading takes time that grows with the text and not with its square, whatever is repeated in it."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward.claims.numbers import Kind, find_numbers, parse_number
from reward.claims.numbers.response import response_numbers
from reward.roles.formats import parse_answers, parse_claims
from reward.types import Document, RagQuery
from tests.kinds import kinds

PIECES = (
    "1", "1,", "1.", "1 ", "1,234", "1.234,", "1'", "12:", "1-", "1/", "1e", "1e9 ", "9" * 400 + " ", "-",
    "--", "$", "($", "(", "[", "]", "*", "**1**", "_", "`", "~", " ", "\t", "\n", "\u2009", "½", "²", "万",
    "\uff0e", "one ", "one hundred ", "hundred ", "and a half ", "half a ", "twenty-", "minus ", "over ",
    "at least ", "about ", "between 1 and ", "from ", "1 to ", "to ", "5 km ", "1 h ", "May ", "May 3, ",
    "in 2021-", "2021-05-", "9 am ", "9 am to ", "3 out of ", "x1.", "a-1-", "[Answer: 1]", "[Answer:",
    "1,111", ".5", "EUR ", "#\n", "a third of ", "1_", "1:1", "1/2 ", "(555) ", "1 in ", "10^", "1 hour ",
    "- Question: a [Answer: 1]\n", "1. Evidence: a [Answer: ", "\n1. ", "Question:",
)  # fmt: skip
HIDDEN = (
    "¹", "④⑥ ", "九百", "一 ", "\u200d", "[1,2] ", "[1] million ", "a⁻¹ ", "① ", "passage 1 ",
)  # fmt: skip
QUERY = RagQuery(id="q", query="How many?", documents=(Document(id="d", text="1 of COVID-19"),))
READERS: dict[str, Callable[[str], object]] = {
    "find_numbers": find_numbers,
    "parse_number": parse_number,
    "response_numbers": lambda text: response_numbers(text, QUERY),
    "parse_claims": lambda text: parse_claims(text, max_claims=64, kinds=kinds()),
    "parse_claims, in a question": lambda text: parse_claims(
        f"- Question: {text} [Answer: 7]", max_claims=64, kinds=kinds()
    ),
    "parse_answers": lambda text: parse_answers(text, 64),
    "parse_answers, in the evidence": lambda text: parse_answers(f"1. Evidence: {text} [Answer: 7]", 64),
}


def cpu_s(reader: Callable[[str], object], text: str) -> float:
    """Processor seconds of one reading: what other processes of the machine do is not counted."""
    start = time.process_time()
    reader(text)
    return time.process_time() - start


def grows_faster(reader: Callable[[str], object], piece: str, attempts: int) -> bool:
    """Whether four times the text takes more than twelve times as long: sixteen times would be a square."""
    text = piece * (10_000 // len(piece))
    once = min(cpu_s(reader, text) for _ in range(attempts))
    four_times = min(cpu_s(reader, text * 4) for _ in range(attempts))
    return four_times > 12 * once + 0.01  # the constant is for what is too short to be measured


@pytest.mark.parametrize(
    ("reader", "pieces"),
    [
        ("find_numbers", PIECES),
        ("parse_number", PIECES),
        ("parse_claims", PIECES),
        ("parse_answers", PIECES),
        ("response_numbers", HIDDEN),
    ],
)
def test_row_07_time_grows_with_the_text_and_not_with_its_square(
    reader: str, pieces: tuple[str, ...]
) -> None:
    read_all = READERS[reader]
    suspects = [piece for piece in pieces if grows_faster(read_all, piece, attempts=1)]
    assert [piece for piece in suspects if grows_faster(read_all, piece, attempts=4)] == []


@pytest.mark.parametrize("reader", READERS)
def test_row_07_a_megabyte_of_everything_is_read_in_seconds(reader: str) -> None:
    everything = "".join(PIECES + HIDDEN)
    assert cpu_s(READERS[reader], everything * (1_000_000 // len(everything))) < 10


@settings(max_examples=40)
@given(st.text(alphabet="019.,'%$€()[]-\u2212/:ekM½²万 \nabouthrndmi*_", min_size=1, max_size=6))
def test_row_07_no_repeated_piece_is_slow(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    assert all(cpu_s(reader, text) < 3 for reader in READERS.values())


def test_a_long_s_is_an_s() -> None:
    (number,) = find_numbers("half past \u017feven")
    assert number.kind is Kind.TIME
