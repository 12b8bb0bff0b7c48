"""A learned reward model beside the audit: weighed, bounded, the Solver's alone, never made up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import cpu
from pipeline.settings.recipe import load_recipe
from pipeline.settings.sources import RewardModelSettings
from reward.types import Role

cpu.install()

from pipeline.training.answer_rows import turn_rows  # noqa: E402
from pipeline.training.reward_model import TOKEN_VARIABLE, RewardModel, RewardModelError  # noqa: E402
from pipeline.training.rollout import SETTINGS_VARIABLE, AgentExecutor  # noqa: E402
from tests.test_rollout import QUERY, Client, Engine, Tokenizer  # noqa: E402


class Server:
    """OpenRLHF's reward wire; answers what it is told to."""

    def __init__(self) -> None:
        self.answer: str | None = json.dumps({"rewards": [2.0]})  # None: an error status
        self.bodies: list[Any] = []
        self.tokens: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.bodies.append(json.loads(body))
                server.tokens.append(self.headers["Authorization"])
                self.send_response(200 if server.answer is not None else 500)
                self.end_headers()
                self.wfile.write((server.answer or "").encode())

            def log_message(self, *_: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/get_reward"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def term(server: Server, **settings: float) -> float:
    async def ask() -> float:
        return await RewardModel(RewardModelSettings(url=server.url, **settings)).term("Q: ", "A")

    return asyncio.run(ask())


@pytest.mark.parametrize(("answer", "expected"), [([2.0], 0.2), (-1.5, -0.15), ([99], 0.25), ([-99], -0.25)])
def test_a_score_is_weighed_and_bounded(server: Server, answer: Any, expected: float) -> None:
    server.answer = json.dumps({"rewards": answer})
    assert term(server) == pytest.approx(expected)
    assert server.bodies == [{"query": ["Q: A"]}]
    assert server.tokens == [None]


def test_its_token_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    term(server)
    assert server.tokens == ["Bearer secret"]


_NO_SCORES = ("[]", "[1, 2]", "[NaN]", '["2"]', "[true]", "null")


@pytest.mark.parametrize("answer", [None, "", "[]", "{}", *(f'{{"rewards": {one}}}' for one in _NO_SCORES)])
def test_what_is_no_number_is_no_term(server: Server, answer: str | None) -> None:
    server.answer = answer
    with pytest.raises(RewardModelError):
        term(server)


def run_agent(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    settings = {"reward_urls": ["http://127.0.0.1:9"], "reward_model": {"url": server.url}}
    monkeypatch.setenv(SETTINGS_VARIABLE, json.dumps(settings))
    agent = AgentExecutor()
    agent._client = Client(up=True)  # type: ignore[assignment]
    arguments = ("p", QUERY.model_dump_json(), SimpleNamespace(max_tokens=8), 64, Tokenizer(), Engine("stop"))
    result: dict[str, Any] = asyncio.run(agent.execute(*arguments))
    return result


def test_the_solver_gets_the_term_and_the_checker_the_verdict(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = json.dumps({"rewards": [-1.0]})
    result = run_agent(server, monkeypatch)
    assert result["reward"] == pytest.approx(-0.1)
    assert result["rollout"].verdict.reward == 0.0
    (row,) = turn_rows(result, result["rollout"], Role.CHECKER, 1)
    assert (row["reward"], row["scores"]) == (0.0, 0.0)


def test_a_reward_model_that_fails_leaves_the_answer_unscored(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = None
    result = run_agent(server, monkeypatch)
    assert result["reward"] is None
    assert result["rollout"].verdict.reason == "reward_model"
    assert result["rollout"].turns == {}


@pytest.mark.parametrize("wrong", ["limit: 0.5", "limit: 0", "url: ftp://x"])
def test_a_term_that_could_swamp_the_verdict_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=rf"reward.model.{wrong.split(':')[0]}"):
        load_recipe(
            "tiny", ["reward.model={url: 'http://127.0.0.1:5000/get_reward'}", f"reward.model={{{wrong}}}"]
        )


def test_a_recipe_may_have_one() -> None:
    recipe = load_recipe("tiny", ["reward.model={url: 'http://127.0.0.1:5000/get_reward', weight: 0.05}"])
    assert recipe.reward.model is not None and recipe.reward.model.weight == 0.05


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ("audit.reward_function=error_rate", "reward.model: with audit.reward_function error_rate"),
        ("audit.reward_refuted=-0.5", "reward.model.limit: 0.25 is not below 0.25"),
        ("audit.reward_supported=-0.6", "reward.model.limit: 0.25 is not below 0.2"),
        ("audit.reward_no_claims=0", "reward.model.limit: 0.25 is not below 0"),
        ("audit.uncovered=ignore audit.coverage_penalty=0.5", "reward.model.limit: 0.25 is not below 0.25"),
        ("ppo.truncated_reward=-0.25", "reward.model.limit: 0.25 is not below 0.25"),
    ],
)
def test_a_term_that_could_lift_another_answer_over_a_supported_one_is_refused(
    overrides: str, says: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_recipe("tiny", ["reward.model={url: 'http://127.0.0.1:5000/get_reward'}", *overrides.split()])
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "override", ["audit.reward_refuted=-0.6", "ppo.truncated_reward=-0.3", "ppo.reward_scalars=0/1"]
)
def test_a_term_that_changes_no_order_is_not_refused(override: str) -> None:
    assert load_recipe("tiny", ["reward.model={url: 'http://127.0.0.1:5000/get_reward'}", override])
