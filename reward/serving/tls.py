"""TLS on both sides of the reward server: its certificate, and with `client_ca` its clients' certificates.

Files are PEM. Each is looked at before the server serves, so that a wrong one is one line at the start and
not a broken handshake in the night; and again at every handshake, so that renewed certificates and
authorities are taken without a restart. TLS 1.2 is the oldest version spoken, which is Python's own default.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import Counter

from reward.serving.access import file_state
from reward.serving.config import TlsConfig

logger = logging.getLogger(__name__)


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

    Args:
        tls: The files.
        read: Counts changed files; its label `result` is "taken" or "refused".

    Raises:
        ValueError: a file cannot be read or is not what it must be; one line that names the field.
    """
    certificates = _Certificates(tls, read)
    return {"ssl_context_factory": lambda *_: certificates.door}


class _Certificates:
    """The certificates of now, read again when one of their files changes.

    New connections come in by `door`, whose hook for the server's name gives each of them the context of now:
    OpenSSL calls it before a certificate is shown, also when the client names no server. Files that do not
    go together (a certificate whose key is not there yet) leave everything as it was.
    """

    def __init__(self, tls: TlsConfig, read: Counter) -> None:
        self._tls = tls
        self._read = read
        self._seen = self._state()
        self.door = self._now = _server_context(tls)
        self.door.sni_callback = self._greet

    def _greet(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        self._refresh()
        connection.context = self._now

    def _refresh(self) -> None:
        if (state := self._state()) == self._seen:
            return
        self._seen = state  # also when it is bad, so that it is logged once
        try:
            self._now = _server_context(self._tls)
        except ValueError as error:
            self._read.labels("refused").inc()
            logger.error("%s; the certificates stay as they were", error)
        else:
            self._read.labels("taken").inc()
            logger.info("tls: the certificates were read again")

    def _state(self) -> object:
        files = (self._tls.cert, self._tls.key, self._tls.client_ca)
        return [file_state(file) for file in files if file is not None]


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
    context = ssl.create_default_context()
    if tls.ca is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load_ca(context, tls.ca, where="ca")
    if tls.cert is not None and tls.key is not None:
        _load_pair(context, tls.cert, tls.key, where="cert and key")
    elif tls.cert is not None or tls.key is not None:
        raise ValueError("cert and key: only one is given; give both or neither")
    return context


def _load_pair(context: ssl.SSLContext, cert: Path, key: Path, *, where: str) -> None:
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ValueError) as error:
        mend = "give a PEM certificate and its own PEM key without a password"
        raise ValueError(f"{where}: cannot use {cert} and {key} ({_text(error)}); {mend}") from error


def _no_password() -> str:
    raise ValueError("the key has a password")  # else OpenSSL would ask the terminal for it


def _load_ca(context: ssl.SSLContext, ca: Path, *, where: str) -> None:
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:
        raise ValueError(f"{where}: cannot use {ca} ({_text(error)}); give PEM certificates") from error


def _text(error: Exception) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split())
