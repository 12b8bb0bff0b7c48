"""HTTPS and mutual TLS for real, with certificates made here."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reward.serving.client import RewardClient, RewardServerError
from reward.serving.config import TlsConfig
from reward.serving.connections import tls_options
from tests.serving import QUERY, RESPONSE, TOKEN, Serving, make_certificates, serve_picnic


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[bool], Serving]]:
    running: list[Serving] = []

    def start_one(is_mutual: bool) -> Serving:
        client_ca = folder / "ca.pem" if is_mutual else None
        tls = TlsConfig(cert=folder / "server.pem", key=folder / "server.key", client_ca=client_ca)
        running.append(serve_picnic(options=tls_options(tls, [].append), tls=tls))
        return running[-1]

    yield start_one
    for one in running:
        one.close()


def client_tls(ca: Path, cert: Path | None = None) -> ssl.SSLContext:
    """Trusts an authority, and shows a certificate whose key lies beside it."""
    context = ssl.create_default_context(cafile=ca)
    if cert is not None:
        context.load_cert_chain(cert, cert.with_suffix(".key"))
    return context


def reward(url: str, tls: ssl.SSLContext | None) -> float | None:
    async def once() -> float | None:
        async with RewardClient(url, TOKEN, attempts=1, tls=tls) as client:
            return (await client.audit(QUERY, RESPONSE)).verdict.reward

    return asyncio.run(once())


def test_https_serves_who_knows_its_authority(start: Callable[[bool], Serving], folder: Path) -> None:
    url = start(False).url
    assert reward(url, client_tls(folder / "ca.pem")) == 0.0
    for tls in (None, ssl.create_default_context(), client_tls(folder / "stranger.pem")):
        with pytest.raises(RewardServerError, match="certificate"):
            reward(url, tls)
    with pytest.raises(RewardServerError, match="certificate"):  # the address is not the certificate's
        reward(url.replace("127.0.0.1", "localhost"), client_tls(folder / "ca.pem"))


def test_plain_http_is_not_served_there(start: Callable[[bool], Serving]) -> None:
    with pytest.raises(RewardServerError):
        reward(start(False).url.replace("https", "http"), None)


def test_mutual_tls_serves_who_shows_a_certificate(start: Callable[[bool], Serving], folder: Path) -> None:
    url, ca = start(True).url, folder / "ca.pem"
    shown = client_tls(ca, folder / "client.pem")
    assert reward(url, shown) == 0.0
    stranger = client_tls(ca, folder / "stranger.pem")
    for tls in (client_tls(ca), stranger):
        with pytest.raises(RewardServerError):
            reward(url, tls)


@pytest.mark.parametrize(
    ("cert", "key", "client_ca", "words"),
    [
        ("none.pem", "server.key", None, "No such file"),
        ("server.pem", "client.key", None, "tls.cert and tls.key"),
        ("names.cnf", "server.key", None, "tls.cert and tls.key"),
        ("server.pem", "locked.key", None, "without a password"),
        ("server.pem", "server.key", "names.cnf", "tls.client_ca"),
    ],
)
def test_a_wrong_file_is_one_line_at_the_start(
    folder: Path, cert: str, key: str, client_ca: str | None, words: str
) -> None:
    tls = TlsConfig(cert=folder / cert, key=folder / key, client_ca=folder / client_ca if client_ca else None)
    with pytest.raises(ValueError, match=words) as caught:
        tls_options(tls, [].append)
    assert "\n" not in str(caught.value)


def test_needless_tls_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="not https"):
        RewardClient("http://127.0.0.1:1", TOKEN, tls=client_tls(folder / "ca.pem"))


class Renewed:
    """A server on certificates of its own folder, which are replaced while it runs."""

    def __init__(self, folder: Path, *, is_mutual: bool) -> None:
        self.folder = folder
        self.notes: list[bool] = []
        client_ca = folder / "ca.pem" if is_mutual else None
        tls = TlsConfig(cert=folder / "server.pem", key=folder / "server.key", client_ca=client_ca)
        self.server = serve_picnic(options=tls_options(tls, self.notes.append), tls=tls)

    def replace(self, name: str, text: str) -> None:
        """By rename, as certbot and Kubernetes do."""
        (self.folder / "new").write_text(text)
        os.replace(self.folder / "new", self.folder / name)

    def shown(self, **names: str) -> bytes:
        """The certificate that the server shows a new connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(self.server.connect(), **names) as connection:  # type: ignore[arg-type]
            return connection.getpeercert(binary_form=True) or b""


@pytest.fixture
def renew(folder: Path, tmp_path: Path) -> Iterator[Callable[[bool], Renewed]]:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    running: list[Renewed] = []

    def start_one(is_mutual: bool) -> Renewed:
        running.append(Renewed(tmp_path, is_mutual=is_mutual))
        return running[-1]

    yield start_one
    for one in running:
        one.server.close()


def der(pem: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.read_text())


def test_a_renewed_certificate_is_shown_to_new_connections(
    renew: Callable[[bool], Renewed], folder: Path
) -> None:
    renewed = renew(False)
    context = client_tls(folder / "ca.pem")
    with context.wrap_socket(renewed.server.connect(), server_hostname="127.0.0.1") as kept:
        assert renewed.shown() == renewed.shown(server_hostname="name") == der(folder / "server.pem")
        for name in ("client.pem", "client.key"):  # signed by the same authority, for the same address
            renewed.replace(name.replace("client", "server"), (folder / name).read_text())
        assert renewed.shown() == renewed.shown(server_hostname="name") == der(folder / "client.pem")
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")  # who was connected stays so
        assert b"200 OK" in kept.recv(65_536)
    assert reward(renewed.server.url, client_tls(folder / "ca.pem")) == 0.0
    assert renewed.notes == [True]


def test_a_broken_or_half_renewed_pair_leaves_the_old_one(
    renew: Callable[[bool], Renewed], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    renewed = renew(False)
    old, new = der(folder / "server.pem"), der(folder / "client.pem")
    with caplog.at_level(logging.ERROR, "reward.serving.tls"):
        renewed.replace("server.pem", "no certificate")
        assert renewed.shown() == renewed.shown() == old
        renewed.replace("server.pem", (folder / "client.pem").read_text())  # its key is not there yet
        assert renewed.shown() == old
        (folder_key := renewed.folder / "server.key").unlink()
        assert renewed.shown() == old
        assert renewed.notes == [False] * 3 and len(caplog.records) == 3
        assert "the certificates stay as they were" in caplog.text
    shutil.copy(folder / "client.key", folder_key)
    assert renewed.shown() == new and renewed.notes == [False] * 3 + [True]


def test_a_renewed_client_authority_decides_who_comes_in(
    renew: Callable[[bool], Renewed], folder: Path
) -> None:
    renewed, ca = renew(True), folder / "ca.pem"
    client = client_tls(ca, folder / "client.pem")
    stranger = client_tls(ca, folder / "stranger.pem")
    assert reward(renewed.server.url, client) == 0.0
    renewed.replace("ca.pem", (folder / "stranger.pem").read_text())
    assert reward(renewed.server.url, stranger) == 0.0
    for tls in (client, client_tls(ca)):
        with pytest.raises(RewardServerError):
            reward(renewed.server.url, tls)
