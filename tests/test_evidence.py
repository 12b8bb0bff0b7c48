"""Where evidence stands in the documents, verbatim and at its place in the original text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.claims.numbers import parse_number
from reward.judging.evidence import find_evidence, place_evidence, sources
from reward.types import Answer, Document, DocumentSpan

DOCUMENTS = sources(
    [
        Document(id="a", text="The May picnic raised\n120 euros, or -5 in all."),
        Document(id="b", text="The July picnic raised 466 euros. It drew 1,200 people (three by bus)."),
    ]
)


@pytest.mark.parametrize(
    ("evidence", "number", "document"),
    [
        ("The July picnic raised 466 euros.", None, "b"),
        ("The May  picnic raised 120\teuros", "120", "a"),
        ('Document 2 states that "The July picnic raised 466 euros."', "466", "b"),
        ("It says \u201craised 466 euros\u201d there.", "466", "b"),
        ('"The July picnic" and "466 euros"', "466", "b"),
        ("The July picnic raised 466 euros.", "120", None),
        ('"The July picnic" raised 466', "466", None),
        ("The July picnic raised 500 euros.", "500", None),
        ("the july picnic raised 466 euros", "466", None),
        ("raised 46", "46", None),
        ("66 euros", "66", None),
        ("200 people", "200", None),
        ("It drew 1", "1", None),
        ("5 in all", "5", None),
        ("three by bus", "3", "b"),
        ("", None, None),
        (' "" ', None, None),
    ],
)
def test_evidence_stands_verbatim_in_a_document(
    evidence: str, number: str | None, document: str | None
) -> None:
    place = find_evidence(evidence, DOCUMENTS, parse_number(number) if number else None)
    assert (place and place.document) == document


def test_the_place_is_in_the_original_text_whatever_its_white_space() -> None:
    text = "Intro.\n\n  The  July\u00a0picnic\n\traised 466   euros. End."
    place = find_evidence('"The July picnic raised 466 euros."', sources([Document(id="d", text=text)]))
    assert place is not None
    assert text[place.start : place.end] == "The  July\u00a0picnic\n\traised 466   euros."


@given(st.text(alphabet=st.sampled_from('ab 1.,\n\t\u00a0"-'), max_size=60), st.data())
def test_any_evidence_that_is_found_reads_the_same_at_its_place(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    evidence = text[start : data.draw(st.integers(start, len(text)))]
    place = find_evidence(evidence, sources([Document(id="d", text=text)]))
    if place is not None:
        found = " ".join(text[place.start : place.end].split())
        assert found and found in " ".join(evidence.split())


def test_a_quotation_may_hold_quotations() -> None:
    documents = sources([Document(id="d", text='She said "we were three" and left.')])
    place = find_evidence('It reads "She said "we were three" and left."', documents, parse_number("3"))
    assert place == DocumentSpan(document="d", start=0, end=34)


NUMBER = parse_number("466")
JULY = DocumentSpan(document="b", start=0, end=33)
assert NUMBER is not None


@pytest.mark.parametrize(
    ("evidence", "required", "value", "place"),
    [
        ("The July picnic raised 466 euros.", True, "466", JULY),
        ('"The May picnic" and "The July picnic raised 466 euros."', False, "466", JULY),
        ('"The May picnic" came first', False, "466", DocumentSpan(document="a", start=0, end=14)),
        ('"The May picnic" came first', True, None, None),
        ("invented 466", False, "466", None),
        ("invented 466", True, None, None),
    ],
)
def test_evidence_that_holds_the_number_is_preferred_and_alone_counts_when_required(
    evidence: str, required: bool, value: str | None, place: DocumentSpan | None
) -> None:
    answer = place_evidence(Answer(value="466", evidence=evidence), NUMBER, DOCUMENTS, required=required)
    assert answer.value == value
    assert answer.evidence_at == place
