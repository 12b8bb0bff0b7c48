"""A small number in words is a claim, unless it counts what the answer or a document lists."""

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery

FERRY = (
    "The ferry line Baltrana sails twice a week from Ventspils. Its ships are the Livia Star, the Maren and "
    "the Odin. Captain Ada Holm sang in a quartet at the party of the crew. The men Bo Lind and Carl Dahl "
    "came."
)


def outcome(response: str) -> Outcome:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=FERRY),))
    return lexical_audit(query, response, AuditConfig()).outcome


@pytest.mark.parametrize(
    "response",
    [
        "Baltrana has five sailings a week.",
        "Baltrana plans three crossings.",
        "Seven people came with Bo Lind.",
        "The five ships of Baltrana sail.",
        "It was the ninth of its kind, says Baltrana.",
        "Ada Holm sang with five singers.",
        "From two to six of the crew of Baltrana came.",
    ],
)
def test_what_nothing_lists_is_refuted(response: str) -> None:
    assert outcome(response) is Outcome.REFUTED


@pytest.mark.parametrize(
    "response",
    [
        "Baltrana has three ships: the Livia Star, the Maren and the Odin.",
        "Baltrana has three ships.",  # the document lists them
        "Two men came: Bo Lind and Carl Dahl.",
        "The two men knew Ada Holm.",
        "Four singers sang when Ada Holm did.",
        "Bo Lind came, and two others did, too.",
        "There are four ways to say that Bo Lind came.",
        "The passage names six people, of whom Ada Holm is one.",
        "- Bo Lind\n- Carl Dahl\n- Ada Holm\n- Odin\n\nThese are four names.",
        "One guest was Bo Lind, another Carl Dahl. A third guest was Ada Holm.",
        "There are two sailings a week of Baltrana.",  # "twice"
    ],
)
def test_what_the_answer_or_a_document_lists_may_be_counted(response: str) -> None:
    assert outcome(response) is Outcome.SUPPORTED


@pytest.mark.parametrize(
    ("document", "response", "expected"),
    [
        ("Three ships sank in 1902.", "Only one ship sank in 1902.", Outcome.REFUTED),
        ("Three ships sank in 1902.", "In 1902 exactly one ship sank.", Outcome.REFUTED),
        ("Three ships sank in 1902.", "One of the ships sank in 1902.", Outcome.SUPPORTED),
        ("Of three ships a single one sank in 1902.", "Only one ship sank in 1902.", Outcome.SUPPORTED),
        ("Of three ships only the Odin sank in 1902.", "Just one ship sank in 1902.", Outcome.SUPPORTED),
        ("Three ships sailed in 1902. A ship sank.", "In 1902 only one ship sank.", Outcome.SUPPORTED),
        ("Three ships sank in 1902.", "From one to five ships sank in 1902.", Outcome.REFUTED),
        ("Three ships sank in 1902.", "This is only one example of 1902.", Outcome.SUPPORTED),
    ],
)
def test_only_one_of_several_is_refuted(document: str, response: str, expected: Outcome) -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    assert lexical_audit(query, response, AuditConfig()).outcome is expected
