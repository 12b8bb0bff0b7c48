"""What each role should write, from rows whose truth is known.

The prompts are those of rollouts and audits, rendered by the recipe's own prompt set, and the completions
have the form that `reward.roles.formats` reads:

    Solver     the true facts in sentences, in one of several wordings; "The documents do not say ..."
    Proposer   - Question: When was Sam Wood born? [Answer: July 10, 1883]
    Checker    1. Evidence: "Sam Wood (July 10, 1883" [Answer: July 10, 1883]
               2. Evidence: The documents do not say. [Answer: Cannot answer]

A Proposer is shown answers with other rows' values, so that it learns to copy what is there and not what
is true. Wordings vary, so that the policy that learns them still has something to choose among: a start that
is sure of every word gives reinforcement no contrast. Pure: chance comes from the generator that is given.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.settings.warmup import RoleShares
from pipeline.worlds.wiki.relations import question_about, question_for_subject, statement_of
from pipeline.worlds.world import Asked, Demonstration, WorldRow
from reward.claims import kinds_for, targets_of
from reward.claims.kind import num_atoms
from reward.config import AuditConfig
from reward.judging.coverage import cover
from reward.roles.formats import parse_claims
from reward.roles.prompts import PromptSet
from reward.types import Document, Role

_ABSTENTIONS = (
    "The documents do not say.",
    "The documents do not say this.",
    "This is not stated in the documents.",
)
_NO_EVIDENCE = "The documents do not say."
_SHARE_OF_SUBJECTS = 0.2  # of a Checker's turns, where names are checked
_LONGEST_QUOTATION = 90  # characters before the value
_ABBREVIATION = re.compile(r"\b[A-Z]\.\s$|\b(?:Dr|Jr|Mr|Mrs|St)\.\s$")


@dataclass(frozen=True)
class Lesson:
    """What demonstrations are made of and with."""

    rows: Sequence[WorldRow]
    prompts: PromptSet
    audit: AuditConfig  # its kinds are what is asked about
    shares: RoleShares
    cannot_answer_share: float


def demonstrations(lesson: Lesson, num: int, seed: int) -> Iterator[Demonstration]:
    """Draws demonstrations; equal arguments give equal ones. Raises `ValueError` when no row can be shown.

    Rows come in turn, shuffled again each time round, so that none is shown twice before all were shown once.
    """
    rng = random.Random(seed)
    values = _values_by_relation(lesson.rows)
    made = 0
    while made < num:
        before = made
        for row in rng.sample(lesson.rows, len(lesson.rows)):
            if made < num and (shown := _demonstrate(row, lesson, values, rng)):
                made += 1
                yield shown
        if made == before:
            raise ValueError("data: no row can be demonstrated; choose another world or other kinds")


def _demonstrate(
    row: WorldRow, lesson: Lesson, values: dict[str, list[str]], rng: random.Random
) -> Demonstration | None:
    shares = lesson.shares
    role = rng.choices(tuple(Role), (shares.solver, shares.proposer, shares.checker))[0]
    if role is Role.SOLVER:
        return Demonstration(role, lesson.prompts.solver(row.query), write_answer(row, rng), row.query.id)
    if role is Role.PROPOSER:
        return _propose(row, lesson, values, rng)
    return _check(row, lesson, rng)


def write_answer(row: WorldRow, rng: random.Random) -> str:
    """The Solver's answer: a sentence a fact, or both in one; an abstention where no document says them."""
    if not row.is_answerable:
        return rng.choice(_ABSTENTIONS)
    return _state(row.asked, rng)


def _state(asked: Sequence[Asked], rng: random.Random) -> str:
    sentences = [statement_of(one.relation, one.subject, str(one.value), rng.randrange(6)) for one in asked]
    if len(sentences) == 2 and rng.random() < 0.5:
        first, second = sentences
        if not second.startswith(asked[1].subject):  # "The date of birth of ..."
            second = second[0].lower() + second[1:]
        return f"{first[:-1]} and {second}"
    return " ".join(sentences)


def _propose(
    row: WorldRow, lesson: Lesson, values: dict[str, list[str]], rng: random.Random
) -> Demonstration | None:
    """An answer with the values of other rows, and a question for each of them that the audit checks."""
    swapped = [one.model_copy(update={"value": rng.choice(values[one.relation])}) for one in row.asked]
    if not row.is_answerable or len({one.value for one in swapped}) < len(swapped):
        return None
    answer = _state(swapped, rng)
    kinds = kinds_for(lesson.audit, row.query, answer)
    targets = targets_of(answer, kinds)
    lines = [write_claim(answer[one.start : one.end], swapped) for one in targets]
    parsed = parse_claims("\n".join(lines), max_claims=lesson.audit.max_claims, kinds=kinds)
    if not lines or parsed.num_malformed or cover(answer, targets, parsed.claims).uncovered:
        return None
    least = min(lesson.audit.min_claims, num_atoms(targets))  # as the audit's Proposer is asked
    messages = lesson.prompts.proposer(answer, min_questions=least, kinds=lesson.audit.kinds)
    return Demonstration(Role.PROPOSER, messages, "\n".join(lines), row.query.id)


