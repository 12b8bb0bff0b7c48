"""Documents and answers in which only the writing of a number decides, through the audit without a model."""

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery


def outcome(documents: list[str], response: str) -> Outcome:
    held = tuple(Document(id=str(place), text=text) for place, text in enumerate(documents))
    query = RagQuery(id="1", query="What is known?", documents=held)
    return lexical_audit(query, response, AuditConfig()).outcome


@pytest.mark.parametrize(
    ("document", "response", "is_supported"),
    [
        ("The road is 1,500 km long.", "The road is 1.5 km long.", False),
        ("The road is 1,500 m long.", "The road is 1.5 km long.", True),
        ("The club has 1,234 members.", "The club has 1.234 members.", False),
        ("The fair was on 3/5/2021.", "The fair was on 5/3/2021.", False),
        ("The fair was on 3/5/2021.", "The fair was on 3/5/2021.", True),
        ("The fair was on 3/5/2021.", "The fair was on 3 May 2021.", True),
        ("The fair was on 3/5/2021, the ball on 25/5/2021.", "The fair was on March 5, 2021.", False),
        ("The fair was on 3/5/2021, the ball on 25/5/2021.", "The fair was on 3 May 2021.", True),
        ("The fair was on 02.01.2021.", "The fair was on 01.02.2021.", False),
        ("Der Verein hat 1.500 Mitglieder und ist bekannt.", "Der Verein hat 1.500 Mitglieder.", True),
        ("Der Verein hat 1.500 Mitglieder und ist bekannt.", "The club has 1,500 members and is well.", True),
        ("Der Verein hat 1.500 Mitglieder und ist bekannt.", "The club has 1.5 members and is well.", False),
        ("It weighs 500 mg.", "It weighs 1 g.", False),
        ("It cost $600 million.", "It cost $1 billion.", False),
        ("It took 31 minutes.", "It took 1 hour.", False),
        ("It took 10 days.", "It took 1 week.", False),
        ("It took 17 months.", "It took 1 year.", False),
        ("It took 58 minutes.", "It took 1 hour.", True),
        ("It raised $1,234,567.", "It raised $1.2 million.", True),
        ("There are 270 cars.", "There are over 270 cars.", False),
        ("There are over 270 cars.", "There are over 270 cars.", True),
        ("There are more than 270 cars.", "There are over 270 cars.", True),
        ("There are 270+ cars.", "There are over 270 cars.", True),
        ("There are 281 cars.", "There are over 270 cars.", True),
        ("There are 5,000 cars.", "There are over 270 cars.", False),
        ("There are under 270 cars.", "There are over 270 cars.", False),
        ("There are 270 cars.", "There are at least 270 cars.", True),
        ("There are 12 cars.", "There are more than 0 cars.", False),
        ("It opens at 9:30.", "It opens at 9:30 pm.", True),
        ("It opens at 9:30 am.", "It opens at 9:30 pm.", False),
    ],
)
def test_one_document_decides(document: str, response: str, is_supported: bool) -> None:
    expected = Outcome.SUPPORTED if is_supported else Outcome.REFUTED
    assert outcome([document], response) is expected


def test_a_document_is_read_by_the_other_documents_and_never_by_the_answer() -> None:
    german = "Der Verein ist in der Stadt bekannt."
    assert outcome(["1.500 Mitglieder", german], "The club has 1,500 members and is well known.") is (
        Outcome.SUPPORTED
    )
    answer = "Der Verein ist bekannt und hat 1500 Mitglieder."
    assert outcome(["Members: 1.500"], answer) is Outcome.REFUTED
