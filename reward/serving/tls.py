"""TLS on both sides of the reward server: its certificate, and with `client_ca` its clients' certificates.

Files are PEM. Each is read before the server serves, so that a wrong one is one line at the start; and again
when it changes, so that renewed certificates and authorities are used without a restart. TLS 1.2 is the
oldest version spoken, which is Python's own default.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import Counter

from reward.serving.config import TlsConfig
from reward.serving.tokens import Reloaded


@dataclass(frozen=True)
class ClientTls:
    """How a client trusts a server, and what it shows one that asks for a certificate.

    `ca` holds the certificates that sign the server's (the system's own when None); `cert` and `key` are the
    client's, both or neither.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


def server_options(tls: TlsConfig, read: Counter) -> dict[str, Any]:
    """Arguments of `uvicorn.Config`.

    New connections come in by one context, whose hook for the server's name gives each of them the context of
    now: OpenSSL calls it before a certificate is shown, also when the client names no server. Files that do
    not go together (a certificate whose key is not there yet) leave everything as it was.

    Args:
        tls: The files.
        read: Counts changed files; its label `result` is "taken" or "refused".

    Raises:
        ValueError: a file cannot be read or is not what it must be; one line that names the field.
    """
    files = [file for file in (tls.cert, tls.key, tls.client_ca) if file is not None]

    def note(succeeded: bool) -> None:
        read.labels("taken" if succeeded else "refused").inc()

    contexts = Reloaded("certificates", files, partial(_server_context, tls), note)
    first = contexts.get()

    def use_current(connection: ssl.SSLObject, *_: object) -> None:
        connection.context = contexts.get()

    first.sni_callback = use_current
    return {"ssl_context_factory": lambda *_: first}


def _server_context(tls: TlsConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_pair(context, tls.cert, tls.key, where="tls.cert and tls.key")
    if tls.client_ca is not None:
        _load_ca(context, tls.client_ca, where="tls.client_ca")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: ClientTls) -> ssl.SSLContext:
    """What a client's connections are made with; the server's name and chain are always verified.

    Raises:
        ValueError: a file cannot be read or is not what it must be, or only one of `cert` and `key` is given.
    """
    if (tls.cert is None) != (tls.key is None):
        raise ValueError("cert and key: only one is given; give both or neither")
    context = ssl.create_default_context() if tls.ca is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca is not None:
        _load_ca(context, tls.ca, where="ca")
    if tls.cert is not None and tls.key is not None:
        _load_pair(context, tls.cert, tls.key, where="cert and key")
    return context


def _load_pair(context: ssl.SSLContext, cert: Path, key: Path, *, where: str) -> None:
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ValueError) as error:
        fix = "give a PEM certificate and its own PEM key without a password"
        raise ValueError(f"{where}: cannot use {cert} and {key} ({_text(error)}); {fix}") from error


def _no_password() -> str:
    raise ValueError("the key has a password")  # else OpenSSL would ask the terminal for it


def _load_ca(context: ssl.SSLContext, ca: Path, *, where: str) -> None:
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:
        raise ValueError(f"{where}: cannot use {ca} ({_text(error)}); give PEM certificates") from error


def _text(error: Exception) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split())
