"""Rows of the world of real text: a question about one or two facts, their paragraphs, and some like them.

Nothing is drawn: every choice follows from a digest of what it is about, so that the same files give the same
rows with the same ids, in whatever order they are read.

The splits share no paragraph, no subject and no fact. A row of the training split whose paragraph, or one of
that name, is in the held-out split is left out, and held-out paragraphs are no distractors of it.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.wiki.facts import Fact, bare, facts_of
from pipeline.worlds.wiki.paragraphs import WikiRow
from pipeline.worlds.wiki.relations import FULL_DATE, RELATIONS, SYMMETRIC, question_about
from pipeline.worlds.world import ALL_KINDS, Asked, Split, WorldRow
from reward.claims import kinds_for, targets_of
from reward.types import Document, RagQuery

_LONGEST_SUBJECT = 60  # characters
_NO_TEXTS = RagQuery(id="none", query="", documents=(Document(id="none", text=""),))
_KINDS = kinds_for(ALL_KINDS, _NO_TEXTS)
_SMALL_WORDS = {"the", "of", "a", "an", "and", "in", "to", "for"}


@dataclass(frozen=True)
class _Known:
    title: str  # of the paragraph
    sentences: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def digest_of(*parts: str) -> int:
    """A number that is the same on every machine."""
    return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:8])


def unique(rows: Iterable[WorldRow]) -> list[WorldRow]:
    """One row a question, since rows of the data set share paragraphs; the same one in whatever order."""
    by_question: dict[frozenset[str], WorldRow] = {}
    for row in sorted(rows, key=lambda row: [document.text for document in row.query.documents]):
        by_question.setdefault(frozenset(one.question for one in row.asked), row)
    return sorted(by_question.values(), key=lambda row: row.query.id)


def all_rows(
    rows: Sequence[WikiRow], split: Split, settings: WikiSettings, *, without: set[str]
) -> Iterator[WorldRow]:
    """Every question about the paragraphs of some rows of one split of the data set.

    `without` are names, in small letters, whose paragraphs belong to the other split.
    """
    known: dict[str, _Known] = {}
    triples = _triples(rows)
    for row in rows:
        group = {}
        for title, sentences in row.paragraphs.items():
            if bare(title).casefold() in without:
                continue
            if title not in known:
                known[title] = _known(title, sentences, triples.get(title, ()), without)
            group[title] = known[title]
        yield from _rows_of(group, split, settings)


def _triples(rows: Sequence[WikiRow]) -> dict[str, list[tuple[str, str]]]:
    """Relation and object of all triples, by the title of the subject's paragraph."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        titles = {bare(title): title for title, _ in row.context} | {title: title for title, _ in row.context}
        for subject, relation, value in row.evidences:
            if subject in titles:
                found.setdefault(titles[subject], []).append((relation, value))
    return found


def _known(
    title: str, sentences: tuple[str, ...], triples: Sequence[tuple[str, str]], without: set[str]
) -> _Known:
    facts = facts_of(title, " ".join(sentences), triples)
    usable = (one for one in facts if one.relation in RELATIONS and _is_plain(one))
    apart = tuple(
        one for one in usable if not (one.relation in SYMMETRIC and one.value.casefold() in without)
    )
    return _Known(title, sentences, apart)


def _is_plain(fact: Fact) -> bool:
    """Whether an answer can state a fact so that nothing else of it looks like a claim.

    A number in the subject would ("Eight Days"), and so would a value of two parts ("Montreal, Quebec").
    """
    subject = fact.subject
    if len(subject) > _LONGEST_SUBJECT or not subject[:1].isupper() or '"' in subject:
        return False
    if any(_KINDS[kind].find(subject) for kind in ("number", "date")):
        return False
    kind = _KINDS[RELATIONS[fact.relation].kind]
    truth, found = kind.read(fact.value), targets_of(f"It is from {fact.value}.", _KINDS)
    if truth is None or len(found) != 1:
        return False
    return kind.bears_out(kind.taken_as(truth, found[0].mention), found[0].mention)


def _rows_of(group: Mapping[str, _Known], split: Split, settings: WikiSettings) -> Iterator[WorldRow]:
    names = Counter(bare(title).casefold() for title in group)
    for home in group.values():
        if names[bare(home.title).casefold()] > 1:  # two paragraphs are about this name
            continue
        for fact in home.facts:
            if RELATIONS[fact.relation].kind in settings.kinds and not _gives_away(fact, fact):
                yield from _rows_about(fact, home, group, split, settings)


