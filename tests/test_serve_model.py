"""`march model serve --follow`: real processes, a real registry, and a small server in vLLM's place."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestration.registry.chain import Chain
from orchestration.registry.decisions import Decisions
from orchestration.registry.register import register_weights
from orchestration.registry.store import SHA256_TAG, URI_TAG, Registry
from pipeline.artifacts.address import Artifact
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import open_store
from tests.march_cli import MARCH, refused
from tests.memory_registry import promote

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
STUB = Path(__file__).with_name("served_stub.py")


@dataclass
class Site:
    """A registry, its model, and a place for vLLM's stand-in."""

    decisions: Decisions
    folder: Path
    port: int

    @property
    def uri(self) -> str:
        return self.decisions.registry.uri

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        return (self.folder / "said.txt").read_text()

    @property
    def servers(self) -> list[list[str]]:
        """What the servers noted: start or end, number of the weights, process."""
        file = self.folder / "servers.txt"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def register(self, number: int, **config: object) -> None:
        weights = self.folder / f"weights{number}"
        weights.mkdir()
        (weights / "config.json").write_text(json.dumps({"number": number, **config}))
        store = self.decisions.chain.store
        address = Artifact(store, store.publish(weights, kind="model").digest).address
        found, _ = register_weights(self.decisions.registry, self.decisions.model, address)
        assert found == str(number)

    def promote(self, number: str) -> None:
        promote(self.decisions, self.decisions.version(number))

    def fetched(self) -> set[int]:
        """Numbers of the weights in the cache."""
        files = (self.folder / "cache").glob("march/artifacts/*/config.json")
        return {int(json.loads(file.read_text())["number"]) for file in files}

    def ask(self, content: str = "Which?", *, timeout_s: float = 30) -> str | None:
        """The number of the weights that answer; None for no answer."""
        asked = {"model": self.decisions.model, "messages": [{"role": "user", "content": content}]}
        try:
            url = f"{self.base}/v1/chat/completions"
            got = httpx.post(url, json=asked, timeout=timeout_s, trust_env=False)
        except httpx.TransportError:
            return None
        return str(got.json()["choices"][0]["message"]["content"]) if got.is_success else None

    @contextmanager
    def serving(self, *options: object) -> Iterator[subprocess.Popen[bytes]]:
        command = [*MARCH, "model", "serve", f"{self.decisions.model}@champion", "--follow", "--every", "0.3"]
        command += ["--port", str(self.port), "--mlflow", self.uri, *map(str, options)]
        command += ["--store", self.decisions.chain.store.backend.address]
        command += ["--policy", str(self.folder / "policy.yaml"), "--", "--extra", "kept"]
        paths = os.pathsep.join([str(self.folder / "stub"), str(ROOT)])
        environment = os.environ | {"PYTHONPATH": paths, "STUB_LOG": str(self.folder / "servers.txt")}
        environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        with (self.folder / "said.txt").open("w") as said:
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return Registry(f"sqlite:///{tmp_path_factory.mktemp('registry') / 'mlflow.db'}", creates=True)


@pytest.fixture
def site(registry: Registry, tmp_path: Path) -> Site:
    """Version 1 is the champion, version 2 is registered."""
    package = tmp_path / "stub" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package.parents[1], package.parent, package):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(STUB.read_text())
    (tmp_path / "policy.yaml").write_text("{smoke: {timeout_s: 120}}")
    made = Site(
        decisions_about(f"shop-{uuid.uuid4().hex}", registry, tmp_path),
        tmp_path,
        random.randrange(10_000, 30_000),
    )  # none that clients' connections have
    for number in (1, 2):
        made.register(number)
    made.promote("1")
    return made


def decisions_about(model: str, registry: Registry, folder: Path) -> Decisions:
    store = open_store(StoreSettings(location=str(folder / "store")))
    return Decisions(registry, Chain(store, model), "ann")


def until(is_so: Callable[[], bool], site: Site, limit_s: float = 240) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, site.said
        time.sleep(0.05)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_promotion_and_a_rollback_are_taken_up_and_every_request_is_answered(site: Site) -> None:
    answers: list[str | None] = []
    ended = threading.Event()

    def keep_asking() -> None:
        while not ended.wait(0.02):
            answers.append(site.ask())

    with site.serving() as process:
        until(lambda: site.ask() == "1", site)
        asking, slow = threading.Thread(target=keep_asking, daemon=True), list[str | None]()
        asking.start()
        late = threading.Thread(target=lambda: slow.append(site.ask("slow", timeout_s=240)), daemon=True)
        late.start()  # the old version's, which is answered when the new one answers already
        until(lambda: ["slow", "1"] in [one[:2] for one in site.servers], site)
        site.promote("2")
        until(lambda: site.ask() == "2", site)
        (site.folder / "answer").touch()
        late.join()
        until(lambda: ["end", "1"] in [one[:2] for one in site.servers], site)
        site.decisions.rollback()
        until(lambda: site.ask() == "1", site)
        ended.set()
        asking.join()
        assert slow == ["1"]
        assert None not in answers
        assert "ERROR" not in site.said
        shown: Any = httpx.get(f"{site.base}/v1/models", trust_env=False).json()
        assert [one["id"] for one in shown["data"]] == [site.decisions.model, f"{site.decisions.model}@1"]
        process.terminate()
        assert process.wait(60) == 0
    assert [one[3] for one in site.servers if one[0] == "start"] == ["kept"] * 3
    assert not any(is_running(one[2]) for one in site.servers)


