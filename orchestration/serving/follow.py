"""Serves the version that the registry names, and takes the next one up when that changes.

The next version is fetched, started beside the old one and asked. Only then do new connections go to it, and
the old one ends after its own. With memory for one alone the old one ends first, and starts again if the next
one fails. A version that fails is reported and left alone until another one has been named. A server that
dies is started again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestration.serving.child import Child, Command
from orchestration.serving.forward import Forwarder
from orchestration.serving.scout import Fetched, Scout

logger = logging.getLogger(__name__)

_TURN_S = 0.2
_DRAIN_S = 60.0  # for the connections of a version that is replaced
_REVIVE_S = 10.0  # at least, from one start of a server to the next
Check = Callable[[int], str | None]  # asks the server on a port; what is wrong with its answers


@dataclass(frozen=True)
class Follower:
    """What following takes.

    Args:
        scout: Knows what is to be served.
        front: Where clients ask.
        command: What serves some weights.
        check: Asks a server that is up.
        limit_s: For a server to be up.
        one_at_a_time: Whether the old one ends before the next one starts.
    """

    scout: Scout
    front: Forwarder
    command: Command
    check: Check
    limit_s: float
    one_at_a_time: bool = False

    def run(self, first: Fetched) -> None:
        """Serves until it is interrupted.

        Args:
            first: What is served first.

        Raises:
            ValueError: that does not answer; there is nothing to go back to.
        """
        self.scout.in_use = frozenset((first.version,))
        self.scout.start()
        serving = _Serving(self, Child(first, self.command, above=self.front.port))
        try:
            serving.run()
        finally:
            serving.stop()


class _Serving:
    """The server that answers, and the one that may replace it."""

    def __init__(self, given: Follower, first: Child) -> None:
        self._given, self._current = given, first
        self._next: Child | None = None
        self._left_alone = ""  # a version that failed
        self._is_kept, self._started = False, 0.0

    def run(self) -> None:
        problem = self._problem(self._current)
        if problem is not None:
            raise ValueError(f"{_named(self._current.served)}: {problem}; what it said is above")
        self._answer_with(self._current)
        while True:
            self._wait(lambda: False, 1.0)
            found = self._given.scout.found
            if found is None or found.version == self._current.served.version:
                self._left_alone = ""
            elif found.version != self._left_alone:
                self._left_alone = ""
                self._replace_by(found)

    def stop(self) -> None:
        for child in filter(None, (self._next, self._current)):
            child.stop()

    def _replace_by(self, found: Fetched) -> None:
        old = self._current
        self._given.scout.in_use = frozenset((found.version, old.served.version))
        logger.info("%s is to be served; %s answers meanwhile", _named(found), _named(old.served))
        if self._given.one_at_a_time:
            self._is_kept, self._given.front.target = False, None
            self._retire(old)
        try:
            self._next = Child(found, self._given.command, above=self._given.front.port)
            problem = self._problem(self._next)
        except (ValueError, OSError) as error:  # it cannot even be started, or asked
            problem = str(error)
        if problem is None and self._next is not None:
            self._current, self._next = self._next, None
            self._answer_with(self._current)
            if not self._given.one_at_a_time:
                self._retire(old)
            return
        if self._next is not None:
            self._next.stop()
        self._next, self._left_alone = None, found.version
        self._given.scout.in_use = frozenset((old.served.version,))
        logger.error(
            "%s fails: %s; %s goes on, and the other is tried again when it is named again",
            *(_named(found), problem, _named(old.served)),
        )
        if self._given.one_at_a_time:
            old.start()
            self._answer_with(old)

    def _answer_with(self, child: Child) -> None:
        """New connections go to it, and it is kept alive."""
        self._given.front.target, self._started, self._is_kept = child.port, time.monotonic(), True
        logger.info("%s answers", _named(child.served))

    def _retire(self, child: Child) -> None:
        """Ends a server after its connections."""
        try:
            self._wait(lambda: not self._given.front.num_open(child.port), _DRAIN_S)
        finally:  # also where a signal ends the wait: nobody else knows this server any more
            child.stop()

    def _problem(self, child: Child) -> str | None:
        """Waits for a server and asks it; says what is wrong."""
        self._wait(lambda: child.code is not None or child.is_up(), self._given.limit_s)
        if child.code is not None:
            return f"its server ended with code {child.code}"
        if not child.is_up():
            return f"its server is not up after {self._given.limit_s:.0f} s"
        return self._given.check(child.port)

    def _wait(self, is_over: Callable[[], bool], limit_s: float) -> None:
        """Waits for something, and keeps the server that answers alive meanwhile."""
        until = time.monotonic() + limit_s
        while not is_over() and time.monotonic() < until:
            self._keep()
            time.sleep(_TURN_S)

    def _keep(self) -> None:
        child = self._current
        if self._is_kept and child.code is not None and time.monotonic() - self._started >= _REVIVE_S:
            logger.error("%s: its server ended with code %s; started again", _named(child.served), child.code)
            child.stop()  # what it had started
            child.start()
            self._answer_with(child)


def _named(served: Fetched) -> str:
    return f"version {served.version}" if served.version else served.weights
