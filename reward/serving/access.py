"""Who may ask, and how much: bearer tokens by name, known to the server by their SHA-256 alone.

One token may come from the environment (its name is then "env"); any number come from a file with one line
each, which is valid YAML:

    # name: SHA-256 (hex) of the token
    trainer-a: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

The file is read again when it changes, so tokens come and go without a restart; a file that cannot be
believed (unreadable, malformed, empty, writable by others) leaves the tokens as they were and is logged once.
A token has the entropy of `new_token`, so a bare hash cannot be reversed: it is not a secret, but who can
write the file can let himself in. `march token NAME` makes a token and its line.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reward.serving.config import Quota
from reward.serving.logs import Refusal

logger = logging.getLogger(__name__)

MIN_TOKEN_CHARS = 16
ENVIRONMENT_NAME = "env"
_TOKEN_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LINE = re.compile(rf"({_NAME.pattern}):\s+([\"']?)([0-9a-f]{{64}})\2")
_MEND = "mend it; `march token NAME` prints a token and its line"

_MINUTE_S = 60.0
_BUSY_RETRY_S = 2  # for a caller whose audits in flight are too many

Digests = Mapping[str, bytes]  # name -> SHA-256 (32 bytes) of the token


@dataclass(frozen=True)
class NewToken:
    """A token, to be shown once, and the line of the tokens file that lets it in."""

    token: str
    line: str


def new_token(name: str) -> NewToken:
    """Makes a token of 256 random bits.

    Raises:
        ValueError: the name is not one of 1 to 64 letters, digits, `_`, `.` and `-`, or is "env".
    """
    if not _NAME.fullmatch(name) or name == ENVIRONMENT_NAME:
        raise ValueError(
            f"NAME: {name!r} cannot name a token; use letters, digits, _ . -, at most 64, "
            f"and not {ENVIRONMENT_NAME}"
        )
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    return NewToken(token=token, line=f"{name}: {digest(token).hex()}")


def digest(token: str) -> bytes:
    """SHA-256 (32 bytes) of a token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def read_token(variable: str) -> str:
    """The token from the environment.

    Raises:
        ValueError: it is missing or too short.
    """
    token = os.environ.get(variable, "").strip()
    if len(token) < MIN_TOKEN_CHARS:
        found = f"has {len(token)} characters" if token else "is not set"
        mend = f'set at least {MIN_TOKEN_CHARS} characters, e.g. export {variable}="$(openssl rand -hex 24)"'
        raise ValueError(f"token_env: the environment variable {variable} {found}; {mend}")
    return token


def parse_tokens(text: str) -> dict[str, bytes]:
    """Reads the lines of a tokens file.

    Raises:
        ValueError: a line is no `name: sha256-hex`, a name stands twice or is "env", or there is no line.
    """
    digests: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (entry := line.partition("#")[0].strip()):
            continue
        if (found := _LINE.fullmatch(entry)) is None:
            raise ValueError(f"line {number} is not `name: sha256-hex`")  # not shown: it may be a token
        name = found.group(1)
        if name in digests or name == ENVIRONMENT_NAME:
            raise ValueError(f"line {number}: the name {name} is taken")
        digests[name] = bytes.fromhex(found.group(3))
    if not digests:
        raise ValueError("it names no token")
    return digests


class TokenBook:
    """The tokens that open the server now.

    Raises:
        ValueError: there is neither a token nor a file, or the file cannot be believed; one line.
    """

    def __init__(self, token: str | None, path: Path | None = None) -> None:
        if token is None and path is None:
            raise ValueError("tokens: there is none; set token_env's variable or tokens_file")
        self._fixed = {} if token is None else {ENVIRONMENT_NAME: digest(token)}
        self._path = path
        self._seen: object = None
        self._digests: Digests = self._fixed
        if path is not None:
            self._seen = file_state(path)
            try:
                self._digests = self._fixed | _read(path)
            except (OSError, ValueError) as error:
                raise ValueError(f"tokens_file: {path}: {_text(error)}; {_MEND}") from error

    def name_of(self, token: str) -> str | None:
        """The name of whose token this is, or None; every token is compared, each in constant time."""
        self._refresh()
        given = digest(token)
        matches = [name for name, known in self._digests.items() if hmac.compare_digest(given, known)]
        return matches[0] if matches else None

    def _refresh(self) -> None:
        if self._path is None or (state := file_state(self._path)) == self._seen:
            return
        self._seen = state  # also when it is bad, so that it is logged once
        try:
            self._digests = self._fixed | _read(self._path)
        except (OSError, ValueError) as error:
            logger.error("tokens_file: %s: %s; the tokens stay as they were", self._path, _text(error))
        else:
            logger.info("tokens_file: %s: read again, %d tokens", self._path, len(self._digests))


class Overloaded(RuntimeError):
    """The server takes nothing more now, of anybody or of this caller; nothing was begun."""

    def __init__(self, reason: Refusal, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.reason: Refusal = reason
        self.retry_after_s = retry_after_s
        self.status = 429 if reason == "quota" else 503


class Quotas:
    """Counts what each caller, by the name of its token, holds and asks for.

    Args:
        default: Of a caller without a quota of its own.
        by_name: Quotas of their own.
        most_in_flight: Where a quota does not say.
    """

    def __init__(self, default: Quota, by_name: Mapping[str, Quota], *, most_in_flight: int) -> None:
        self._default, self._by_name = default, by_name
        self._most_in_flight = most_in_flight
        self._in_flight: Counter[str] = Counter()
        self._left: dict[str, tuple[float, float]] = {}  # audits left, and when, on the monotonic clock

    def spend(self, name: str) -> None:
        """Counts one audit that a caller asks for.

        Raises:
            Overloaded: it has asked for too many lately.
        """
        if (per_minute := self._of(name).per_minute) is None:
            return
        now = time.monotonic()
        left, at = self._left.get(name, (per_minute, now))
        left = min(per_minute, left + (now - at) * per_minute / _MINUTE_S)
        if left < 1:
            wait_s = math.ceil((1 - left) * _MINUTE_S / per_minute)
            detail = f"{name!r} asked for over {per_minute} audits a minute; ask later, or raise its quota"
            raise Overloaded("quota", detail, retry_after_s=wait_s)
        self._left[name] = (left - 1, now)

    def enter(self, name: str) -> None:
        """Counts an audit that begins; to be followed by `leave`.

        Raises:
            Overloaded: as many of this caller's are under way as may be.
        """
        most = self._of(name).in_flight or self._most_in_flight
        if self._in_flight[name] >= most:
            detail = f"{most} audits of {name!r} are under way; wait for some of them, or raise its quota"
            raise Overloaded("quota", detail, retry_after_s=_BUSY_RETRY_S)
        self._in_flight[name] += 1

    def leave(self, name: str) -> None:
        """Counts an audit that ended."""
        self._in_flight[name] -= 1

    def _of(self, name: str) -> Quota:
        return self._by_name.get(name, self._default)


def file_state(path: Path) -> object:
    """What changes when the file changes; None while it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)


def _read(path: Path) -> dict[str, bytes]:
    with path.open(encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("others than its owner can write it (chmod go-w)")
        if found.st_uid not in (0, os.geteuid()):
            raise ValueError(f"user {found.st_uid} owns it, neither root nor the server's")
        return parse_tokens(file.read())


def _text(error: Exception) -> str:
    return str(error.strerror if isinstance(error, OSError) else error)
