"""Where evidence stands in the documents, verbatim and at its place in the original text."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.claims import kinds_for, targets_of
from reward.config import AuditConfig
from reward.judging.evidence import place_evidence
from reward.judging.vote import read_vote
from reward.types import Answer, Document, DocumentSpan, RagQuery
from tests.kinds import kinds

DOCUMENTS = (
    Document(id="a", text="The May picnic raised\n120 euros, or -5 in all."),
    Document(id="b", text="The July picnic raised 466 euros. It drew 1,200 people (three by bus)."),
)


def placed(
    evidence: str, number: str = "999", within: Sequence[Document] = DOCUMENTS, *, required: bool = False
) -> Answer:
    """A vote for a number; none is stated by default."""
    kind = kinds()["number"]
    voted = Answer(value=number, evidence=evidence)
    return place_evidence(voted, kind, kind.read(number), within, required=required)


@pytest.mark.parametrize(
    ("evidence", "number", "document"),
    [
        ("The July picnic raised 466 euros.", None, "b"),
        ("The May  picnic raised 120\teuros", "120", "a"),
        ('Document 2 states that "The July picnic raised 466 euros."', "466", "b"),
        ("It says \u201craised 466 euros\u201d there.", "466", "b"),
        ('"The July picnic" and "466 euros"', "466", "b"),
        ("\u201eraised 466 euros\u201c", "466", "b"),
        ("\u00ab raised 466 euros \u00bb", "466", "b"),
        ("'raised 466 euros'", "466", "b"),
        ("`raised 466 euros`", "466", "b"),
        ('"raised 466 euros," it says', "466", "b"),
        ('"raised 466 euros\u2026"', "466", "b"),
        ("raised 466 euros **", "466", "b"),
        ("raised 466 euros \u2192", "466", "b"),
        ("'raised 46'", "46", None),
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
    found = placed(evidence, number, required=True) if number else placed(evidence)
    assert (found.evidence_at and found.evidence_at.document) == document


def test_the_place_is_in_the_original_text_whatever_its_white_space() -> None:
    text = "Intro.\n\n  The  July\u00a0picnic\n\traised 466   euros. End."
    found = placed('"The July picnic raised 466 euros."', within=[Document(id="d", text=text)])
    place = found.evidence_at
    assert place is not None
    assert text[place.start : place.end] == "The  July\u00a0picnic\n\traised 466   euros."


@given(st.text(alphabet=st.sampled_from('ab 1.,\n\t\u00a0"-'), max_size=60), st.data())
def test_any_evidence_that_is_found_reads_the_same_at_its_place(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    evidence = text[start : data.draw(st.integers(start, len(text)))]
    place = placed(evidence, within=[Document(id="d", text=text)]).evidence_at
    if place is not None:
        quoted = " ".join(text[place.start : place.end].split())
        assert quoted and quoted in " ".join(evidence.split())


def test_a_long_quotation_that_almost_matches_everywhere_is_looked_for_in_linear_time() -> None:
    document = Document(id="d", text="a " * 249_999 + "a")
    begin = time.process_time()
    assert placed('"' + "a " * 2_000 + 'b"', within=[document]).evidence_at is None
    assert time.process_time() - begin < 1  # quadratic, it took seven seconds


def test_a_quotation_may_hold_quotations() -> None:
    documents = [Document(id="d", text='She said "we were three" and left.')]
    found = placed('It reads "She said "we were three" and left."', "3", documents)
    assert found.evidence_at == DocumentSpan(document="d", start=0, end=34)
    assert found.evidence_says == "three"


@pytest.mark.parametrize(
    ("text", "quote", "number", "says"),
    [
        ("It raised 466 million.", "raised 466", "466", None),
        ("It raised 466 million.", "raised 466", "466 million", "466 million"),
        ("It raised 466%.", "raised 466", "466", None),
        ("It was minus 5 degrees.", "5 degrees", "5", None),
        ("It was minus 5 degrees.", "5 degrees", "-5", "minus 5 degrees"),
        ("There were twenty-five of them.", "twenty", "20", None),
        ("There were twenty-five of them.", "There were twenty", "25", "twenty-five"),
        ("It raised 466 million. It raised 466 in May.", "raised 466", "466", "466"),
        ("It sold over 270 cars.", "270 cars", "270", "over 270"),
    ],
)
def test_the_documents_own_number_at_the_place_decides(
    text: str, quote: str, number: str, says: str | None
) -> None:
    found = placed(quote, number, [Document(id="d", text=text)], required=True)
    assert found.evidence_says == (says or "") and (found.evidence_at is None) == (says is None)


JULY = DocumentSpan(document="b", start=0, end=33)


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
    answer = placed(evidence, "466", required=required)
    assert answer.value == value
    assert answer.evidence_at == place


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        ("Levity is a 2003 drama film.", True),
        ("Levity (2003) is a film.", True),
        ("It was shown at the 2003 festival.", True),
        ("By 2003 it was shown everywhere.", True),
        ("The band sold 2003 copies of Levity.", False),
        ("Levity was seen by 2,003 people.", False),
        ("Levity is a 2004 drama film.", False),
    ],
)
def test_bare_digits_of_a_document_state_a_year_unless_they_count(text: str, is_stated: bool) -> None:
    query = RagQuery(id="q", query="From which year is Levity?", documents=(Document(id="d", text=text),))
    config = AuditConfig(kinds=("number", "date"))
    (target,) = targets_of("It is from the year 2003.", kinds_for(config, query, "It is from the year 2003."))
    answer = read_vote(Answer(value="2003", evidence=text), target)
    voted = Answer(value="2003", evidence=f'"{text[:-1]}"')
    found = place_evidence(voted, target.kind, answer, query.documents, required=True)
    assert (found.evidence_at is not None) is is_stated
