"""The audit without a model: what the lookup supports, and what it refutes."""

import sys
from types import FrameType

import pytest

from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, DocumentSpan, Outcome, RagQuery, Span

DOCUMENTS = (
    Document(
        id="a",
        title="The May picnic",
        text="The May picnic drew 50 people on May 3rd, 2021.\nIt cost $1,200.",
    ),
    Document(
        id="b",
        text="The picnic raised 466 euros. Heat to 165 degrees F for just under 270 s. 12 percent left.",
    ),
)
QUERY = RagQuery(id="1", query="What did the 3 picnics of Area 51 raise?", documents=DOCUMENTS)


def states(response: str) -> list[ClaimState]:
    return [claim.state for claim in lexical_audit(QUERY, response, AuditConfig()).claims]


@pytest.mark.parametrize(
    "response",
    [
        "It raised 466 euros.",
        "It raised €466.",
        "The picnic of 3 May 2021 drew 50.",
        "On May 3 it drew fifty, or 50, people.",
        "It cost 1200 dollars, or $1.2k.",
        "Some 12% were left.",
        "About 470 euros came in.",
        "Heat it to 165°F (74°C).",
        "In Area 51 it rained.",  # the query says so
        "Three people left.",  # a small word
        "It has 2 parts:\n1. the start\n2. the end\nSo it can be told in 2 steps.",
        "Step 7: eat.",
    ],
)
def test_what_the_documents_support(response: str) -> None:
    assert set(states(response)) <= {ClaimState.SUPPORTED}


@pytest.mark.parametrize(
    "response",
    [
        "It raised 467 euros.",
        "It raised 466 dollars.",
        "Some 12 dollars were left.",
        "It drew 12% on June 3, 2021.",
        "The picnic of May 3, 2022 was fine.",
        "It drew over 270.",  # the document says under
        "It drew 500 people.",
        "At 3 pm it began.",
        "It drew four hundred people.",
        "Heat it to 165°F (80°C).",
    ],
)
def test_what_the_documents_do_not_support(response: str) -> None:
    assert ClaimState.NOT_IN_DOCUMENTS in states(response)


def test_the_tolerance_holds_without_a_model_too() -> None:
    config = AuditConfig(relative_tolerance=0.01)
    assert lexical_audit(QUERY, "It raised 468 euros.", config).outcome is Outcome.SUPPORTED
    assert lexical_audit(QUERY, "It raised 480 euros.", config).outcome is Outcome.REFUTED


def test_the_evidence_is_the_sentence_and_its_place() -> None:
    (claim,) = lexical_audit(QUERY, "It raised 466 euros.", AuditConfig()).claims
    (vote,) = claim.votes
    assert vote is not None
    assert vote.evidence == "The picnic raised 466 euros."
    assert vote.evidence_at == DocumentSpan(document="b", start=0, end=28)
    assert claim.evidence_holds_consensus is True


def test_outcomes_and_rewards_are_those_of_every_audit() -> None:
    config = AuditConfig()
    assert lexical_audit(QUERY, "It raised 466 euros.", config).reward == 0.0
    refuted = lexical_audit(QUERY, "It raised 46.", config)
    assert (refuted.outcome, refuted.reward, refuted.reason) == (Outcome.REFUTED, -1.0, "not_in_documents")
    silent = lexical_audit(QUERY, "It went well.", config)
    assert (silent.outcome, silent.reward) == (Outcome.NO_CLAIMS, config.reward_no_claims)


def test_too_many_numbers_and_too_long_responses_are_unscored() -> None:
    config = AuditConfig(max_claims=2, max_response_chars=100)
    many = lexical_audit(QUERY, "466 and 466 and 466", config)
    assert (many.outcome, many.reward, many.reason) == (Outcome.UNSCORED, None, Reason.TOO_MANY_CLAIMS)
    refuted = lexical_audit(QUERY, "466 and 467 and 466", config)
    assert (refuted.outcome, refuted.num_mentions) == (Outcome.REFUTED, 3)
    assert refuted.uncovered == (Span(start=16, end=19),), "what is beyond the bound is listed"
    long = lexical_audit(QUERY, "4" * 101, config)
    assert (long.outcome, long.reward, long.reason) == (Outcome.UNSCORED, None, Reason.RESPONSE_TOO_LONG)


