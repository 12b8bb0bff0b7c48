"""The roles' output formats: claims out of the Proposer's text, answers out of the Checker's, and their
grammars.

Formats are the paper's (Appendix A): `- Question: xxx [Answer: n]` and `1. Evidence: xxx [Answer: n]` or
`[Answer: Cannot answer]`; a tag may be on a later line of its item, as in the paper's examples.

Model output is untrusted. Everything is anchored to lines and bound to its own item; what does not fit is
counted or left missing, never repaired: an answer belongs to the question whose number it carries, a missing
number is a missing answer, the last tag of an item wins, an item without a tag takes none from the next, and
one with another "Evidence:" behind its tag has no answer: it holds an item whose number was not read.
Time is linear in the text.

Whatever matches a grammar is read completely; the one thing that no regular expression can keep out is a
question that holds its own answer, which `parse_claims` refuses. The expressions use groups, classes and
repeats only, which vLLM's grammar engines compile; the parser stays strict, since not every engine
constrains.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from reward.claims.kind import ClaimKind
from reward.types import Answer, Claim, Span

_QUESTION = re.compile(
    r"(?:[-*•]|\d{1,3}[.)])?[ \t]{0,4}(?:question:|\*\*question:\*\*)(.*)", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"\[ ?answer ?:([^\[\]]*)\]", re.IGNORECASE)
_BARE_TAG = re.compile(r"answer:([^\[\]]*)", re.IGNORECASE)
# At the beginning of a line, or behind the tag of the item before.
_ITEM = re.compile(
    r"(?:^|(?P<tag>\[ ?answer ?:[^\[\]]*\]))[* \t]{0,8}(?P<number>\d{1,4})[.)](?!\d)",
    re.MULTILINE | re.IGNORECASE,
)
_TAG_OPENING = re.compile(r"\[\s*answer\s*:", re.IGNORECASE)
_QUESTION_LABEL = re.compile(r"question\s*:", re.IGNORECASE)
_MARKS = '*_"\u201c\u201d '  # around an answer
_LONGEST_QUESTION, _LONGEST_ANSWER = 500, 400  # characters
_MOST_ITEMS = 2  # read, usable or not, as a multiple of the claims allowed
_EVIDENCE_OF_NEXT = re.compile(r"\bevidence:", re.IGNORECASE)
_EVIDENCE = re.compile(r"\A[* \t]{0,8}evidence:[* \t]{0,8}", re.IGNORECASE)

_INTEGER = r"(0|[1-9][0-9]{0,14}|[1-9][0-9]{0,2}(,[0-9]{3}){1,4})"  # what begins with 0 may be a telephone's
_NUMBER = rf"-?{_INTEGER}(\.[0-9]{{1,8}})?%?"
_MONTH = "(January|February|March|April|May|June|July|August|September|October|November|December)"
_RANGE = r"[0-9]{1,3}-[0-9]{1,3}"  # longer ends may fall, and what falls is no range
_DATE = rf"([1-9]|[12][0-9]|3[01]) {_MONTH}( [12][0-9]{{3}})?"
_TIME = r"(([01][0-9]|2[0-3]):[0-5][0-9]|([1-9]|1[0-2])(:[0-5][0-9])? [ap]m)"
# What names begin with: Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, kana, Chinese, Hangul.
_LETTERS = (
    r"A-Z\u00c0-\u024f\u1e00-\u1eff\u0370-\u052f\u05d0-\u05ea\u0620-\u064a\u0904-\u0939"
    r"\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
)
_NAME = rf"([a-z]|[0-9]{{1,3}} )?[{_LETTERS}][^\r\n\[\]]{{0,80}}"  # "eBay", "50 Cent"
_CALENDAR = ("(Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)", _MONTH)
_BLANK = r"\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000"  # no question begins so
_QUESTION_TEXT = rf"[^{_BLANK}\[\]][^\r\n\[\]]{{0,400}}"
# Any text but the beginning of a tag. Unbounded on purpose: `max_tokens` bounds it, and counting repeats of a
# choice costs xgrammar milliseconds a token.
_ANY_EVIDENCE = r"([^\r\n\[]|\[[^\r\n\[Aa])+"


@dataclass(frozen=True)
class ParsedClaims:
    """The claims of a Proposer's text, numbered from 1, and what could not be used."""

    claims: tuple[Claim, ...]
    num_malformed: int  # lines that belong to no claim, and claims that were refused
    too_many: bool  # there were more claims than allowed; `claims` holds the first


def parse_claims(text: str, *, max_claims: int, kinds: Mapping[str, ClaimKind]) -> ParsedClaims:
    """Reads `- Question: xxx [Answer: n]` items; the tag ends its line, or is alone on a later line.

    A claim is refused, and counted as malformed, when no kind reads its bracket as one thing (a range counts
    as one) or when its question holds that answer or a part of it, in any writing: the Checker would read the
    answer out of the question. A number that is in the question only by chance is refused too; nobody can
    distinguish the two.

    Reading ends, as with more than `max_claims`, after twice as many refused ones.
    """
    claims: list[Claim] = []
    num_malformed = num_items = 0
    question: str | None = None  # an item that still waits for its tag
    for line in filter(None, map(str.strip, text.split("\n"))):
        item = _QUESTION.fullmatch(line)
        body, answer = _split_tag(item[1] if item else line)
        if item:
            num_malformed += question is not None
            question = body
        if answer is None or question is None or (not item and body):
            num_malformed += not item
            continue
        claim = _claim(len(claims) + 1, question, answer, kinds)
        question = None
        num_items += 1
        if claim is None and num_items <= max_claims * _MOST_ITEMS:
            num_malformed += 1
        elif claim is None or len(claims) == max_claims:
            return ParsedClaims(tuple(claims), num_malformed, too_many=True)
        else:
            claims.append(claim)
    return ParsedClaims(tuple(claims), num_malformed + (question is not None), too_many=False)


