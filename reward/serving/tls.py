"""TLS on both sides of the reward server: its certificate, and with `client_ca` its clients' certificates.

Files are PEM. Each is looked at before the server listens, so that a wrong one is one line at the start and
not a broken handshake in the night. TLS 1.2 is the oldest version spoken, which is Python's own default.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reward.config import TlsConfig


@dataclass(frozen=True)
class ClientTls:
    """How a client trusts a server, and what it shows one that asks for a certificate.

    `ca` holds the certificates that sign the server's (the system's own when None); `cert` and `key` are the
    client's, both or neither.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


def server_options(tls: TlsConfig) -> dict[str, Any]:
    """Arguments of `uvicorn.Config`.

    Raises:
        ValueError: a file cannot be read or is not what it must be; one line that names the field.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_pair(context, tls.cert, tls.key, where="tls.cert and tls.key")
    if tls.client_ca is not None:
        _load_ca(context, tls.client_ca, where="tls.client_ca")
    return {
        "ssl_certfile": tls.cert,
        "ssl_keyfile": tls.key,
        "ssl_ca_certs": tls.client_ca,
        "ssl_cert_reqs": ssl.CERT_NONE if tls.client_ca is None else ssl.CERT_REQUIRED,
    }


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