def test_a_verdict_says_that_no_model_made_it() -> None:
    provenance = lexical_audit(QUERY, "It raised 466 euros.", AuditConfig()).provenance
    assert provenance is not None
    assert (provenance.auditor, provenance.model, provenance.prompt_digest) == ("lexical", "", "")


def test_documents_with_too_many_numbers_are_unscored_with_what_to_do() -> None:
    many = Document(id="a", text="1 two " * 60)
    query = RagQuery(id="1", query="What?", documents=(many,))
    verdict = lexical_audit(query, "It is 1.", AuditConfig(max_document_numbers=119))
    assert (verdict.outcome, verdict.reward, verdict.reason) == (
        Outcome.UNSCORED,
        None,
        Reason.DOCUMENTS_TOO_LONG,
    )
    assert verdict.detail.startswith("120 numbers in the documents exceed max_document_numbers: 119; ")
    assert lexical_audit(query, "It is 1.", AuditConfig(max_document_numbers=120)).reward == 0.0


PIECES = (
    "1 ", "1", "1,000,", "twenty-one hundred and ", "5:30 pm to ", "XX ", "½ ", "Monday to ", "in May ",
    "May 5, ", "Ab ", "Ab", "ab ", "A. ", "A", "Ab Cd and ", "Ab of the ", "John Smith, ", "Ab\n",
    '"Ab Cd" ', "*Ab Cd* ", "## Ab\n", "the Abs ", "Paris, Texas ", "U.S. ", "WHO ", "united states ",
    "\"'(", "\n", ". ", "\u00c9a ", "\u00bd", "half ", "May ", "Christmas Day ", "a-", "A'", "(", ")(", "1,",
    "3/4/2021 ", "\u2003", "\U0001f600", "e\u0301",
)  # fmt: skip
SHORT = "On Monday 50 people of Oslo met J. Smith, A. B. Cd and WHO."


def num_calls(document: str, answer: str) -> int:
    """How many functions an audit calls: the same on every machine, and at every load."""
    query = RagQuery(id="1", query="What?", documents=(Document(id="a", text=document),))
    config = AuditConfig(max_claims=512, max_document_numbers=100_000)
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        lexical_audit(query, answer, config)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("place", ["document", "answer"])
def test_the_work_grows_with_the_length_of_a_text_and_not_with_its_square(piece: str, place: str) -> None:
    once = piece * (5_000 // len(piece))
    texts = [(once, SHORT), (once * 4, SHORT)] if place == "document" else [(SHORT, once), (SHORT, once * 4)]
    num_calls("warm", "up")
    short, long = (num_calls(document, answer) for document, answer in texts)
    assert long < 6 * short + 1_000  # a square would be sixteen times


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ("north of the pass ", "south of the pass "),
        ("it is weekly, ", "it is monthly, "),
        ("Friday, 25 April. ", "Wednesday 25 April. "),
        ("It costs $50 a year. ", "It costs about $40 a month. "),
        ("See Part 3. ", "Step 7 is Part 8. "),
    ],
)
def test_the_work_grows_with_both_texts_and_not_with_their_product(document: str, answer: str) -> None:
    num_calls("warm", "up")
    short, long = (num_calls(document * many, answer * many) for many in (40, 160))
    assert long < 6 * short + 1_000


def test_the_work_grows_with_the_number_of_different_names_and_not_with_its_square() -> None:
    letters = "abcdefghijklm"
    names = [f"X{a}{b}{c}{d}" for a in letters for b in letters for c in letters[:4] for d in letters[:3]]
    texts = (" met ".join(names[:many]) for many in (128, 512))
    num_calls("warm", "up")
    short, long = (num_calls(SHORT, text) for text in texts)
    assert long < 6 * short


def test_one_number_word_of_another_language_does_not_slow_a_long_text() -> None:
    text = "The river runs by old towns, and many people came to see them there. " * 300
    num_calls("vierzig", "up")
    assert num_calls(text + "vierzig", SHORT) < 2 * num_calls(text, SHORT)