def quoted_questions(response: str) -> set[str]:
    """The questions that a response itself holds in the Proposer's format, as `normal_question` gives them.

    A response may try to write its own claims, with questions that the documents do answer. A claim that a
    Proposer copies from there is the response's question about itself and covers nothing.
    """
    questions = set[str]()
    for before in _TAG_OPENING.split(response)[:-1]:
        for line in before.split("\n"):
            _, *labelled = _QUESTION_LABEL.split(line)
            questions |= {*labelled, "question:".join(labelled)}
    return {normal_question(question) for question in questions} - {""}


def normal_question(question: str) -> str:
    """A question without regard to case, white space, or marks around it."""
    return " ".join(question.casefold().split()).strip("-*\u2022\"' ")


def parse_answers(text: str, num_questions: int, *, complete: bool = True) -> list[Answer | None]:
    """Reads `1. Evidence: xxx [Answer: n]` items by their number.

    Items with other numbers than those of the questions are ignored. Of a text that the sampler cut (not
    `complete`) a last line without a closed bracket does not count.

    Returns:
        One entry a question: the answer; or None when it is missing or unreadable, or when its number was
        answered twice and differently.
    """
    lines = text.split("\n")
    if not complete and not lines[-1].rstrip().endswith("]"):
        text = "\n".join(lines[:-1])
    answers: dict[int, Answer | None] = {}
    for head, end in _items(text):
        number = int(head["number"])
        if not 1 <= number <= num_questions:
            continue
        answer = _answer(text[head.end() : end].split("\n"))
        answers[number] = answer if number not in answers or _agree(answers[number], answer) else None
    return [answers.get(number) for number in range(1, num_questions + 1)]


def answer_spans(text: str) -> list[tuple[int, Span]]:
    """Where the numbered items of a Checker's text are, each with its number."""
    return [(int(head["number"]), Span(start=_start(head), end=end)) for head, end in _items(text)]


def _split_tag(line: str) -> tuple[str, str | None]:
    """The text before the tag that ends a line, and the tag's content; None without such a tag."""
    tags = list(_TAG.finditer(line))
    if not tags or line[tags[-1].end() :].strip(" \t\r.*"):
        return line.strip(), None
    return line[: tags[-1].start()].strip(), tags[-1][1].strip()


def _claim(index: int, question: str, answer: str, kinds: Mapping[str, ClaimKind]) -> Claim | None:
    question, answer = question.removesuffix("**"), answer.strip(_MARKS)
    if len(question) > _LONGEST_QUESTION or len(answer) > _LONGEST_ANSWER:
        return None
    question = " ".join(question.split())
    if not question or _TAG.search(question):
        return None
    for kind in kinds.values():  # the first that reads it; coverage finds the kind of what it is about
        mention = kind.read(answer)
        if mention is not None:
            shown = kind.gives_away(question, mention)
            return None if shown else Claim(index=index, question=question, answer=answer, kind=kind.name)
    return None


def _items(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """The number that opens each item, and where the item ends: at the next one."""
    heads = list(_ITEM.finditer(text))
    return zip(heads, [*map(_start, heads[1:]), len(text)], strict=False)


def _start(head: re.Match[str]) -> int:
    """Where an item begins: behind the tag of the one before, if both are on one line."""
    return head.end("tag") if head["tag"] is not None else head.start()


def _answer(item: Sequence[str]) -> Answer | None:
    """The answer of one item: its last tag at the end of a line, and all text before that as evidence."""
    whole = "\n".join(item)
    if (first := _TAG.search(whole)) and _EVIDENCE_OF_NEXT.search(whole, first.end()):
        return None
    for place in reversed(range(len(item))):
        body, tag = _split_tag(item[place])
        if tag is None and place and (bare := _BARE_TAG.fullmatch(item[place].strip())):
            body, tag = "", bare[1].strip()
        if tag is None:
            continue
        evidence = _EVIDENCE.sub("", "\n".join([*item[:place], body]).strip())
        tag = tag.strip(_MARKS)
        if tag.removesuffix(".").casefold() in ("cannot answer", "cannot be answered"):
            return Answer(value=None, evidence=evidence)
        return Answer(value=tag, evidence=evidence) if 0 < len(tag) <= _LONGEST_ANSWER else None
    return None


def _agree(a: Answer | None, b: Answer | None) -> bool:
    return a is not None and b is not None and a.value == b.value


@cache
def proposer_pattern(max_claims: int, kinds: tuple[str, ...] = ("number",)) -> str:
    """One to `max_claims` lines `- Question: xxx [Answer: n]`."""
    item = rf"- Question: {_QUESTION_TEXT} \[Answer: {_answer_pattern(kinds)}\]"
    return rf"{item}(\n{item}){{0,{max_claims - 1}}}" if max_claims > 1 else item


@cache
def checker_pattern(num_questions: int, kinds: tuple[str, ...] = ("number",)) -> str:
    """The lines `1. Evidence: xxx [Answer: n]` or `[Answer: Cannot answer]`, one a question, in order."""
    tag = rf"\[Answer: ({_answer_pattern(kinds)}|Cannot answer)\]"
    return r"\n".join(rf"{i}\. Evidence: {_ANY_EVIDENCE} {tag}" for i in range(1, num_questions + 1))


def _answer_pattern(kinds: tuple[str, ...]) -> str:
    """What a bracket may hold; without the kind of dates, dates are numbers."""
    ways = [_NUMBER, _RANGE, _DATE, _TIME]
    ways += [*_CALENDAR] * ("date" in kinds) + [_NAME] * ("name" in kinds)
    return f"({'|'.join(ways)})"
