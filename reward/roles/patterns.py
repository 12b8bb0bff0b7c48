"""Regular expressions of the roles' output formats, for engines that constrain what they write.

Whatever matches one of these is read completely by `reward.roles.parse`; the one thing that no expression can
keep out is a question that holds its own answer, which `parse_claims` refuses. They use groups,
classes and repeats only, which vLLM's grammar engines compile; the parser stays strict, since not every
engine constrains.
"""

from __future__ import annotations

from functools import cache

_INTEGER = r"([0-9]{1,15}|[0-9]{1,3}(,[0-9]{3}){1,4})"
_NUMBER = rf"-?{_INTEGER}(\.[0-9]{{1,8}})?%?"
_MONTH = "(January|February|March|April|May|June|July|August|September|October|November|December)"
_RANGE = r"[0-9]{1,3}-[0-9]{1,3}"  # longer ends may fall, and what falls is no range
_DATE = rf"([1-9]|[12][0-9]|3[01]) {_MONTH}( [12][0-9]{{3}})?"
_TIME = r"(([01][0-9]|2[0-3]):[0-5][0-9]|([1-9]|1[0-2])(:[0-5][0-9])? [ap]m)"
_ANSWER = rf"({_NUMBER}|{_RANGE}|{_DATE}|{_TIME})"
_BLANK = r"\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000"  # no question begins so
_QUESTION = rf"[^{_BLANK}\[\]][^\r\n\[\]]{{0,400}}"
# Any text but the beginning of a tag. Unbounded on purpose: `max_tokens` bounds it, and counting repeats of a
# choice costs xgrammar milliseconds a token.
_EVIDENCE = r"([^\r\n\[]|\[[^\r\n\[Aa])+"


@cache
def proposer_pattern(max_claims: int) -> str:
    """One to `max_claims` lines `- Question: xxx [Answer: n]`."""
    item = rf"- Question: {_QUESTION} \[Answer: {_ANSWER}\]"
    return rf"{item}(\n{item}){{0,{max_claims - 1}}}" if max_claims > 1 else item


@cache
def checker_pattern(num_questions: int) -> str:
    """The lines `1. Evidence: xxx [Answer: n]` or `[Answer: Cannot answer]`, one a question, in order."""
    tag = rf"\[Answer: ({_ANSWER}|Cannot answer)\]"
    return r"\n".join(rf"{i}\. Evidence: {_EVIDENCE} {tag}" for i in range(1, num_questions + 1))