def _rows_about(
    fact: Fact, home: _Known, group: Mapping[str, _Known], split: Split, settings: WikiSettings
) -> Iterator[WorldRow]:
    others = _nearest(home, fact, group)
    near = others[: settings.num_documents - 1]
    shown = [home, *near]
    if 1 in settings.num_asked:
        rest = [one for one in others if not _mentions(one, fact)]
        share = digest_of(fact.title, fact.relation) % 1000 / 1000
        if share < settings.unanswerable_share and len(rest) >= 2:
            yield _row(split, [fact], rest[: settings.num_documents], settings, taken_away=True)
        elif _says_once(fact, shown):
            yield _row(split, [fact], shown, settings)
    if 2 in settings.num_asked and (second := _second(fact, near, settings)):
        both = sorted([fact, second], key=lambda one: digest_of(one.title, one.relation, fact.title))
        if all(_says_once(one, shown) for one in both):
            yield _row(split, both, shown, settings)


def _nearest(home: _Known, fact: Fact, group: Mapping[str, _Known]) -> list[_Known]:
    """The other paragraphs: first those whose name shares a word, which may be mistaken for it."""
    words = set(bare(home.title).split()) - _SMALL_WORDS

    def nearness(other: _Known) -> tuple[int, int, int]:
        shared = len(words & set(bare(other.title).split()))
        alike = any(one.relation == fact.relation for one in other.facts)
        likeness = 2 * alike + bool(re.search(FULL_DATE, other.text))
        return -shared, -likeness, digest_of(home.title, other.title)

    return sorted((one for one in group.values() if one is not home), key=nearness)


def _mentions(paragraph: _Known, fact: Fact) -> bool:
    """Whether a paragraph may answer a question although it is not the subject's own."""
    return fact.subject in paragraph.title or fact.subject in paragraph.text or fact.value in paragraph.text


def _says_once(fact: Fact, documents: Sequence[_Known]) -> bool:
    """Whether no two of the documents are about the subject's name."""
    return sum(bare(one.title).casefold() == fact.subject.casefold() for one in documents) == 1


def _second(fact: Fact, others: Sequence[_Known], settings: WikiSettings) -> Fact | None:
    """Another fact to ask for, of another paragraph: of the same kind if there is one."""
    choices = [
        one
        for other in others
        for one in other.facts
        if RELATIONS[one.relation].kind in settings.kinds and not _gives_away(one, fact)
    ]

    def fitness(one: Fact) -> tuple[bool, int]:
        same_kind = RELATIONS[one.relation].kind == RELATIONS[fact.relation].kind
        return not same_kind, digest_of(fact.title, fact.relation, one.title, one.relation)

    return min(choices, key=fitness, default=None)


def _gives_away(one: Fact, other: Fact) -> bool:
    """Whether the query would hold an answer, or two facts could be taken for each other."""
    names = [set(fact.subject.casefold().split()) for fact in (one, other)]
    values = [set(fact.value.casefold().split()) for fact in (one, other)]
    are_alike = values[0] == values[1] or names[0] <= names[1] or names[1] <= names[0]
    return (one is not other and are_alike) or any(
        value <= name or name <= value for value in values for name in names
    )


def _row(
    split: Split,
    facts: Sequence[Fact],
    paragraphs: Sequence[_Known],
    settings: WikiSettings,
    *,
    taken_away: bool = False,
) -> WorldRow:
    key = "|".join(f"{one.title}/{one.relation}" for one in facts)
    row_id = f"wiki-{split}-{digest_of(key, str(taken_away)):016x}"
    order = sorted(paragraphs, key=lambda one: digest_of(key, one.title))
    documents = tuple(
        Document(id=str(i), title=one.title, text=_cut(one, facts, settings.max_document_chars))
        for i, one in enumerate(order, start=1)
    )
    ids = {document.title: document.id for document in documents}
    asked = tuple(
        Asked(
            question=question_about(one.relation, one.subject, digest_of(one.title, one.relation) >> 16),
            subject=one.subject,
            kind=RELATIONS[one.relation].kind,
            value=None if taken_away else one.value,
            relation=one.relation,
            document="" if taken_away else ids[one.title],
        )
        for one in facts
    )
    question = _joined([one.question for one in asked])
    query = RagQuery(id=row_id, query=question, documents=documents, unanswerable=taken_away)
    return WorldRow(query=query, asked=asked)


def _joined(questions: Sequence[str]) -> str:
    """ "When was A born, and when did B die?" """
    first, *more = questions
    rest = [f", and {one[0].lower()}{one[1:-1]}" for one in more]
    return first[:-1] + "".join(rest) + "?"


def _cut(paragraph: _Known, facts: Sequence[Fact], limit: int) -> str:
    """The first sentences up to the limit, and on to the one that ends what is asked for."""
    needed = [one.value for one in facts if one.title == paragraph.title]
    kept = ""
    for sentence in paragraph.sentences:
        longer = f"{kept} {sentence}".strip()
        if kept and len(longer) > limit and all(value in kept for value in needed):
            break
        kept = longer
    return kept
