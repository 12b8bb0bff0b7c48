"""Who is champion: a log of numbered entries, and the one state that follows from it.

MLflow's alias write has no compare-and-set: of two writers the later wins and neither is told. What its
registry does have is an atomic append: a new version of a registered model gets the next number, in one
transaction with its tags, and a number is given once (a primary key). So the history is a registered model of
its own, `MODEL.history`, each version of it one entry, and the aliases of MODEL are only a view of it.

Every entry names its parent, the last entry that was in effect when it was decided. It takes effect if and
only if its parent still is that when the entry's turn comes. That is the compare-and-set: of two entries with
one parent the lower number wins, every reader of the log comes to the same winner, and the loser is told. No
lock is held, so none is left behind, and no clock is compared.

An entry may be signed (HMAC-SHA256 under MARCH_PROMOTION_KEY, bound to the model's name and the parent). From
the first signed entry on, unsigned ones are void; with the key at hand, so are wrongly signed ones.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import Field

from orchestration.promotion.records import GateState
from reward.types import Record


class Action(StrEnum):
    """What an entry does."""

    PROMOTE = "promote"  # the gates passed, and nobody is asked
    REQUEST = "request"  # the gates passed, and a person is asked
    APPROVE = "approve"
    REJECT = "reject"
    ROLLBACK = "rollback"  # champion and previous change places
    REFUSE = "refuse"  # the gates did not pass; only noted


MOVES = (Action.PROMOTE, Action.APPROVE, Action.ROLLBACK)  # another champion


class Entry(Record):
    """One entry, as it is appended."""

    id: str = Field(description="Random, so that its writer knows it again.")
    action: Action
    parent: int = Field(ge=0, description="Number of the last entry in effect; 0: none.")
    version: str = Field(description="The model version that it is about.")
    champion: str | None = Field(default=None, description="Champion when it was decided.")
    request: int | None = Field(default=None, description="Number of the request that is decided.")
    gates: GateState | None = None
    report_sha256: str | None = Field(default=None, description="Of the gate report, which the version has.")
    by: str = Field(description="Who, as the command knows it.")
    at: str = Field(description="When, in UTC by the writer's clock; for people, nothing is decided by it.")
    reason: str = ""
    by_another: bool = Field(
        default=False,
        exclude_if=lambda asked: not asked,  # entries without it keep the text that was signed
        description="Of a request: who asked may not approve it.",
    )
    mac: str | None = Field(default=None, description="HMAC-SHA256 (hex) of all the rest.")


class Effect(StrEnum):
    """What became of an entry."""

    IN_EFFECT = "in effect"
    NOTED = "noted"  # it changes nothing, by its kind
    LOST = "lost"  # another entry was first
    VOID = "void"  # it cannot be, or its signature is not right


@dataclass(frozen=True)
class Numbered:
    """An entry with its number and what became of it."""

    number: int
    entry: Entry
    effect: Effect
    why: str = ""
    after: int = 0  # number of the last entry in effect before it


@dataclass(frozen=True)
class State:
    """What follows from the log."""

    champion: str | None = None
    previous: str | None = None
    head: int = 0  # number of the last entry in effect
    waiting: Mapping[int, Entry] = field(default_factory=dict)  # requests by number
    history: tuple[Numbered, ...] = ()
    is_signed: bool = False  # a signed entry was seen

    def of(self, entry_id: str) -> Numbered | None:
        """The first entry with this id; a request that was sent twice stands twice."""
        return next((one for one in self.history if one.entry.id == entry_id), None)


def replay(model: str, entries: Iterable[tuple[int, Entry]], *, key: str | None = None) -> State:
    """Works the state out.

    Args:
        model: Name of the model, which signatures bind.
        entries: Numbers and entries, in the order of the numbers.
        key: Of the signatures; None: they are taken as they are.
    """
    state = State()
    for number, entry in entries:
        effect, why = _effect(model, state, entry, key)
        follows = _apply(state, number, entry) if effect is Effect.IN_EFFECT else state
        is_signed = state.is_signed or (entry.mac is not None and effect is not Effect.VOID)
        state = State(
            champion=follows.champion,
            previous=follows.previous,
            head=follows.head,
            waiting=follows.waiting,
            history=(*state.history, Numbered(number, entry, effect, why, state.head)),
            is_signed=is_signed,
        )
    return state


def signed(model: str, entry: Entry, key: str) -> Entry:
    """The entry with its signature."""
    return entry.model_copy(update={"mac": _mac(model, entry, key)})


def _effect(model: str, state: State, entry: Entry, key: str | None) -> tuple[Effect, str]:
    if entry.mac is None and state.is_signed:
        return Effect.VOID, "it is not signed, and the entries before it are"
    if entry.mac is not None and key and not hmac.compare_digest(entry.mac, _mac(model, entry, key)):
        return Effect.VOID, "its signature is wrong"
    if entry.action is Action.REFUSE:
        return Effect.NOTED, ""
    if entry.parent != state.head:
        return Effect.LOST, f"entry {state.head} was first"
    problem = _problem(state, entry)
    return (Effect.VOID, problem) if problem else (Effect.IN_EFFECT, "")


def _problem(state: State, entry: Entry) -> str:
    """Why an entry cannot be; empty when it can."""
    if entry.action is Action.ROLLBACK:
        return "" if state.previous is not None else "there is no previous champion"
    if entry.action in (Action.PROMOTE, Action.REQUEST):
        return "" if entry.version != state.champion else f"version {entry.version} is the champion already"
    request = state.waiting.get(entry.request or 0)
    if request is None:
        return "no such request waits"
    if entry.action is Action.APPROVE and request.champion != state.champion:
        return "the champion has changed since its gates were run; promote it anew"
    return ""


def _apply(state: State, number: int, entry: Entry) -> State:
    waiting = {key: value for key, value in state.waiting.items() if key != entry.request}
    champion, previous = state.champion, state.previous
    if entry.action is Action.REQUEST:
        waiting[number] = entry
    elif entry.action in (Action.PROMOTE, Action.APPROVE):
        champion, previous = entry.version, state.champion
    elif entry.action is Action.ROLLBACK:
        champion, previous = state.previous, state.champion
    return State(champion=champion, previous=previous, head=number, waiting=waiting)


def _mac(model: str, entry: Entry, key: str) -> str:
    text = f"march-promotion-v1\n{model}\n{entry.model_copy(update={'mac': None}).model_dump_json()}"
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
