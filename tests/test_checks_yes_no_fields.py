"""Fields that are true, false or null, and answers that say yes or no of them."""

import json
from typing import Any

import pytest

from reward.config import AuditConfig, CheckName
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, Outcome, RagQuery

FIELDS = {
    "name": "The Blue Door",
    "BusinessParking": {"garage": False, "street": True, "lot": False, "valet": None},
    "RestaurantsReservations": False,
    "RestaurantsTakeOut": True,
    "OutdoorSeating": None,
    "WiFi": "no",
    "Music": None,
    "Ambience": {"romantic": False, "casual": True, "touristy": None},
    "review_text": 'They said {"Music": true}? A trendy \\" place, "upscale" even.',
}
SUPPORTED, CONTRADICTED, MISSING = (
    ClaimState.SUPPORTED,
    ClaimState.CONTRADICTED,
    ClaimState.NOT_IN_DOCUMENTS,
)

CONFIG = AuditConfig(kinds=("number",), checks=(CheckName.YES_NO_FIELDS,))


def audited(response: str, fields: Any = FIELDS) -> list[tuple[str, ClaimState]]:
    query = RagQuery(id="1", query="Describe it.", documents=(Document(id="a", text=json.dumps(fields)),))
    return [(found.claim.answer, found.state) for found in lexical_audit(query, response, CONFIG).claims]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("It takes no reservations.", [("reservations", SUPPORTED)]),
        ("It takes reservations.", [("reservations", CONTRADICTED)]),
        ("They don\u2019t take reservations.", [("reservations", SUPPORTED)]),
        ("It offers take-out.", [("take-out", SUPPORTED)]),
        ("Takeout is not available.", [("Takeout", CONTRADICTED)]),
        ("It has outdoor seating.", [("outdoor seating", MISSING)]),
        ("It lacks outdoor seating.", [("outdoor seating", MISSING)]),
        ("There is free Wi-Fi.", [("Wi-Fi", CONTRADICTED)]),
        ("WiFi: No", [("WiFi", SUPPORTED)]),
        ("WiFi and takeout are not offered.", [("WiFi", SUPPORTED), ("takeout", CONTRADICTED)]),
        ("It is casual, and WiFi is not available.", [("casual", SUPPORTED), ("WiFi", SUPPORTED)]),
        ("There is no WiFi but takeout.", [("WiFi", SUPPORTED), ("takeout", SUPPORTED)]),
        (
            "While they do not offer WiFi, they do take reservations.",
            [("WiFi", SUPPORTED), ("reservations", CONTRADICTED)],
        ),
        (
            "Neither garage nor street parking is there.",
            [("garage", SUPPORTED), ("street", CONTRADICTED)],
        ),
        ("Parking in the lot.", [("lot", CONTRADICTED)]),
        ("A lot of people walk down the street.", []),  # no word of parking
        ("It is casual rather than romantic.", [("casual", SUPPORTED), ("romantic", SUPPORTED)]),
        ("A romantic spot. So romantic.", [("romantic", CONTRADICTED)]),  # once
        ("The data do not say whether there is WiFi.", []),
        ("No information on reservations is provided.", []),
        ("It is trendy and upscale.", []),  # no fields
        ("It is the best place.", []),
    ],
)
def test_the_field_decides(response: str, expected: list[tuple[str, ClaimState]]) -> None:
    assert audited(response) == expected


def test_words_of_running_text_leave_a_field_open() -> None:
    reviewed = FIELDS | {"review_text": "Such a romantic place, and we loved the music."}
    assert audited("Romantic music.", reviewed) == []


def test_fields_that_disagree_decide_nothing() -> None:
    query = RagQuery(
        id="1",
        query="",
        documents=tuple(Document(id=f"{v}", text=json.dumps({"WiFi": v})) for v in (True, False)),
    )
    assert lexical_audit(query, "It has WiFi.", CONFIG).outcome is Outcome.NO_CLAIMS


def test_plain_text_has_no_fields() -> None:
    query = RagQuery(id="1", query="", documents=(Document(id="a", text='He wrote "WiFi": false there.'),))
    assert lexical_audit(query, "It has WiFi.", CONFIG).outcome is Outcome.NO_CLAIMS


def test_the_verdict_shows_the_field_and_its_value() -> None:
    query = RagQuery(id="1", query="", documents=(Document(id="a", text=json.dumps(FIELDS)),))
    verdict = lexical_audit(query, "It has WiFi.", CONFIG)
    (claim,) = verdict.claims
    assert (verdict.outcome, verdict.reward) == (Outcome.REFUTED, -1)
    assert claim.claim.kind == "field"
    assert claim.consensus == "no"
    vote = claim.votes[0]
    assert vote is not None
    assert vote.evidence == '"WiFi": "no"'


def test_what_is_a_field_is_no_name() -> None:
    query = RagQuery(id="1", query="", documents=(Document(id="a", text=json.dumps(FIELDS)),))
    every_kind = AuditConfig(checks=(CheckName.YES_NO_FIELDS,))
    (claim,) = lexical_audit(query, "It has free WiFi.", every_kind).claims
    assert claim.claim.kind == "field"


def test_hostile_documents_end() -> None:
    for text in ('{"a": {' * 20_000, '{"' * 50_000, '{"a\\' * 50_000, "{" + '"WiFi": "no", ' * 20_000):
        query = RagQuery(id="1", query="", documents=(Document(id="a", text=text),))
        verdict = lexical_audit(query, "WiFi parking " * 500, CONFIG)
        assert verdict.outcome is not Outcome.UNSCORED
