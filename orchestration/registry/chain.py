"""Who is champion: a chain of decisions in the artifact store, one a model.

    pointer decisions/MODEL  ->  manifest of the last decision  ->  its parent  ->  ...  ->  the first

A decision is made when the pointer moves to it, by compare-and-set, from the decision that its writer saw. Of
two at once one moves it; the other finds it moved and has done nothing. So there is no lock, and no clock is
compared. Each decision has the whole state after it: the last one alone says who is champion.

Manifests are named by their content and refer to their parent and to the evaluations that the gates saw.
So no decision and no evaluation can be overwritten, and gc keeps all that the pointer leads to: every
decision with its evaluations, and the versions that the last state names.

Who may move the pointer may decide: a bucket's policy says who (docs/promotion.md).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from pydantic import Field, ValidationError

from orchestration.promotion.records import GateReport
from pipeline.artifacts.backend import CorruptError, MovedError, StoreError
from pipeline.artifacts.store import ArtifactStore
from reward.types import Record

KIND, POINTERS = "decision", "decisions/"


class Action(StrEnum):
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
    champion: Chosen | None = None
    previous: Chosen | None = None
    waiting: dict[str, Chosen] = Field(default={}, description="What waits for a person, by the request.")


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


@dataclass(frozen=True)
class Made:
    digest: str
    decision: Decision


@dataclass(frozen=True)
class Chain:
    """The decisions about one model, in a store."""

    store: ArtifactStore
    model: str

    @property
    def pointer(self) -> str:
        return POINTERS + quote(self.model, safe="").replace("%", ".")

    def last(self) -> Made | None:
        return next(self.history(), None)

    def history(self) -> Iterator[Made]:
        """All decisions, the last one first."""
        digest = self.store.pointed(self.pointer)
        while digest is not None:
            made = self._made(digest)
            yield made
            digest = made.decision.parent

    def append(self, decision: Decision, parent: Made | None) -> Made:
        """Makes a decision on the last one, `parent`; works out its number and the state after it.

        Raises:
            MovedError: another decision was made meanwhile; nothing was done.
            ValueError: the store cannot be used.
        """
        if parent is None:  # once a model; from here on the store alone tells two writers apart
            self.store.backend.demand_conditions()
        made = following(decision, parent)
        refers = [*filter(None, (made.parent, made.evaluation, made.champion_evaluation))]
        digest = self.store.publish(kind=KIND, refers=refers, record=made.model_dump(mode="json")).digest
        try:
            self.store.move(self.pointer, digest, expected=parent.digest if parent else None)
        except (MovedError, StoreError):  # said of a write, too, that was done and whose answer was lost
            if not self._has(digest):
                raise
        return Made(digest, made)

    def _made(self, digest: str) -> Made:
        manifest = self.store.manifest(digest)
        with suppress(ValidationError):
            decision = Decision.model_validate(manifest.record)
            if manifest.kind == KIND and decision.model == self.model:
                return Made(digest, decision)
        raise CorruptError(
            f"pointer {self.pointer}: leads to {digest}, no decision about {self.model} that this "
            "release can read; restore the pointer, or use the release that wrote it"
        )

    def _has(self, digest: str) -> bool:
        with suppress(StoreError):
            return any(made.digest == digest for made in self.history())
        return False


def following(decision: Decision, parent: Made | None) -> Decision:
    """The decision with its place behind another one and the state after it."""
    before = parent.decision.after if parent else State()
    champion, previous, waiting = before.champion, before.previous, before.waiting
    match decision.action:
        case Action.PROMOTE | Action.APPROVE:
            champion, previous = decision.about, champion
        case Action.ROLLBACK:
            champion, previous = previous, champion
        case Action.REQUEST:  # in place of an earlier one about the same version
            others = ((id, about) for id, about in waiting.items() if about.version != decision.about.version)
            waiting = {**dict(others), decision.id: decision.about}
    waiting = {request: about for request, about in waiting.items() if request != decision.request}
    if champion != before.champion:  # the gates of whoever waits compared it with another one
        waiting = {}
    place = {"number": parent.decision.number + 1, "parent": parent.digest} if parent else {}
    state = State(champion=champion, previous=previous, waiting=waiting)
    was = before.champion.version if before.champion else None
    return decision.model_copy(update={**place, "was": was, "after": state})
