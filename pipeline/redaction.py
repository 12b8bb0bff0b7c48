"""What is recorded or shown holds no secret: messages are cut down to that, addresses are refused."""

import os
import re
from urllib.parse import unquote_plus, urlsplit

SECRET_NAME = re.compile(r"(TOKEN|KEY|PASSWORD|SECRET|HEADERS)$")  # of a variable; headers may sign in
_MOST_CHARS = 500
# A password may hold any sign: databases' drivers read it up to the last "@".
_USER = re.compile(r"(?<=//)(?P<name>[^\s/@:]*)(?P<password>:\S*)?@")
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


def refuse_password(field: str, uri: str | None, *, fix: str | None = None) -> None:
    """Refuses an address that is a secret: addresses are recorded, shown and passed on.

    Not in a validator, whose error would show what it refuses. A database's address may name a user. Without
    a `fix` the message says how MLflow takes it.

    Raises:
        ValueError: it holds a password, or the user of a server.
    """
    uri = uri or ""
    is_server = uri.startswith(("http://", "https://"))
    user = _USER.search(uri)
    may_name = user is not None and not is_server and user["password"] is None
    bare = _USER.sub("", uri) if may_name else uri
    if redact(bare) == bare:
        return
    if fix is None and is_server:
        fix = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    fix = fix or "give a database's password as its driver reads it (PGPASSWORD, PGPASSFILE)"
    raise ValueError(f"{field}: {redact(uri)} was given with a user or password in it; {fix}")


def redact(url: str) -> str:
    """The address without the user and passwords that may stand in it, in its query too."""
    url = _USER.sub("", url)
    parts = urlsplit(url)
    kept = [pair for pair in parts.query.split("&") if not _names_password(pair)]
    if len(kept) == parts.query.count("&") + 1:
        return url
    return parts._replace(query="&".join(kept)).geturl()


def names_user(text: str) -> bool:
    """Whether an address in a text has a user, who may be a token, or a password."""
    return _USER.search(text) is not None


def _names_password(pair: str) -> bool:
    """Whether a pair of a query is one by which drivers of databases take a password (libpq, PyMySQL)."""
    key = unquote_plus(pair.partition("=")[0]).lower()
    return key in ("password", "passwd", "sslpassword", "ssl_key_password")