@pytest.mark.parametrize(
    "piece",
    ["\u00bd", "Ab and ", "## Ab\n", "iPhone ", "May ", "lundi ", "Christmas Day ", "einhundertzwanzig "],
)
def test_an_answer_of_far_too_many_claims_is_refused_before_it_is_read(piece: str) -> None:
    verdict = lexical_audit(QUERY, piece * (90_000 // len(piece)), AuditConfig())
    assert verdict.reason == Reason.TOO_MANY_CLAIMS
    assert verdict.detail.endswith("are far over max_claims: 64")


@pytest.mark.parametrize("piece", ["1,000,", "Ab ", '"Ab Ef" ', "A. ", "\n"])
def test_a_long_document_is_read_or_refused(piece: str) -> None:
    text = ("50 people came. " + piece * 1_000_000)[: AuditConfig().max_documents_chars]
    verdict = lexical_audit(asked_of(text), "50 people came.", AuditConfig())
    is_refused = verdict.reason == Reason.DOCUMENTS_TOO_LONG
    assert is_refused if piece == "1,000," else verdict.outcome is Outcome.SUPPORTED
    assert lexical_audit(QUERY, text, AuditConfig()).reason == Reason.RESPONSE_TOO_LONG
    assert lexical_audit(asked_of(text + " "), "50", AuditConfig()).reason == Reason.DOCUMENTS_TOO_LONG


def asked_of(text: str) -> RagQuery:
    return RagQuery(id="1", query="What?", documents=(Document(id="a", text=text),))


def test_a_date_may_stand_in_a_title_and_a_number_of_a_passage_may_not() -> None:
    season = Document(
        id="s", title="Sporting Alcaria 2018\u201319 season, passage 7", text="Alcaria came fourth."
    )
    query = RagQuery(id="t", query="How did it go?", documents=(season,))
    verdict = lexical_audit(query, "In 2018\u201319 they scored 7 goals.", AuditConfig())
    assert [(one.claim.answer, one.state) for one in verdict.claims] == [
        ("2018\u201319", ClaimState.SUPPORTED),
        ("7", ClaimState.NOT_IN_DOCUMENTS),
    ]
    assert verdict.claims[0].note == "is in the title of document s"


@pytest.mark.parametrize(
    ("document", "response", "outcome"),
    [
        ("Mix cement and sand at 1:3.", "Mix cement and sand at 3:1.", Outcome.REFUTED),
        ("Mix cement and sand at 1:3.", "Mix cement and sand at 1 to 3.", Outcome.SUPPORTED),
        ("The home side won 2-1.", "The guests lost 1-2.", Outcome.SUPPORTED),  # a score has two sides
    ],
)
def test_a_ratio_has_an_order_and_a_score_two_sides(document: str, response: str, outcome: Outcome) -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    assert lexical_audit(query, response, AuditConfig()).outcome is outcome


@pytest.mark.parametrize(("one", "other"), [("v2.4.1", "2.4.1"), ("2.4.1", "v2.4.1")])
def test_the_letter_before_a_version_is_no_part_of_it(one: str, other: str) -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=f"The latest release is {one}."),))
    for version, outcome in ((other, Outcome.SUPPORTED), (other.replace("4", "5"), Outcome.REFUTED)):
        assert lexical_audit(query, f"The latest one is {version}.", AuditConfig()).outcome is outcome


def test_a_supported_claim_shows_the_documents_own_words() -> None:
    document = Document(id="d", text="The tower is 252 metres tall.")
    query = RagQuery(id="q", query="How tall?", documents=(document,))
    (claim,) = lexical_audit(query, "It is about 250 m tall.", AuditConfig()).claims
    assert (claim.state, claim.consensus) == (ClaimState.SUPPORTED, "252 metres")


def test_a_refused_number_that_a_document_holds_otherwise_says_how() -> None:
    document = Document(id="d", text="Sales were up 7.5% on the year.")
    query = RagQuery(id="q", query="How were sales?", documents=(document,))
    (claim,) = lexical_audit(query, "There was a decrease of 7.5%.", AuditConfig()).claims
    assert (claim.state, claim.note) == (
        ClaimState.NOT_IN_DOCUMENTS,
        'the documents hold "7.5%" in another direction',
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("5 | 6", "He had 10^400."),  # beyond a float
        (
            "The fir\u017ft edition, and \u017fecond edition came. He married fir\u017ft Ann.",
            "It had 7 editions.",
        ),
    ],
)
def test_odd_numbers_and_letters_raise_nothing(text: str, answer: str) -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=text),))
    assert lexical_audit(query, answer, AuditConfig()).outcome is Outcome.REFUTED
