"""Which of an answer's turns are trained, and which of their tokens bear the penalty.

With `solver_credit: claim` the tokens of a refuted answer are paid by what they say, after the idea of BALTO
(arXiv:2606.15893): the sentences that nobody confirms keep the answer's reward, the others are worth what a
supported answer is. With `checker_reward: each_answer` so are the numbered answers of a Checker's turn, by
its own votes. `pipeline.training.advantages.spared` makes advantages of it, docs/presets.md says why.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, takewhile
from operator import eq

from pipeline.record.rollout_record import RolloutRecord
from reward.claims.text import sentence_span
from reward.judging.vote import Reason
from reward.roles.formats import answer_spans
from reward.types import ClaimState, Outcome, Span, Trajectory, Verdict

ENDED = ("stop", "length")  # by itself, or at its token limit; anything else is an engine's failure
_THOUGHT_END = "</think>"

Decode = Callable[[Sequence[int]], str]


def token_credit(
    record: RolloutRecord, turn: Trajectory | None, token_ids: Sequence[int], *, decode: Decode
) -> list[tuple[int, float]]:
    """Returns (token, value) pairs: by how much some tokens are worth more than their whole turn.

    A refuted turn is worth its reward, what it says outside of its refuted parts 0, as in a supported turn.
    No pair says that the turn is of one worth: it is not refuted, or as a whole, or nobody knows by which
    part. What says nothing, as the end token, has the worth of the whole turn.

    Args:
        record: The answer.
        turn: A Checker's turn of it; None for the answer itself.
        token_ids: (A,) sampled ids of the turn.
        decode: Ids to text, without special tokens.
    """
    text = decode(token_ids)
    if turn is not None:
        reward, parts = turn.own_reward, refuted_answers(turn, text)
    elif text == record.response and not (record.says_less or record.unanswerable):
        reward, parts = record.verdict.reward, refuted_sentences(record.verdict, text)
    else:
        return []
    if not reward or not parts:
        return []
    parts = [*parts, Span(start=0, end=_thought(text))]
    rest = tokens_of(_between(parts, text), token_ids, text=text, decode=decode)
    spared = rest - tokens_of(parts, token_ids, text=text, decode=decode)
    return [(token, -reward) for token in sorted(spared)]


def refuted_sentences(verdict: Verdict, response: str) -> list[Span]:
    """The sentences of a refuted answer with something that is not known to be supported.

    None where the audit does not say which: a lookup in the place of a Proposer that failed has not asked
    about the rest.
    """
    if verdict.outcome is not Outcome.REFUTED or verdict.reason == Reason.REFUTED_WITHOUT_CLAIMS:
        return []
    wrong = [one.claim.span for one in verdict.claims if one.state is not ClaimState.SUPPORTED]
    spans = [span for span in (*wrong, *verdict.uncovered) if span is not None]
    if len(spans) < len(wrong) + len(verdict.uncovered):
        return []
    places = [sentence_span(response, one.start, one.end, reach=len(response)) for one in spans]
    return [Span(start=start, end=end) for start, end in places]


def refuted_answers(turn: Trajectory, text: str) -> list[Span]:
    """The numbered answers of a Checker's turn that do not bear the claim out, or cannot be read."""
    start = _thought(text)
    borne_out = {number for number, reward in enumerate(turn.answer_rewards, 1) if reward == 0}
    return [
        Span(start=start + span.start, end=start + span.end)
        for number, span in answer_spans(text[start:])
        if number not in borne_out
    ]


def _thought(text: str) -> int:
    """Where the thought before an answer ends. It led to what was refuted, so it bears the penalty, too."""
    before, end, _ = text.partition(_THOUGHT_END)
    return len(before + end) if end else 0


def _between(parts: Sequence[Span], text: str) -> list[Span]:
    """What of a text is in no part and holds a word; a bare "1." or a line break does not."""
    ordered = sorted(parts, key=lambda part: part.start)
    starts = accumulate((part.end for part in ordered), max, initial=0)
    gaps = zip(starts, [*(part.start for part in ordered), len(text)], strict=True)
    return [Span(start=start, end=end) for start, end in gaps if any(map(str.isalpha, text[start:end]))]


def tokens_of(spans: Sequence[Span], token_ids: Sequence[int], *, text: str, decode: Decode) -> set[int]:
    """Returns the tokens that write some character of the spans, or some bytes of one.

    By decoding prefixes, since sampled tokens need not be those that a tokenizer would make of their text.

    Args:
        spans: Of characters of `text`; empty ones have no token.
        token_ids: (A,) ids.
        text: What all of them decode to.
        decode: Ids to text.
    """

    @cache
    def decoded(num: int) -> tuple[int, bool]:
        """How many characters the first tokens decode to as in the text, and whether that is all they do."""
        prefix = decode(token_ids[:num])
        if text.startswith(prefix):
            return len(prefix), True
        return len(list(takewhile(bool, map(eq, prefix, text)))), False

    def written(num: int) -> int:
        """Characters that the first tokens write completely."""
        # Some tokenizers decode none of the byte tokens before a cut; a character has at most four.
        return max(decoded(n)[0] for n in range(max(num - 3, 0), num + 1))

    def begun(num: int) -> int:
        """The same, and one more where they end inside a character."""
        return written(num) + (not decoded(num)[1])

    nums = range(len(token_ids) + 1)
    return {
        token
        for span in spans
        if span.start < span.end
        for token in range(
            bisect_right(nums, span.start, key=begun) - 1,
            min(bisect_left(nums, span.end, key=written), len(token_ids)),
        )
    }


def valid_turns(turns: Sequence[Trajectory]) -> list[Trajectory]:
    """Returns those that ended by themselves, or, where none did, those that were cut at their limit."""
    ended = [t for t in turns if t.finish_reason in ENDED]
    return [t for t in ended if t.finish_reason == "stop"] or ended


def choose_turn(turns: Sequence[Trajectory], *, seed: str) -> Trajectory | None:
    """Picks one of a role's valid turns: a seeded choice, so that no place is favoured."""
    valid = valid_turns(turns)
    return random.Random(seed).choice(valid) if valid else None
