"""HTTPS and mutual TLS for real, with certificates made here."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reward.config import TlsConfig
from reward.serving.client import RewardClient, RewardServerError
from reward.serving.tls import ClientTls, client_context, server_options
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
        running.append(serve_picnic(options=server_options(tls), tls=tls))
        return running[-1]

    yield start_one
    for one in running:
        one.close()


def reward(url: str, tls: ClientTls | None) -> float | None:
    async def once() -> float | None:
        async with RewardClient(url, TOKEN, attempts=1, tls=tls) as client:
            return (await client.audit(QUERY, RESPONSE)).verdict.reward

    return asyncio.run(once())


def test_https_serves_who_knows_its_authority(start: Callable[[bool], Serving], folder: Path) -> None:
    url = start(False).url
    assert reward(url, ClientTls(ca=folder / "ca.pem")) == 0.0
    for tls in (None, ClientTls(), ClientTls(ca=folder / "stranger.pem")):
        with pytest.raises(RewardServerError, match="certificate"):
            reward(url, tls)
    with pytest.raises(RewardServerError, match="certificate"):  # the address is not the certificate's
        reward(url.replace("127.0.0.1", "localhost"), ClientTls(ca=folder / "ca.pem"))


def test_plain_http_is_not_served_there(start: Callable[[bool], Serving]) -> None:
    with pytest.raises(RewardServerError):
        reward(start(False).url.replace("https", "http"), None)


def test_mutual_tls_serves_who_shows_a_certificate(start: Callable[[bool], Serving], folder: Path) -> None:
    url, ca = start(True).url, folder / "ca.pem"
    shown = ClientTls(ca=ca, cert=folder / "client.pem", key=folder / "client.key")
    assert reward(url, shown) == 0.0
    stranger = ClientTls(ca=ca, cert=folder / "stranger.pem", key=folder / "stranger.key")
    for tls in (ClientTls(ca=ca), stranger):
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
        server_options(tls)
    assert "\n" not in str(caught.value)


def test_a_clients_half_pair_or_needless_tls_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="give both or neither"):
        client_context(ClientTls(cert=folder / "client.pem"))
    with pytest.raises(ValueError, match="not https"):
        RewardClient("http://127.0.0.1:1", TOKEN, tls=ClientTls(ca=folder / "ca.pem"))
