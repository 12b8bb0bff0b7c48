"""Which version is to be served: asked of the registry again and again, and fetched, beside the serving.

A registry or a store that fails or hangs delays the next version, and nothing else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestration.registry.store import ModelVersion

logger = logging.getLogger(__name__)

_LONGEST_WAIT_S = 600.0


@dataclass(frozen=True)
class Fetched:
    """Weights on this machine, verified."""

    version: str  # its number; "" for weights that are no version
    weights: str  # their folder


class Scout:
    """Finds and fetches the version that a reference names.

    Args:
        find: Asks the registry.
        fetch: Brings a version's weights here, verified.
        forget: Takes away weights that are no longer needed.
        every_s: From one look to the next; longer after failures, at most ten minutes or this.
    """

    def __init__(
        self,
        find: Callable[[], ModelVersion],
        fetch: Callable[[ModelVersion], Path],
        forget: Callable[[Path], None],
        *,
        every_s: float,
    ) -> None:
        self._find, self._fetch, self._forget, self._every_s = find, fetch, forget, every_s
        self._said, self._here = "", dict[str, Path]()
        self.in_use = frozenset[str]()  # versions whose weights stay; may be set from any thread
        self.found: Fetched | None = None  # the newest; may be read from any thread

    def look(self) -> Fetched:
        """Looks once.

        Raises:
            ValueError: there is no such version, or it cannot be had.
        """
        version = self._find()
        if self.found is None or self.found.version != version.version:
            self._here[version.version] = self._fetch(version)
            self.found = Fetched(version.version, str(self._here[version.version]))
            for name in self._here.keys() - self.in_use - {version.version}:
                self._forget(self._here.pop(name))
        return self.found

    def start(self) -> None:
        """Looks again and again, in a thread that ends with the process."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        num_failures = 0
        while True:
            longest = max(self._every_s, _LONGEST_WAIT_S)
            time.sleep(min(self._every_s * 2**num_failures, longest))
            num_failures = 0 if self._looked() else min(num_failures + 1, 30)

    def _looked(self) -> bool:
        """Looks; the same failure is reported once, until a look succeeds."""
        try:
            self.look()
        except Exception as error:
            if str(error) != self._said:
                self._said = str(error)
                logger.warning("the served version stays: %s", error)
            return False
        self._said = ""
        return True
