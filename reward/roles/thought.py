"""What a turn thought before it answered, told apart from its answer (`AuditConfig.thinking`).

Models that reason write "<think> ... </think>" and then the answer; some chat templates write "<think>"
themselves, at the end of the prompt. A serving stack that hides thought shows what follows the first
"</think>", so that is the answer: cut at a later one, a policy could put before it what people see and nobody
checks. Only tokens' text is cut: the turn's token ids stay whole, and thought is trained.
"""

from __future__ import annotations

from typing import Final

from reward.config import AuditConfig
from reward.types import ClaimVerdict, Span, Verdict

_START: Final = "<think>"
_END: Final = "</think>"
_SHOWN_FROM: Final = "<tool_call>"  # ends thought, too, in vLLM's parser for Qwen3, which shows what follows


def answer_start(turn: str, config: AuditConfig) -> int:
    """Where the answer of a turn begins: its length when it ended in thought, 0 when nothing is thought.

    Text before the first "</think>" is thought when it begins with "<think>" or holds none, and calls no
    tool; of any other some may be shown, so the whole turn is the answer. White space behind the thought
    belongs to it.

    Args:
        turn: What the Solver, the Proposer or the Checker wrote.
        config: With `thinking` off, the whole turn is the answer.
    """
    if not config.thinking:
        return 0
    before, end, after = turn.partition(_END)
    is_opened = before.lstrip().startswith(_START)
    if not end:
        return len(turn) if is_opened else 0
    is_thought = (is_opened or _START not in before) and _SHOWN_FROM not in before
    return len(turn) - len(after.lstrip()) if is_thought else 0


def answer_of(turn: str, config: AuditConfig) -> str:
    """The answer of a turn; empty when it ended in thought."""
    return turn[answer_start(turn, config) :]


def moved(verdict: Verdict, num_chars: int) -> Verdict:
    """A verdict on an answer as one on its response, in which the answer begins at `num_chars`."""
    if not num_chars:
        return verdict

    def placed(span: Span) -> Span:
        return Span(start=span.start + num_chars, end=span.end + num_chars)

    def with_span(one: ClaimVerdict) -> ClaimVerdict:
        span = one.claim.span and placed(one.claim.span)
        return one.model_copy(update={"claim": one.claim.model_copy(update={"span": span})})

    return verdict.model_copy(
        update={
            "claims": tuple(map(with_span, verdict.claims)),
            "uncovered": tuple(map(placed, verdict.uncovered)),
        }
    )
