"""Who may ask: bearer tokens by name, known to the server by their SHA-256 alone.

One token may come from the environment (its name is then "env"); any number come from a file with one line
each, which is valid YAML:

    # name: SHA-256 (hex) of the token
    trainer-a: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

The file is read again when it changes, so tokens come and go without a restart; a file that cannot be
trusted (unreadable, malformed, empty, writable by others) leaves the tokens as they were and is logged once.
A token has the entropy of `new_token`, so a bare hash cannot be reversed: it is not a secret, but who can
write the file can let himself in. `march token NAME` makes a token and its line.

A token travels as `Authorization: Bearer TOKEN`, or as the password of Basic: so OpenRLHF's stock client,
which knows only a URL, can carry it in `http://march:TOKEN@host:port/get_reward`. It is compared in constant
time and never logged; its name is what the logs know.
"""

import base64
import binascii
import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

TOKEN_ENV = "MARCH_REWARD_TOKEN"
MIN_TOKEN_CHARS = 16
ENVIRONMENT_NAME = "env"
_TOKEN_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LINE = re.compile(rf"({_NAME.pattern}):\s+([\"']?)([0-9a-f]{{64}})\2")

_T = TypeVar("_T")


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


def read_token() -> str:
    """The token from the environment.

    Raises:
        ValueError: it is missing or too short, or cannot be in a header.
    """
    token = os.environ.get(TOKEN_ENV, "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError(
            f"the environment variable {TOKEN_ENV} has characters that are not ASCII; set others"
        )
    if len(token) < MIN_TOKEN_CHARS:
        found = f"has {len(token)} characters" if token else "is not set"
        raise ValueError(
            f"the environment variable {TOKEN_ENV} {found}; set at least {MIN_TOKEN_CHARS} characters, "
            f'e.g. export {TOKEN_ENV}="$(openssl rand -hex 24)"'
        )
    return token


def parse_tokens(text: str) -> dict[str, bytes]:
    """Reads the lines of a tokens file: name to SHA-256 (32 bytes) of the token.

    Raises:
        ValueError: a line is no `name: sha256-hex`, a name occurs twice or is "env", or there is no line.
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


class Reloaded(Generic[_T]):
    """What files hold, read again when one of them changes; a bad file leaves the value and is logged once.

    Args:
        what: In the log, such as "tokens".
        files: The files.
        read: Reads them; raises `ValueError`, and then so does this.
        note: Called after each later reading, with whether it succeeded.
    """

    def __init__(
        self,
        what: str,
        files: Sequence[Path],
        read: Callable[[], _T],
        note: Callable[[bool], object] = lambda _: None,
    ) -> None:
        self._what, self._files, self._read, self._note = what, files, read, note
        self._seen = self._state()
        self._value = read()

    def get(self) -> _T:
        if (state := self._state()) == self._seen:
            return self._value
        self._seen = state  # also when it is bad, so that it is logged once
        try:
            self._value = self._read()
        except ValueError as error:
            self._note(False)
            logger.error("%s; the %s stay as they were", error, self._what)
        else:
            self._note(True)
            logger.info("the %s were read again", self._what)
        return self._value

    def _state(self) -> object:
        return [_file_state(file) for file in self._files]


class TokenBook:
    """The tokens that are valid now; `note` is called after each later reading, with whether it succeeded.

    Raises:
        ValueError: there is neither a token nor a file, or the file cannot be trusted; one line.
    """

    def __init__(
        self,
        token: str | None,
        path: Path | None = None,
        note: Callable[[bool], object] = lambda _: None,
    ) -> None:
        if token is None and path is None:
            raise ValueError(f"tokens: there is none; set {TOKEN_ENV} or tokens_file")
        self._fixed = {} if token is None else {ENVIRONMENT_NAME: digest(token)}
        self._file = Reloaded("tokens", [path], lambda: _read(path), note) if path is not None else None

    def names(self) -> set[str]:
        """Of the tokens that are valid now."""
        return {*self._fixed, *(self._file.get() if self._file else ())}

    def owner_of(self, authorization: str) -> str | None:
        """The name of the token in an `Authorization` header, or None when there is no valid one."""
        token = presented_token(authorization)
        return None if token is None else self.name_of(token)

    def name_of(self, token: str) -> str | None:
        """The name of a token, or None; every token is compared, each in constant time."""
        digests: Mapping[str, bytes] = self._fixed | self._file.get() if self._file else self._fixed
        given = digest(token)
        matches = [name for name, known in digests.items() if hmac.compare_digest(given, known)]
        return matches[0] if matches else None


def presented_token(authorization: str) -> str | None:
    """The token in an `Authorization` header: a Bearer's value or a Basic's password, or None."""
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):  # no base64, not ASCII, or no UTF-8
        return None


def _file_state(path: Path) -> object:
    """What changes when the file changes; None while it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)


def _read(path: Path) -> dict[str, bytes]:
    try:
        with path.open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ValueError("others than its owner can write it (chmod go-w)")
            if found.st_uid not in (0, os.geteuid()):
                raise ValueError(f"user {found.st_uid} owns it, neither root nor the server's")
            return parse_tokens(file.read())
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) else error
        fix = "fix it; `march token NAME` prints a token and its line"
        raise ValueError(f"tokens_file: {path}: {text}; {fix}") from error
