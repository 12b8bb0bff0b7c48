"""Serves the version that the registry names, and takes the next one up when that changes.

The next version is fetched, started beside the old one and asked. Only then do new connections go to it, and
the old one ends after its own. With memory for one alone the old one ends first, and starts again if the next
one fails. A version that fails is reported and left alone until another one has been named. A server that
dies is started again.

The registry is asked, and weights are fetched, in a thread: what fails or hangs there delays the next
version, and nothing else.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from orchestration.serving.forward import LOOPBACK, Forwarder
from pipeline.artifacts.address import forget
from pipeline.launch.reward_servers import die_with_parent
from pipeline.ports import hold_port

logger = logging.getLogger(__name__)

_TURN_S = 0.2
_DRAIN_S = 60.0  # for the connections of a version that is replaced
_REVIVE_S = 10.0  # at least, from one start of a server to the next
Check = Callable[[int], Awaitable[str | None]]  # asks the server on a port; what is wrong with its answers
_GRACE_S = 30.0  # for the answers that are being written
_ASK_S = 5.0


@dataclass(frozen=True)
class Fetched:
    """Weights on this machine, verified."""

    version: str  # its number; "" for weights that are no version
    weights: str  # their folder
    sha256: str = ""  # of the weights: a version is known by it, since MLflow's numbers and tags can change


Command = Callable[[Fetched, int], Sequence[str]]  # of a server of these weights on this port


class Child:
    def __init__(self, served: Fetched, command: Command) -> None:
        self._held = hold_port(LOOPBACK)  # until it has ended, so that no connection gets its port
        self.served, self.port = served, int(self._held.getsockname()[1])
        # Engines are processes of its own: the group ends them with it.
        self._process = subprocess.Popen(
            command(served, self.port),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    @property
    def code(self) -> int | None:
        """How it ended; None: it runs."""
        return self._process.poll()

    async def is_up(self) -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=_ASK_S) as client:
                return (await client.get(f"http://{LOOPBACK}:{self.port}/health")).is_success
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """Asks it to end, and then ends it and all that it has started."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._held.close()


@dataclass
class Follower:
    # Fetches what is to be served; returns what was found last where it is that.
    look: Callable[[Fetched | None], Fetched]
    command: Command
    check: Check
    limit_s: float  # for a server to be up
    every_s: float  # from one look to the next
    one_at_a_time: bool = False  # the old one ends before the next one starts
    front: Forwarder = field(default_factory=Forwarder)  # where clients ask
    _found: list[Fetched] = field(init=False)  # whose weights are here, the newest last
    _children: list[Child] = field(init=False, default_factory=list)  # that run; the first answers
    _answers_since: float | None = field(init=False, default=None)  # monotonic; None: nobody is to answer

    async def run(self, first: Fetched) -> None:
        """Serves until it is interrupted.

        Raises:
            ValueError: what is served first does not answer; there is nothing to go back to.
        """
        self._found = [first]
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            try:
                self._answer_with(await self._up(first))
            except ValueError as error:
                raise ValueError(f"{_named(first)}: {error}; what it said is above") from None
            await asyncio.gather(self._keep_alive(), self._follow())
        finally:
            for child in self._children:
                child.stop()

    async def _follow(self) -> None:
        left_alone = ""  # weights that failed
        while True:
            await asyncio.sleep(1.0)
            found, served = self._found[-1], self._children[0].served
            if found.weights == served.weights:
                left_alone = ""
            elif found.weights != left_alone:
                logger.info("%s is to be served; %s answers meanwhile", _named(found), _named(served))
                left_alone = "" if await self._replace_by(found) else found.weights
                self._forget_others(served)

    async def _replace_by(self, found: Fetched) -> bool:
        """Whether it answers now; else the old one does."""
        old = self._children[0]
        if self.one_at_a_time:
            self._answers_since, self.front.target = None, None
            await self._retire(old)
        try:
            new = await self._up(found)
        except (ValueError, OSError) as error:  # it does not answer, or cannot even be started
            logger.error(
                "%s fails: %s; %s goes on, and the other is tried again when it is named again",
                *(_named(found), error, _named(old.served)),
            )
            if self.one_at_a_time:
                self._answer_with(self._start(old.served))
            return False
        old = self._children[0]  # perhaps started again meanwhile
        self._answer_with(new)
        if old is not new:
            await self._retire(old)
        return True

    async def _up(self, served: Fetched) -> Child:
        """A server that answers.

        Raises:
            ValueError: it does not; it is ended.
            OSError: it cannot be started.
        """
        child = self._start(served)
        until, problem = time.monotonic() + self.limit_s, None
        while problem is None and not await child.is_up():
            if child.code is not None:
                problem = f"its server ended with code {child.code}"
            elif time.monotonic() > until:
                problem = f"its server is not up after {self.limit_s:.0f} s"
            await asyncio.sleep(_TURN_S)
        problem = problem or await self.check(child.port)
        if problem is not None:
            await self._end(child)
            raise ValueError(problem)
        return child

    def _start(self, served: Fetched) -> Child:
        self._children.append(Child(served, self.command))
        return self._children[-1]

    async def _end(self, child: Child) -> None:
        await asyncio.to_thread(child.stop)
        self._children.remove(child)

    async def _retire(self, child: Child) -> None:
        """Ends a server after its connections."""
        until = time.monotonic() + _DRAIN_S
        while self.front.num_open(child.port) and time.monotonic() < until:
            await asyncio.sleep(_TURN_S)
        await self._end(child)

    def _answer_with(self, child: Child) -> None:
        """New connections go to it, and it is kept alive."""
        self._children.remove(child)
        self._children.insert(0, child)
        self.front.target, self._answers_since = child.port, time.monotonic()
        logger.info("%s answers", _named(child.served))

    async def _keep_alive(self) -> None:
        """Starts the server that answers again, on another port, since the old one may be taken."""
        while True:
            await asyncio.sleep(_TURN_S)
            is_kept = self._answers_since is not None and time.monotonic() - self._answers_since >= _REVIVE_S
            if is_kept and (child := self._children[0]).code is not None:
                named, code = _named(child.served), child.code
                logger.error("%s: its server ended with code %s; started again", named, code)
                self._children.remove(child)
                child.stop()  # what it had started
                self._answer_with(self._start(child.served))

    def _watch(self) -> None:
        """Looks again and again; the same failure is reported once, until a look succeeds."""
        said = ""
        while True:
            time.sleep(self.every_s)
            try:
                found = self.look(self._found[-1])
            except Exception as error:
                if str(error) != said:
                    said = str(error)
                    logger.warning("the served version stays: %s", error)
                continue
            said = ""
            if found != self._found[-1]:
                self._found.append(found)

    def _forget_others(self, before: Fetched) -> None:
        """Forgets weights but those that answer, those that did before, and the newest."""
        newest = self._found[-1]
        kept = {before, self._children[0].served} - {newest}
        for one in {*self._found} - {*kept, newest}:
            forget(Path(one.weights))
        self._found = [*kept, newest]


def _named(served: Fetched) -> str:
    return f"version {served.version}" if served.version else served.weights
