"""Who is champion: a chain of decisions in the artifact store, one a model.

    pointer decisions/MODEL  ->  manifest of the last decision  ->  its parent  ->  ...  ->  the first

A decision is made when the pointer moves to it, by compare-and-set, from the decision that its writer saw. Of
two at once one moves it; the other finds it moved and has done nothing. So there is no lock, and no clock is
compared. Each decision has the whole state after it: the last one alone says who is champion.

Manifests are named by their content and refer to their parent and to the evaluations that the gates saw.
So no decision and no evaluation can be overwritten, and gc keeps all that the pointer leads to.

A decision may be signed (HMAC-SHA256 under MARCH_PROMOTION_KEY). It has its parent's digest, so that a
signature covers all before it. With the key, the last rightly signed decision counts; what was put behind it
is reported, and the next decision takes its place.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from pydantic import Field, ValidationError

from orchestration.promotion.records import GateReport
from pipeline.artifacts.address import located
from pipeline.artifacts.failures import CorruptError, MovedError, StoreError
from pipeline.artifacts.store import ArtifactStore
from reward.types import Record

logger = logging.getLogger(__name__)

KIND, POINTERS = "decision", "decisions/"
KEY_ENV = "MARCH_PROMOTION_KEY"


class Action(StrEnum):
    """What a decision does."""

    PROMOTE = "promote"  # the gates passed, and nobody is asked
    REQUEST = "request"  # the gates passed, and a person is asked
    APPROVE = "approve"
    REJECT = "reject"
    ROLLBACK = "rollback"  # champion and previous change places
    REFUSE = "refuse"  # the gates did not pass; changes nothing


class Chosen(Record):
    """A version as a decision knows it, so that it is known though MLflow's entry is edited or deleted."""

    version: str
    sha256: str = Field(description="Of the weights.")
    uri: str = Field(description="Of the weights, when it was decided.")
    lineage: str | None = Field(default=None, description="Digest of its lineage.")


class State(Record):
    """What is decided about a model."""

    champion: Chosen | None = None
    previous: Chosen | None = None
    waiting: tuple[str, ...] = Field(default=(), description="`id` of each request that waits for a person.")


class Decision(Record):
    """One decision and the state after it."""

    id: str = Field(description="Random: two decisions of one person in one second are two.")
    model: str
    action: Action
    about: Chosen
    by: str = Field(description="Who, as the command knows it.")
    at: str = Field(description="When, in UTC by the writer's clock; for people, nothing is decided by it.")
    reason: str = ""
    request: str | None = Field(default=None, description="Of an answer: `id` of the request.")
    by_another: bool = Field(default=False, description="Of a request: who asked may not approve it.")
    evaluation: str | None = Field(default=None, description="Manifest of the version's evaluation.")
    champion_evaluation: str | None = None
    report: GateReport | None = Field(default=None, description="What the gates said.")
    number: int = Field(default=1, ge=1, description="In the chain, from 1.")
    parent: str | None = Field(default=None, description="Digest of the decision before it.")
    was: str | None = Field(default=None, description="Version that was champion before it.")
    after: State = State()
    mac: str | None = Field(default=None, description="HMAC-SHA256 (hex) of all the rest.")


@dataclass(frozen=True)
class Made:
    """A decision in the store."""

    digest: str
    decision: Decision