def write_claim(stated: str, asked: Sequence[Asked]) -> str:
    """The Proposer's line for a part of an answer, in the relation's first wording; empty if there is none.

    A subject is asked for, too, where the audit checks it: "Who was born on July 10, 1883?".
    """
    for one in asked:
        if stated == one.value:
            return f"- Question: {question_about(one.relation, one.subject)} [Answer: {stated}]"
        question = question_for_subject(one.relation, str(one.value))
        if stated == one.subject and question:
            return f"- Question: {question} [Answer: {stated}]"
    return ""


def _check(row: WorldRow, lesson: Lesson, rng: random.Random) -> Demonstration | None:
    """Questions about the row, some of them about what no document says."""
    checked = [one for one in row.asked if _is_checked(one, lesson.audit.kinds)]
    if not checked:
        return None
    if "name" in lesson.audit.kinds and rng.random() < _SHARE_OF_SUBJECTS:
        return _check_subjects(row, lesson)
    asked = [
        one.model_copy(update={"question": question_about(one.relation, one.subject, rng.randrange(2))})
        for one in checked
    ]
    if row.is_answerable and rng.random() < lesson.cannot_answer_share:
        place = rng.randrange(len(asked))
        if stranger := _stranger(row, asked[place], lesson.rows, rng):
            asked[place] = stranger
    lines = [write_check(i, one, row.query.documents) for i, one in enumerate(asked, start=1)]
    messages = lesson.prompts.checker(
        row.query.documents, [one.question for one in asked], kinds=lesson.audit.kinds
    )
    return Demonstration(Role.CHECKER, messages, "\n".join(lines), row.query.id)


def _check_subjects(row: WorldRow, lesson: Lesson) -> Demonstration | None:
    """Questions for the subjects themselves, where the document's own words hold both subject and value."""
    lines, questions = [], []
    for one in row.asked:
        text = next((document.text for document in row.query.documents if document.id == one.document), "")
        value = rf"(?<!\w){re.escape(str(one.value))}(?!\w)"
        if any(re.search(value, other.text) for other in row.query.documents if other.id != one.document):
            return None  # another subject may be an answer, too
        question = question_for_subject(one.relation, str(one.value))
        quoted = quotation(text, one.value) if one.value else ""
        if not question or not re.search(rf"(?<!\w){re.escape(one.subject)}(?!\w)", quoted):
            return None
        questions.append(question)
        lines.append(f'{len(questions)}. Evidence: "{quoted}" [Answer: {one.subject}]')
    messages = lesson.prompts.checker(row.query.documents, questions, kinds=lesson.audit.kinds)
    return Demonstration(Role.CHECKER, messages, "\n".join(lines), row.query.id)


def write_check(number: int, asked: Asked, documents: Sequence[Document]) -> str:
    """The Checker's line: the words of the document that hold the value, and the value."""
    if asked.value is None:
        return f"{number}. Evidence: {_NO_EVIDENCE} [Answer: Cannot answer]"
    text = next(document.text for document in documents if document.id == asked.document)
    return f'{number}. Evidence: "{quotation(text, asked.value)}" [Answer: {asked.value}]'


def quotation(text: str, value: str) -> str:
    """The words of a document from the beginning of the value's sentence, at most 90 characters before it."""
    whole = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)
    assert whole is not None, f"{value!r} does not stand in its document"
    start = 0
    for end in re.finditer(r"[.!?]\s(?=[A-Z])", text[: whole.start()]):
        if not _ABBREVIATION.search(text[: end.end()]):
            start = end.end()
    # Quotation marks and square brackets of the text would end the evidence or be taken for a tag.
    start = max(start, *(text.rfind(mark, 0, whole.start()) + 1 for mark in '"[]'))
    while whole.start() - start > _LONGEST_QUOTATION:
        start = text.index(" ", start) + 1
    return text[start : whole.end()].lstrip(" ,;.)")


def _stranger(row: WorldRow, asked: Asked, rows: Sequence[WorldRow], rng: random.Random) -> Asked | None:
    """A fact that no document of a row says: the same relation of somebody whom none of them names."""
    texts = " ".join(f"{document.title} {document.text}" for document in row.query.documents)
    for other in rng.sample(rows, min(len(rows), 8)):
        one = other.asked[0]
        if one.relation == asked.relation and one.subject not in texts:
            question = question_about(one.relation, one.subject)
            return one.model_copy(update={"question": question, "value": None, "document": ""})
    return None


def _is_checked(asked: Asked, kinds: Sequence[str]) -> bool:
    """Whether the audit asks about a fact; without the kind of dates a date is a number."""
    return asked.kind in kinds or (asked.kind == "date" and "number" in kinds)


def _values_by_relation(rows: Sequence[WorldRow]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for row in rows:
        for one in row.asked:
            values.setdefault(one.relation, []).append(one.value or "")
    return {relation: [one for one in found if one] or [""] for relation, found in values.items()}
