"""Opening hours: the days of a statement, and whether a document gives those hours for those days."""

import json

import pytest

from reward.checks.days import find_day_sets
from reward.config import AuditConfig, CheckName
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, Outcome, RagQuery

CONFIG = AuditConfig(kinds=("number",), checks=(CheckName.OPENING_HOURS,))
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Closed on Monday by leaving it out, longer on Friday and Saturday.
HOURS = dict.fromkeys(WEEK[1:], "17:0-21:0") | {"Friday": "17:0-21:45", "Saturday": "17:0-21:45"}


def query(hours: object, *, text: str = "") -> RagQuery:
    info = {"name": "Cafe", "hours": hours, "review": text}
    return RagQuery(id="1", query="Describe it.", documents=(Document(id="a", text=json.dumps(info)),))


def states(response: str, hours: object = HOURS, **kwargs: str) -> list[ClaimState]:
    verdict = lexical_audit(query(hours, **kwargs), response, CONFIG)
    return [claim.state for claim in verdict.claims]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Monday through Friday", ["01234"]),
        ("Mon-Fri, Sat. and Sun", ["0123456"]),
        ("Friday to Monday", ["0456"]),
        ("on Tuesdays, Thursdays, and Saturdays", ["135"]),
        ("weekdays and weekends", ["0123456"]),
        ("every day except Mondays", ["123456"]),
        ("daily; seven days a week; throughout the week", ["0123456"] * 3),
        ("open at noon on Friday; closed on Sunday", ["4", "6"]),
        ("he sat in the sun for a month", []),
    ],
)
def test_days_of_a_text(text: str, expected: list[str]) -> None:
    assert ["".join(map(str, sorted(found.days))) for found in find_day_sets(text)] == expected


@pytest.mark.parametrize(
    "response",
    [
        "Open Tuesday to Thursday and Sunday from 5 pm to 9 pm.",
        "It operates from 5:00 PM to 9:00 PM on Tuesdays to Sundays, with extended hours until 9:45 PM on "
        "Fridays and Saturdays.",
        "They are open Tuesdays through Sundays from 5:00 pm to 9:00 pm, with extended hours on Fridays and "
        "Saturdays.",
        "* Tuesday: 17:00 - 21:00\n* Friday: 17:00 - 21:45",
        "Hours are 5-9 pm on Sunday.",
        "It opens at 5 pm on Tuesdays and closes at 9:45 pm on Saturdays.",
        "It is open from 17:0 to 21:0 except Monday, Friday and Saturday.",
    ],
)
def test_the_right_hours_of_the_right_days_are_supported(response: str) -> None:
    found = states(response)
    assert found
    assert set(found) == {ClaimState.SUPPORTED}


@pytest.mark.parametrize(
    "response",
    [
        "Their hours are from 5 pm to 9:45 pm on Tuesday through Sunday.",  # each number is there
        "It is open every day from 5 pm to 9 pm.",  # Monday is closed
        "It is open Monday from 5 pm to 9 pm.",
        "The cafe operates on Tuesday from 5 am to 9 am.",  # the other half of the day
        "Hours: Sunday: 17:00-21:45",
        "It is open from 11 am to 11 pm.",
    ],
)
def test_hours_of_another_day_or_half_are_contradicted(response: str) -> None:
    assert states(response) == [ClaimState.CONTRADICTED]


def test_a_contradiction_says_what_the_document_gives() -> None:
    verdict = lexical_audit(query(HOURS), "Open Monday and Friday from 5 pm to 9 pm.", CONFIG)
    (claim,) = verdict.claims
    assert verdict.outcome is Outcome.REFUTED
    assert claim.consensus == "Mon closed, Fri 17:0-21:45"


def test_a_table_that_never_passes_twelve_may_mean_either_half() -> None:
    table = dict.fromkeys(WEEK, "11:30-2:0")
    assert states("Open daily from 11:30 am to 2 am.", table) == [ClaimState.SUPPORTED]
    assert states("Open daily from 11:30 am to 2 pm.", table) == [ClaimState.SUPPORTED]
    assert states("Open daily from 11:30 am to 3 am.", table) == [ClaimState.CONTRADICTED]


def test_without_a_table_times_are_looked_up() -> None:
    assert states("It is open from 11 am to 11 pm every day.", None) == [ClaimState.NOT_IN_DOCUMENTS]
    assert states("Happy hour is from 3 pm to 6 pm.", HOURS, text="Happy hour 3 pm to 6 pm!") == [
        ClaimState.SUPPORTED
    ]


def test_seven_days_a_week_needs_seven_open_days() -> None:
    assert states("It is open 7 days a week.", dict.fromkeys(WEEK, "7:0-14:0")) == [ClaimState.SUPPORTED]
    assert states("It is open 7 days a week.") == [ClaimState.NOT_IN_DOCUMENTS]


def test_python_and_json_tables_are_the_same() -> None:
    documents = (Document(id="a", text=str({"hours": HOURS, "wifi": None})),)
    verdict = lexical_audit(
        RagQuery(id="1", query="?", documents=documents), "Open Friday from 5 pm to 9:45 pm.", CONFIG
    )
    assert verdict.outcome is Outcome.SUPPORTED