@dataclass(frozen=True)
class Chain:
    """The decisions about one model.

    Args:
        store: Where they are.
        model: Name of the model.
        key: Signs and checks decisions; None: unsigned, and taken as they are.
    """

    store: ArtifactStore
    model: str
    key: str | None = None

    @property
    def pointer(self) -> str:
        """Name of the pointer to the last decision."""
        return POINTERS + quote(self.model, safe="").replace("%", ".")

    def last(self) -> Made | None:
        """The last decision that counts; None where there is none.

        Raises:
            ValueError: one cannot be read, or none is signed by the key.
        """
        return self._last_from(self.store.pointed(self.pointer))

    def history(self) -> Iterator[Made]:
        """All decisions, the last one first."""
        last = self.last()
        return self._back_from(last.digest if last else None)

    def append(self, decision: Decision, parent: Made | None) -> Made:
        """Makes a decision.

        Args:
            decision: What is decided; its place in the chain and the state after it are worked out here.
            parent: The last decision, on which it rests.

        Raises:
            MovedError: another decision was made meanwhile; nothing was done.
            ValueError: the store cannot be used.
        """
        pointed = self.store.pointed(self.pointer)
        if self._last_from(pointed) != parent:
            raise MovedError(f"{self.model}: another decision was made meanwhile; look again")
        if pointed is None:  # once a model; from here on the store alone tells two writers apart
            self.store.backend.demand_conditions()
        made = following(decision, parent)
        made = made.model_copy(update={"mac": self._mac(made)}) if self.key else made
        refers = [*filter(None, (made.parent, made.evaluation, made.champion_evaluation))]
        digest = self.store.publish(kind=KIND, refers=refers, record=made.model_dump(mode="json")).digest
        try:
            self.store.move(self.pointer, digest, expected=pointed)
        except (MovedError, StoreError):  # said of a write, too, that was done and whose answer was lost
            if not self._has(digest):
                raise
        return Made(digest, made)

    def _last_from(self, pointed: str | None) -> Made | None:
        is_signed = False  # one that does not count: then no unsigned one does
        for made in self._back_from(pointed):
            if self.key is None or self._is_right(made.decision, is_signed=is_signed):
                return made
            is_signed |= made.decision.mac is not None
            said = f"decision {made.digest[:12]}, {made.decision.action} by {made.decision.by}"
            logger.warning("%s: %s is not signed by this %s and does not count", self.model, said, KEY_ENV)
        if pointed is not None:
            raise ValueError(f"{self.model}: no decision is signed by this {KEY_ENV}; give the right key")
        return None

    def _back_from(self, digest: str | None) -> Iterator[Made]:
        while digest is not None:
            manifest = self.store.manifest(digest)
            try:
                decision = Decision.model_validate(manifest.record)
            except ValidationError:
                decision = None
            if decision is None or manifest.kind != KIND or decision.model != self.model:
                raise CorruptError(
                    f"pointer {self.pointer}: leads to {digest}, no decision about {self.model} that this "
                    "release can read; restore the pointer, or use the release that wrote it"
                )
            yield Made(digest, decision)
            digest = decision.parent

    def _has(self, digest: str) -> bool:
        with suppress(StoreError):
            return any(made.digest == digest for made in self._back_from(self.store.pointed(self.pointer)))
        return False

    def _is_right(self, decision: Decision, *, is_signed: bool) -> bool:
        """Whether it is signed by the key; an unsigned one is right only where no other one is signed."""
        if decision.mac is not None:
            return hmac.compare_digest(decision.mac, self._mac(decision))
        return not is_signed and all(made.decision.mac is None for made in self._back_from(decision.parent))

    def _mac(self, decision: Decision) -> str:
        text = f"march-decision-v1\n{decision.model_copy(update={'mac': None}).model_dump_json()}"
        return hmac.new((self.key or "").encode(), text.encode(), hashlib.sha256).hexdigest()


def following(decision: Decision, parent: Made | None) -> Decision:
    """The decision with its place behind another one and the state after it."""
    before = parent.decision.after if parent else State()
    champion, previous, waiting = before.champion, before.previous, before.waiting
    match decision.action:
        case Action.PROMOTE | Action.APPROVE:
            champion, previous = decision.about, champion
        case Action.ROLLBACK:
            champion, previous = previous, champion
        case Action.REQUEST:
            waiting = (*waiting, decision.id)
    waiting = tuple(one for one in waiting if one != decision.request)
    place = {"number": parent.decision.number + 1, "parent": parent.digest} if parent else {}
    state = State(champion=champion, previous=previous, waiting=waiting)
    was = before.champion.version if before.champion else None
    return decision.model_copy(update={**place, "was": was, "after": state})


def chosen_in(store: ArtifactStore) -> set[str]:
    """Manifests that gc must keep: weights and lineages of champions, previous ones and those that wait."""
    found: set[str | None] = set()
    for name, digest in store.pointers().items():
        if name.startswith(POINTERS):
            for one in _chosen_by(store, digest):
                found |= {one.lineage, (located(one.uri) or (None, None))[1]}
    return {digest for digest in store.manifests() if digest in found}


def _chosen_by(store: ArtifactStore, last: str) -> Iterator[Chosen]:
    """Versions that the state after a decision names."""
    decision = Decision.model_validate(store.manifest(last).record)
    state = decision.after
    yield from filter(None, (state.champion, state.previous))
    waiting = set(state.waiting)
    while waiting:
        if decision.id in waiting:
            waiting.remove(decision.id)
            yield decision.about
        if decision.parent is None:
            return
        decision = Decision.model_validate(store.manifest(decision.parent).record)
