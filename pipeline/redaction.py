"""What is recorded or shown holds no secret: messages are cut down to that, addresses are refused."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from pipeline.artifacts.settings import redact

SECRET_NAME = re.compile(r"(TOKEN|KEY|PASSWORD|SECRET|HEADERS)$")  # of a variable; headers may sign in
_MOST_CHARS = 500
_USER = re.compile(r"(?<=//)[^\s/@]+@")
_PAIR = re.compile(r"(?i)((?:password|passwd|token|secret|api_?key)=)[^\s&]+")
_LEAST_SECRET_CHARS = 8


def one_line(text: str) -> str:
    """A message for a tag: one line, bounded, without users of addresses and secrets of the environment."""
    secrets = {value for name, value in os.environ.items() if SECRET_NAME.search(name)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST_SECRET_CHARS:
            text = text.replace(secret, "***")
    shown = _PAIR.sub(r"\1***", _USER.sub("", " ".join(text.split())))
    return f"{shown:.{_MOST_CHARS}}"


def refuse_password(field: str, uri: str | None) -> None:
    """Refuses an MLflow address that is a secret: addresses are recorded, shown and passed on.

    Not in a validator, whose error would show what it refuses. A database's address may name a user.

    Args:
        field: Where the address was given.
        uri: The address; None: there is none.

    Raises:
        ValueError: it holds a password, or the user of a server.
    """
    parts = urlsplit(uri or "")
    is_server = parts.scheme in ("http", "https")
    may_name = not is_server and parts.password is None
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]) if may_name else parts
    if redact(bare.geturl()) == bare.geturl():
        return
    fix = "give a database's password as its driver reads it (PGPASSWORD, PGPASSFILE)"
    if is_server:
        fix = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    raise ValueError(f"{field}: {redact(uri or '')} was given with a user or password in it; {fix}")
