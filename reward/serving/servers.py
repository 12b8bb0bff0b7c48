"""Which of several reward servers is asked: for one content the same one, for as long as it answers.

Rendezvous hashing: every server has a rank for every content, by a hash of both. All clients agree on it
without talking to each other, a server that goes takes only its own contents to others, and equal contents (a
retry, or two samples that came out the same) meet at one server, which gives them one audit (service.py).
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence

logger = logging.getLogger(__name__)

_COOL_DOWN_S = 10.0


class Servers:
    """The servers' addresses, and which of them could not be reached lately.

    Raises:
        ValueError: there is none, or one twice.
    """

    def __init__(self, base_urls: Sequence[str]) -> None:
        self.base_urls = tuple(url.rstrip("/") for url in base_urls)
        self._avoided_until: dict[str, float] = {}  # on the monotonic clock, seconds
        if not self.base_urls:
            raise ValueError("base_url: no address; give the reward server's")
        if len(set(self.base_urls)) < len(self.base_urls):
            raise ValueError(f"base_url: {list(self.base_urls)} names a server twice; leave it out once")

    def in_turn(self, content: bytes) -> list[str]:
        """All servers, in the order in which they are asked for a content; those avoided come last."""
        now = time.monotonic()

        def place(url: str) -> tuple[bool, bytes]:
            return self._avoided_until.get(url, 0.0) > now, hashlib.sha256(url.encode() + content).digest()

        return sorted(self.base_urls, key=place)

    def note(self, base_url: str, *, why: Exception | None = None) -> None:
        """Remembers that a server answered, or `why` it did not."""
        if why is None:
            self._avoided_until.pop(base_url, None)
            return
        if base_url not in self._avoided_until and len(self.base_urls) > 1:
            logger.warning("%s; another server is asked", why)
        self._avoided_until[base_url] = time.monotonic() + _COOL_DOWN_S
