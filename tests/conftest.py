"""Shared by the tests: a sampler that answers from a script, a query with a distractor, real servers."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from reward.config import SamplingSettings
from reward.samplers import Message
from reward.types import Document, RagQuery, Sample, SampleGroup
from tests.chaos_table import print_table
from tests.evaluations import ChatServer, drawn_answers, drawn_verdict
from tests.mlflow_process import mlflow_server
from tests.vllm_process import vllm_server

# With Python's own threshold, 700 new objects, collections take a tenth of the tests' time and find nothing.
gc.set_threshold(50_000, 20, 50)
# As the command sets it, whichever test imports MLflow first.
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
# An example that waits for a core is no slow one. The gate tries the same examples each time;
# `--hypothesis-profile=search` tries others.
settings.register_profile("march", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("march")

Completion = str | Sample | Exception
Script = (
    Sequence[Completion]
    | Mapping[str, Sequence[Completion]]
    | Callable[[Sequence[Message], int], Sequence[str]]
)


@dataclass(frozen=True)
class Request:
    """One call of the sampler."""

    messages: tuple[Message, ...]
    n: int
    settings: SamplingSettings
    pattern: str | None = None

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "\n".join(message["content"] for message in self.messages)


class ScriptedSampler:
    """A `reward.samplers.Sampler` that gives out scripted completions and remembers every request.

    The script is a list that is used up from its start; a mapping from a word of the system message
    ("proposer", "checker") to such a list; or a function of the messages and n. An exception in a list is
    raised in place of the whole request. A script that is too short is a mistake of the test.

    Args:
        script: The completions.
        with_tokens: Whether samples carry token ids: the bytes of their text and an end token 0.
        weights_version: Given to every group.
    """

    def __init__(
        self, script: Script, *, with_tokens: bool = False, weights_version: int | None = None
    ) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._lists = (
            {key: list(texts) for key, texts in script.items()} if isinstance(script, Mapping) else {}
        )
        self._list = list(script) if isinstance(script, Sequence) else []
        self._with_tokens = with_tokens
        self._weights_version = weights_version

    model = "scripted"

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        self.requests.append(Request(tuple(messages), n, settings, pattern))
        completions = self._completions(messages, n)
        for completion in completions:
            if isinstance(completion, Exception):
                raise completion
        prompt = "\n".join(message["content"] for message in messages).encode()
        return SampleGroup(
            samples=tuple(self._sample(completion) for completion in completions),
            prompt_token_ids=tuple(prompt) if self._with_tokens else None,
            weights_version=self._weights_version,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Words are tokens here."""
        return sum(len(message["content"].split()) for message in messages)

    async def ready(self) -> None:
        """A script is always ready."""

    async def close(self) -> None:
        """A script holds nothing open."""

    def _completions(self, messages: Sequence[Message], n: int) -> list[Completion]:
        if callable(self._script):
            return list(self._script(messages, n))
        left = self._list
        if self._lists:
            left = next(texts for key, texts in self._lists.items() if key in messages[0]["content"])
        if left and isinstance(left[0], Exception):
            return [left.pop(0)]
        assert len(left) >= n, f"the script has {len(left)} completions left, {n} were asked for"
        taken, left[:n] = left[:n], []
        return taken

    def _sample(self, completion: Completion) -> Sample:
        sample = (
            completion
            if isinstance(completion, Sample)
            else Sample(text=str(completion), finish_reason="stop")
        )
        if not self._with_tokens:
            return sample
        token_ids = (*sample.text.encode(), 0)
        return sample.model_copy(update={"token_ids": token_ids, "logprobs": (-0.5,) * len(token_ids)})


@pytest.fixture
def scripted() -> type[ScriptedSampler]:
    """The scripted sampler's class."""
    return ScriptedSampler


@pytest.fixture
def picnic() -> RagQuery:
    """Two picnics that differ in their month."""
    documents = (
        Document(
            id="july", title="Summer", text="The July picnic in Kabul raised 466 euros.\nIt drew 50 people."
        ),
        Document(id="may", text="The May picnic in Kabul raised 120 euros."),
    )
    return RagQuery(id="q1", query="How much did the July picnic in Kabul raise?", documents=documents)


@pytest.fixture(scope="session")
def mlflow_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MLflow server, which takes half a minute to start: tests name their models after themselves."""
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as uri:
        yield uri


@pytest.fixture(scope="session")
def vllm_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real vLLM server of the tiny policy; who stops or breaks one starts one of its own."""
    with vllm_server(tmp_path_factory.mktemp("vllm") / "log.txt") as server:
        yield server.url


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A server of the model under test, whose answers are decided by the question."""
    with ChatServer(drawn_answers, "tested") as server:
        yield server


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A server that judges, whose verdicts are decided by the question; none is known from another test."""
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    with ChatServer(drawn_verdict, "judge") as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests first that may take longest; else one worker ends alone in a long file."""
    items.sort(key=lambda item: -max((mark.args[0] for mark in item.iter_markers("timeout")), default=0))


def pytest_terminal_summary() -> None:
    """Shows what the tests of faults saw."""
    print_table()
