"""What changes who is champion: promote, approve, reject, roll back.

Each is one decision on the model's chain (`chain.py`), which is the moment it is made: before it nothing
happened, after it everything did, whatever is killed. MLflow's aliases and tags are a view that is written
after (`view.py`) and can be written again at any time.
"""

from __future__ import annotations

import getpass
import logging
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateState
from orchestration.registry.chain import Action, Chain, Chosen, Decision, Made, State
from orchestration.registry.store import CHAMPION, DECISION_TAG, LINEAGE_TAG, PREVIOUS, ModelVersion, Registry
from orchestration.registry.stored import hold_weights
from orchestration.registry.view import chosen_version, differences
from pipeline.artifacts.backend import MovedError

if TYPE_CHECKING:
    from orchestration.registry.trial import Trial

logger = logging.getLogger(__name__)


class NoVersionError(ValueError):
    """No version has this number or alias."""


class LostRaceError(RuntimeError):
    """Another decision about the model was made first; nothing of this one was done."""


@dataclass(frozen=True)
class Decisions:
    """Decisions about one model, by a person or a command; None: MLflow's user, or the system's.

    What makes a champion, or asks for one, raises ValueError where the weights are gone.
    """

    registry: Registry
    chain: Chain
    by: str | None = None

    @property
    def model(self) -> str:
        return self.chain.model

    def state(self) -> State:
        """What is decided now.

        Raises:
            ValueError: it cannot be read, or MLflow says that there are decisions elsewhere.
        """
        last = self.chain.last()
        if last is None and (named := self._named()):
            last = self.chain.last()  # the first decision may have been made between the two looks
            if last is None:
                raise ValueError(
                    f"--store: {self.chain.store.backend.address} has no decisions about {self.model}, but "
                    f"MLflow names {named}; give that store, or set MARCH_ARTIFACTS"
                )
        return last.decision.after if last else State()

    def waiting(self) -> list[Decision]:
        """Requests that wait for a person, the last one first."""
        waiting = self.state().waiting
        asked = (one.decision for one in self.chain.history() if one.decision.id in waiting)
        return list(islice(asked, len(waiting)))  # no decision before them is read

    def rebuild(self, *, whole: bool = False, level: int = logging.WARNING) -> State:
        """Writes MLflow's aliases and tags again where they are not what was decided, and logs each.

        `whole` is for the tags of all versions, not only of the one that was decided about last.
        """
        while True:
            state, last = self.state(), self.chain.last()
            for one in differences(self.registry, self.chain, whole=whole):
                logger.log(level, "%s: %s", self.model, one.text)
                one.write()
            if self.chain.last() == last:  # a slower writer would leave the view of an earlier decision
                return state

    def version(self, reference: str) -> ModelVersion:
        """A version by its number or @ALIAS; champion and previous are those of the decisions."""
        wanted = reference.removeprefix("@")
        by_alias = reference != wanted or not wanted.isdigit()
        versions = self.registry.versions(self.model)
        if by_alias and wanted in (CHAMPION, PREVIOUS):
            state = self.state()
            chosen = state.champion if wanted == CHAMPION else state.previous
            if chosen is None:
                raise NoVersionError(
                    f"{self.model}@{wanted}: no decision made one; `march model promote` does"
                )
            return chosen_version(chosen, versions)
        for one in versions:
            if wanted in one.aliases if by_alias else one.version == wanted:
                return one
        there = ", ".join(one.version for one in versions) or "none"
        raise NoVersionError(f"{self.model}@{wanted}: no such version; there are: {there}")

    def promote(self, trial: Trial, policy: GatePolicy) -> Made:
        """Decides by what the gates said: promotes, asks a person, or notes that it is refused.

        Raises:
            LostRaceError: another decision was made since the gates were asked.
        """
        action, reason = Action.REFUSE, "; ".join(trial.report.reasons)[:1_000]
        if trial.report.state is GateState.PASSED:
            action, reason = Action.REQUEST if policy.approval.required else Action.PROMOTE, ""
        one = trial.candidate
        lineage = one.tags.get(LINEAGE_TAG)
        return self._decide(
            trial.seen,
            action,
            Chosen(version=one.version, sha256=one.sha256, uri=one.uri, lineage=lineage),
            reason,
            report=trial.report,
            evaluation=trial.evaluation,
            champion_evaluation=trial.champion_evaluation,
            by_another=action is Action.REQUEST and policy.approval.by_another,
        )

    def approve(self, version: str, *, reason: str = "") -> Made:
        """Promotes a version that waits.

        Raises:
            LostRaceError: another decision was made meanwhile.
            ValueError: it does not wait, or has other weights by now, or the asker may not approve.
        """
        state, asked = self.rebuild(), self._asked(version)
        for one in self.registry.versions(self.model):  # numbers begin again where a database was replaced
            if one.version == version and one.sha256 != asked.about.sha256:
                raise ValueError(
                    f"{self.model}: version {version} has the weights {one.sha256[:12]} in MLflow, asked for "
                    f"were {asked.about.sha256[:12]}; reject it, and promote what is registered now"
                )
        if asked.by_another and asked.by == self._me():
            raise ValueError(f"approve: {asked.by} asked for version {version}; another one must approve it")
        seen = {name: getattr(asked, name) for name in ("report", "evaluation", "champion_evaluation")}
        return self._decide(state, Action.APPROVE, asked.about, reason, request=asked.id, **seen)

    def reject(self, version: str, *, reason: str = "") -> Made:
        """Ends the wait of a version without promoting it; raises as `approve`."""
        state, asked = self.rebuild(), self._asked(version)
        return self._decide(state, Action.REJECT, asked.about, reason, request=asked.id)

    def rollback(self, *, reason: str = "") -> Made:
        """Makes the previous champion the champion again, and the other way round.

        Raises:
            LostRaceError: another decision was made meanwhile.
            ValueError: there is no previous champion.
        """
        state = self.rebuild()
        if state.previous is None:
            if state.champion is None and not self.registry.versions(self.model):
                there = ", ".join(self.registry.models()) or "none"
                raise NoVersionError(f"{self.model}: no such model; there are: {there}")
            raise ValueError(f"{self.model}: has no previous champion to go back to")
        return self._decide(state, Action.ROLLBACK, state.previous, reason)

    def _decide(self, seen: State, action: Action, about: Chosen, reason: str, **more: object) -> Made:
        if action not in (Action.REFUSE, Action.REJECT):
            hold_weights(about.uri, self.chain.store)  # a champion can be served
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        who = {"id": uuid.uuid4().hex, "model": self.model, "by": self._me(), "at": at}
        what = {"action": action, "about": about, "reason": reason, **more}
        made = self._append(seen, Decision.model_validate(who | what))
        try:
            self.rebuild(level=logging.DEBUG)  # what it writes nobody has edited
        except (ValueError, OSError) as error:
            logger.warning("%s: is decided; `march model list --rebuild` shows it: %s", self.model, error)
        return made

    def _append(self, seen: State, decision: Decision) -> Made:
        while True:
            last = self.chain.last()
            # A refusal changes nothing: it loses to no decision, and none loses to it.
            if decision.action is not Action.REFUSE and seen != (last.decision.after if last else State()):
                made = (one.decision for one in self.chain.history())
                first = next(one for one in made if one.action is not Action.REFUSE)
                raise LostRaceError(
                    f"{self.model}: {first.by} was first ({first.action} of version {first.about.version}); "
                    "nothing was changed; run the gates again"
                )
            with suppress(MovedError):
                return self.chain.append(decision, last)

    def _asked(self, version: str) -> Decision:
        """The last request about a version that waits."""
        waiting = self.waiting()
        for one in waiting:
            if one.about.version == version:
                return one
        there = ", ".join(one.about.version for one in waiting) or "none"
        raise ValueError(
            f"{self.model}: version {version} does not wait for approval (another champion ends all "
            f"requests); waiting: {there}"
        )

    def _named(self) -> str | None:
        """A decision about the model that MLflow names."""
        tags = (one.tags for one in self.registry.versions(self.model))
        return next((its[DECISION_TAG] for its in tags if DECISION_TAG in its), None)

    def _me(self) -> str:
        return self.by or os.environ.get("MLFLOW_TRACKING_USERNAME") or getpass.getuser()