def test_a_version_is_known_by_its_weights_whatever_mlflow_calls_it(site: Site) -> None:
    decisions = site.decisions
    with site.serving() as process:
        until(lambda: site.ask() == "1", site)
        site.promote("2")
        until(lambda: site.ask() == "2", site)
        process.send_signal(signal.SIGSTOP)  # so that it sees both at once
        first, second = decisions.registry.versions(decisions.model)
        for one, other in ((first, second), (second, first)):
            for tag in (URI_TAG, SHA256_TAG):
                decisions.registry.set_tag(decisions.model, one.version, tag, other.tags[tag])
        decisions.rollback()
        process.send_signal(signal.SIGCONT)
        until(lambda: site.ask() == "1", site)


def test_a_version_that_fails_is_reported_once_and_the_old_one_goes_on(site: Site) -> None:
    (site.folder / "policy.yaml").write_text("{smoke: {timeout_s: 40}}")
    problems = {"ends": "ended with code 3", "nothing": "empty answer", "never up": "not up after 40 s"}
    with site.serving():
        until(lambda: site.ask() == "1", site)
        for number, (behaves, problem) in enumerate(problems.items(), start=3):
            site.register(number, behaves=behaves)
            site.promote(str(number))
            until(lambda n=number: f"version {n} fails" in site.said, site)  # type: ignore[misc]
            assert problem in site.said
            assert site.ask() == "1"
        site.promote("2")
        until(lambda: site.ask() == "2", site)
    assert all(site.said.count(f"version {number} fails") == 1 for number in (3, 4, 5))


def test_one_at_a_time_never_two_run_and_old_weights_go(site: Site) -> None:
    site.register(3, behaves="ends")
    with site.serving("--one-at-a-time"):
        until(lambda: site.ask() == "1", site)
        site.promote("3")
        until(lambda: "version 3 fails" in site.said, site)
        until(lambda: site.ask() == "1", site)
        site.promote("2")
        until(lambda: site.ask() == "2", site)
        assert site.fetched() == {1, 2}, "the last, and the one before"
    begun = [one[:2] for one in site.servers][:6]
    assert begun == [
        ["start", "1"],
        ["end", "1"],
        ["start", "3"],
        ["start", "1"],
        ["end", "1"],
        ["start", "2"],
    ]


def test_a_dead_server_is_started_again_and_a_registry_that_is_away_does_not_matter(site: Site) -> None:
    file = Path(site.uri.removeprefix("sqlite:///"))
    with site.serving() as process:
        until(lambda: site.ask() == "1", site)
        with closing(sqlite3.connect(file, isolation_level=None)) as held:
            held.execute("BEGIN EXCLUSIVE")  # nobody else can read
            until(lambda: "the served version stays" in site.said, site)
            os.kill(int(site.servers[0][2]), signal.SIGKILL)
            until(lambda: site.ask() is None, site)
            until(lambda: site.ask() == "1", site)
        site.promote("2")
        until(lambda: site.ask() == "2", site)
        process.kill()
        process.wait()
        until(lambda: not any(is_running(one[2]) for one in site.servers), site)  # none is left


def test_another_model_is_served_until_there_is_a_champion(site: Site) -> None:
    name, registry = f"{site.decisions.model}-later", site.decisions.registry
    later = Site(decisions_about(name, registry, site.folder), site.folder / "later", site.port)
    (later.folder / "other").mkdir(parents=True)
    (later.folder / "other" / "config.json").write_text('{"number": 99}')
    for name in ("policy.yaml", "stub"):
        (later.folder / name).symlink_to(site.folder / name)
    with later.serving("--first", later.folder / "other"):
        until(lambda: later.ask() == "99", later)
        later.register(1)
        later.promote("1")
        until(lambda: later.ask() == "1", later)


def test_what_cannot_be_followed_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--follow", "--mlflow", site.uri, "--policy", site.folder / "policy.yaml"]
    common += ["--store", site.decisions.chain.store.backend.address]
    name = site.decisions.model
    assert "never changes" in refused(capsys, "model", "serve", f"{name}@1", *common)
    assert "no such version" in refused(capsys, "model", "serve", f"{name}@nobody", *common)
    with socket.create_server(("127.0.0.1", site.port)):
        taken = refused(capsys, "model", "serve", name, *common, "--port", site.port)
    assert f"--port: 127.0.0.1:{site.port} cannot be listened on" in taken
