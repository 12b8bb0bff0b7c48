"""What changes who is champion: promote, approve, reject, roll back; and the fixing of what a kill left.

Each decision is one append (`log.py`), which is the moment it is made: before it nothing happened, after it
everything did, whatever is killed. The aliases are written after it and are read back against the log until
the two agree, so a writer that slept fixes what it overwrote; and every command does so first.
"""

from __future__ import annotations

import getpass
import logging
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateReport, GateState
from orchestration.registry.history import write_history, write_report
from orchestration.registry.log import Action, Effect, Entry, Numbered, State, replay, signed
from orchestration.registry.store import CANDIDATE, CHAMPION, PREVIOUS, REPORT_TAG, ModelVersion, Registry
from pipeline.evaluate.plan import digest

logger = logging.getLogger(__name__)

KEY_ENV = "MARCH_PROMOTION_KEY"
_MOST_ROUNDS = 20  # of writing aliases, while others write too


class LostRaceError(RuntimeError):
    """Another decision about the model was made first; nothing of this one was done."""


@dataclass(frozen=True)
class Desk:
    """Where decisions about one model are made.

    Args:
        registry: The MLflow registry.
        model: Name of the model.
        history: Folder of the history files.
        key: Signs and checks entries; None: unsigned.
        by: Who decides; None: MLflow's user, or the system's.
    """

    registry: Registry
    model: str
    history: Path
    key: str | None = None
    by: str | None = None

    def state(self) -> State:
        """What the log says now."""
        return replay(self.model, self.registry.entries(self.model), key=self.key)

    def fix(self) -> State:
        """Makes the aliases and the history file say what the log says; returns its state.

        Raises:
            ValueError: others changed the log again and again meanwhile.
        """
        for _ in range(_MOST_ROUNDS):
            state = self.state()
            if state.head:  # without a decision the aliases are nobody's
                self._write_aliases(state)
            if self.state().head == state.head:
                write_history(self.history, self.model, state)
                return state
        raise ValueError(f"{self.model}: others decide about it all the time; try again later")

    def version(self, reference: str) -> ModelVersion:
        """A version by its number or @ALIAS; who is champion and who was, the log says.

        Raises:
            ValueError: there is none.
        """
        wanted = reference.removeprefix("@")
        by_alias = reference != wanted or not wanted.isdigit()
        decided: str | None = None
        if by_alias and wanted in (CHAMPION, PREVIOUS) and (state := self.state()).head:
            decided, by_alias = (state.champion if wanted == CHAMPION else state.previous), False
        versions = self.registry.versions(self.model)
        for one in versions:
            if wanted in one.aliases if by_alias else one.version == (decided or wanted):
                return one
        there = ", ".join(one.version for one in versions) or "none"
        raise ValueError(f"{self.model}@{wanted}: no such version; there are: {there}")

    def promote(
        self,
        candidate: ModelVersion,
        report: GateReport,
        policy: GatePolicy,
        seen: State,
        *,
        tags: Mapping[str, str] | None = None,
    ) -> Numbered:
        """Decides by a report: promotes, asks a person, or notes that it is refused.

        Args:
            candidate: The version that the report is about.
            report: What the gates said.
            policy: Whether a person is asked.
            seen: The log's state when the champion's evaluation was chosen.
            tags: Kept with the version, e.g. where its evaluation lies.

        Returns:
            The entry that was made.

        Raises:
            LostRaceError: another decision was made meanwhile.
            ValueError: it cannot be, e.g. since it is the champion already.
        """
        sha256 = digest(report.model_dump(mode="json"))
        write_report(self.history, self.model, candidate.version, report, sha256)
        for name, value in {**(tags or {}), REPORT_TAG: report.model_dump_json()}.items():
            self.registry.set_tag(self.model, candidate.version, name, value)
        action = Action.REFUSE
        if report.state is GateState.PASSED:
            action = Action.REQUEST if policy.approval.required else Action.PROMOTE
        reason = "" if action is not Action.REFUSE else "; ".join(report.reasons)[:1_000]
        entry = self._entry(action, seen, version=candidate.version, reason=reason)
        asks_another = action is Action.REQUEST and policy.approval.by_another
        found = {"gates": report.state, "report_sha256": sha256, "by_another": asks_another}
        return self._decide(entry.model_copy(update=found))

    def approve(self, version: str, *, reason: str = "", by_another: bool = False) -> Numbered:
        """Promotes a version that waits.

        Args:
            version: Which.
            reason: Kept in the history.
            by_another: Whether who asked may not approve it, though the request does not say so.

        Raises:
            LostRaceError: another decision was made meanwhile.
            ValueError: it does not wait, or the champion changed since, or the asker may not approve.
        """
        state = self.fix()
        number, request = self._waiting(state, version)
        if (by_another or request.by_another) and request.by == self._me():
            raise ValueError(
                f"approve: {request.by} asked for version {version}; another one must approve it"
            )
        return self._decide(
            self._entry(Action.APPROVE, state, version=version, request=number, reason=reason)
        )

    def reject(self, version: str, *, reason: str = "") -> Numbered:
        """Ends the wait of a version without promoting it; raises as `approve`."""
        state = self.fix()
        number, _ = self._waiting(state, version)
        return self._decide(self._entry(Action.REJECT, state, version=version, request=number, reason=reason))

    def rollback(self, *, reason: str = "") -> Numbered:
        """Makes the previous champion the champion again, and the other way round.

        Raises:
            LostRaceError: another decision was made meanwhile.
            ValueError: there is no previous champion.
        """
        state = self.fix()
        if state.previous is None:
            raise ValueError(f"{self.model}: has no previous champion to go back to")
        return self._decide(self._entry(Action.ROLLBACK, state, version=state.previous, reason=reason))

    def _decide(self, entry: Entry) -> Numbered:
        """Appends an entry and says what became of it."""
        if self.key is not None:
            entry = signed(self.model, entry, self.key)
        elif self.state().is_signed:
            raise ValueError(f"{self.model}: its history is signed; set {KEY_ENV} to decide about it")
        try:
            self.registry.append(self.model, entry)
            state = self.fix()
        except (ValueError, OSError) as error:
            state = self._state_with(entry, error)
        made = state.of(entry.id)
        assert made is not None, "what was appended is in the log"
        if made.effect is Effect.LOST:
            winner = next(one for one in state.history if one.number == made.after)
            raise LostRaceError(
                f"{self.model}: {winner.entry.by} was first ({winner.entry.action} of version "
                f"{winner.entry.version}); nothing was changed; run the gates against the new champion"
            )
        if made.effect is Effect.VOID:
            raise ValueError(f"{self.model}: {entry.action} of version {entry.version}: {made.why}")
        return made

    def _state_with(self, entry: Entry, error: ValueError | OSError) -> State:
        """The log, if it has the entry though something failed: who then repeats the command decides twice.

        Raises:
            ValueError, OSError: what failed; the log has no such entry, or cannot be read.
        """
        state = State()
        with suppress(ValueError):
            state = self.state()
        if state.of(entry.id) is None:
            raise error
        logger.warning(
            "%s: the decision is in the log; the next command does the rest: %s", self.model, error
        )
        return state

    def _entry(
        self, action: Action, state: State, *, version: str, request: int | None = None, reason: str = ""
    ) -> Entry:
        return Entry(
            id=uuid.uuid4().hex,
            action=action,
            parent=state.head,
            version=version,
            champion=state.champion,
            request=request,
            by=self._me(),
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            reason=reason,
        )

    def _waiting(self, state: State, version: str) -> tuple[int, Entry]:
        found = [(number, one) for number, one in state.waiting.items() if one.version == version]
        if not found:
            there = ", ".join(one.version for one in state.waiting.values()) or "none"
            raise ValueError(f"{self.model}: version {version} does not wait for approval; waiting: {there}")
        return found[-1]

    def _write_aliases(self, state: State) -> None:
        """Previous first: a kill in between leaves the old champion in both, never an unknown one."""
        now = self.registry.aliases(self.model)
        wanted = {PREVIOUS: state.previous, CHAMPION: state.champion}
        if now.get(CANDIDATE) is not None and now[CANDIDATE] == state.champion:
            wanted[CANDIDATE] = None
        for alias, version in wanted.items():
            if now.get(alias) != version:
                logger.info("%s: %s is version %s", self.model, alias, version)
                self.registry.set_alias(self.model, alias, version)

    def _me(self) -> str:
        return self.by or os.environ.get("MLFLOW_TRACKING_USERNAME") or getpass.getuser()
