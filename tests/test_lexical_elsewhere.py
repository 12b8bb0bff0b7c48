"""The audit without a model on numbers that the documents hold of somebody else.

`data/elsewhere.jsonl` was written by somebody who had not seen the code: 55 right answers that tempt to a
refusal, with pronouns, aliases and acronyms over several documents, and 45 with a value of another subject.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.wiki.relations import statement_of
from pipeline.worlds.wiki.world import WikiWorld
from pipeline.worlds.world import Asked
from reward.claims.dates import DateLookup
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, Outcome, RagQuery

RICHARDS = Document(id="1", title="Edwin Richards", text="Edwin Richards (born 15 December 1879) was Welsh.")
FUKS = Document(id="2", title="Alexander Fuks", text="Alexander Fuks (born 30 May 1917) was a historian.")
JOBS = Document(id="3", title="", text="Jobs and Wozniak sold 200 boards in 1976.")
COMPANY = Document(id="4", title="", text="The company had 3,000 employees in 1984.")
FOUNDERS = Document(id="5", title="", text="Apple was founded by Steve Jobs, Steve Wozniak and Ronald Wayne.")


def audit(response: str, *documents: Document) -> tuple[Outcome, list[str]]:
    query = RagQuery(id="q", query="Who, and when?", documents=documents)
    verdict = lexical_audit(query, response, AuditConfig())
    return verdict.outcome, [claim.note for claim in verdict.claims if claim.note]


@pytest.mark.parametrize(
    "response",
    [
        "Edwin Richards was born on 30 May 1917.",
        "Richards was born on 30 May 1917.",
        "Edwin Richards was born on 30 May 1917 and Alexander Fuks on 15 December 1879.",
        "Edwin Richards was born on 15 December 1879, while Alexander Fuks was born in 1879.",
        "The date of birth of Edwin Richards is 30 May 1917.",
    ],
)
def test_a_number_of_somebody_else_is_refuted(response: str) -> None:
    outcome, notes = audit(response, RICHARDS, FUKS)
    assert outcome is Outcome.REFUTED
    assert any("the documents say it of another: " in note for note in notes)


@pytest.mark.parametrize(
    ("response", "documents"),
    [
        ("Edwin Richards was born on 15 December 1879.", (RICHARDS, FUKS)),
        ("Edwin Richards was born on 15 December 1879 and Alexander Fuks on 30 May 1917.", (RICHARDS, FUKS)),
        ("He was born on 30 May 1917.", (RICHARDS, FUKS)),  # names nobody
        ("Edwin Richards and Alexander Fuks were born in 1879 and 1917.", (RICHARDS, FUKS)),
        ("Steve Jobs sold 200 boards.", (JOBS, FOUNDERS)),  # one surname
        ("Apple had 3,000 employees in 1984.", (COMPANY, FOUNDERS)),  # "the company" names nobody
        ("Edwin Richards was born on 30 May 1917.", (Document(id="1", text=f"{RICHARDS.text} {FUKS.text}"),)),
    ],
)
def test_what_may_be_meant_is_supported(response: str, documents: tuple[Document, ...]) -> None:
    assert audit(response, *documents) == (Outcome.SUPPORTED, [])


def test_a_small_number_in_words_that_only_others_have_refutes() -> None:
    brothers = Document(id="2", title="Alexander Fuks", text="Alexander Fuks had two brothers in Siegen.")
    query = RagQuery(id="q", query="Who had dogs?", documents=(RICHARDS, brothers))
    claims = lexical_audit(query, "Edwin Richards had two dogs.", AuditConfig()).claims
    states = {one.claim.answer: one.state for one in claims}
    assert states == {"Edwin Richards": ClaimState.SUPPORTED, "two": ClaimState.NOT_IN_DOCUMENTS}


def test_what_the_documents_say_of_a_stranger_is_not_said_of_whom_they_never_name() -> None:
    def outcome(*documents: Document) -> Outcome:
        query = RagQuery(id="q", query="When was Godwin Davy born?", documents=documents)
        return lexical_audit(query, "Godwin Davy was born on 30 May 1917.", AuditConfig()).outcome

    assert outcome(RICHARDS, FUKS) is Outcome.REFUTED
    alias = Document(id="3", title="", text="Alexander Samuel Fuks wrote as Godwin Davy.")
    assert outcome(RICHARDS, FUKS, alias) is Outcome.SUPPORTED
    nobody = Document(id="4", title="", text="The historian was born on 30 May 1917.")
    assert outcome(RICHARDS, nobody) is Outcome.SUPPORTED


@pytest.mark.parametrize(
    ("asked", "document", "outcome"),
    [
        ("Andy Hunt", "Kevin Hunt (born 30 May 1917) is a footballer.", Outcome.REFUTED),
        ("William Hunt", "Bill Hunt (born 30 May 1917) is a footballer.", Outcome.SUPPORTED),
        ("Kevin Hunt", "Kevin J. Hunt (born 30 May 1917) is a footballer.", Outcome.SUPPORTED),
        ("Prince Karl", "Prince Karl of Leiningen (born 30 May 1917) was a soldier.", Outcome.SUPPORTED),
        ("Sergey Kuznetsov", "Sergei Kuznetsov (born 30 May 1917) is a footballer.", Outcome.SUPPORTED),
    ],
)
def test_a_near_namesake_is_somebody_else(asked: str, document: str, outcome: Outcome) -> None:
    documents = (RICHARDS, Document(id="3", title="", text=document))
    query = RagQuery(id="q", query=f"When was {asked} born?", documents=documents)
    assert lexical_audit(query, f"{asked} was born on 30 May 1917.", AuditConfig()).outcome is outcome


def test_a_village_of_so_many_people_has_not_so_many_families() -> None:
    village = Document(id="1", text="At the 2006 census, its population was 107, in 34 families.")
    assert audit("The village had 34 families and a population of 107.", village)[0] is Outcome.SUPPORTED
    assert audit("The village had 107 people.", village)[0] is Outcome.SUPPORTED
    assert audit("The village had 107 families.", village)[0] is Outcome.REFUTED


def test_many_documents_are_not_compared_since_each_mention_would_ask_all() -> None:
    many = [
        Document(id=f"m{i}", text=f"Alexander Fuks{i} came in {1000 + i % 900}, and {'he slept. ' * 20}")
        for i in range(1000)
    ]
    response = " ".join(f"Edwin Richards came in {1000 + i}." for i in range(60))
    lookups, find = 0, DateLookup.find

    def counted(self: DateLookup, *arguments: Any, **settings: Any) -> Any:
        nonlocal lookups
        lookups += 1
        return find(self, *arguments, **settings)

    with patch.object(DateLookup, "find", counted):
        outcome, notes = audit(response, RICHARDS, *many)
    assert (outcome, notes) == (Outcome.SUPPORTED, [])
    assert lookups <= 2 * 60


def test_no_right_answer_of_others_is_refuted_for_its_subject() -> None:
    found = {True: 0, False: 0}
    for line in (Path(__file__).parent / "data" / "elsewhere.jsonl").read_text().splitlines():
        row = json.loads(line)
        documents = [Document.model_validate(one) for one in row["documents"]]
        _, notes = audit(row["response"], *documents)
        found[row["right"]] += any("the documents say it of another: " in note for note in notes)
    assert found == {True: 0, False: 6}  # most of those documents name both subjects; two are tables


def test_values_of_two_paragraphs_of_wikipedia_are_mostly_seen_to_be_exchanged_and_right_ones_accepted() -> (
    None
):
    settings = AuditConfig(kinds=("number", "date"))
    rows = WikiWorld(WikiSettings(kinds=("number", "date"))).rows("held_out")
    pairs = [(row.query, *row.asked) for row in rows if len({one.document for one in row.asked}) == 2]

    def outcome(query: RagQuery, first: tuple[Asked, Asked], second: tuple[Asked, Asked]) -> Outcome:
        said = [statement_of(of.relation, of.subject, value.value or "") for of, value in (first, second)]
        return lexical_audit(query, " ".join(said), settings).outcome

    known = [(query, a, b) for query, a, b in pairs if a.kind == b.kind and a.value and b.value][:150]
    right = [outcome(query, (a, a), (b, b)) for query, a, b in known]
    crossed = [outcome(query, (a, b), (b, a)) for query, a, b in known]
    assert right.count(Outcome.SUPPORTED) >= 0.99 * len(known)
    assert crossed.count(Outcome.REFUTED) >= 0.7 * len(known)


def test_the_sides_of_a_score_are_not_gathered_from_several_documents() -> None:
    texts = ("Tverrvik beat Rovers.", "Ann has 3 cats.", "Bob has 2 dogs.")
    documents = [Document(id=str(place), text=text) for place, text in enumerate(texts)]
    assert audit("Tverrvik won 3-2.", *documents)[0] is Outcome.REFUTED
