"""The reward server is killed, restarted with another key, replaced by an impostor, and its tokens break."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from reward.serving.client import RewardServerError, UntrustedAnswer
from reward.serving.tokens import new_token
from reward.types import Outcome, Verdict
from tests.chaos_processes import (
    KEY,
    RewardServer,
    ScriptedEngine,
    Serve,
    reward_servers,  # noqa: F401
    scripted_engines,  # noqa: F401
)
from tests.chaos_scale import in_both_lengths, in_both_lengths_outside_the_gate
from tests.chaos_trial import Step, Trial, ask, assert_right, fairs


class Impostor(BaseHTTPRequestHandler):
    """Pays everybody."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        paid = Verdict(id=asked["query"]["id"], outcome=Outcome.SUPPORTED, reward=0.0, reason="supported")
        content = json.dumps({"verdict": paid.model_dump(mode="json"), "trajectories": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@in_both_lengths
def test_a_server_killed_in_the_middle_costs_no_answer(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    for engine in engines:
        engine.fail(pause_s=0.2)
    server = serve()
    trial = Trial(server, fairs(300 if is_long else 48), at_once=32)

    def ended(by: Callable[[], None]) -> Callable[[Step], Any]:
        async def script(step: Step) -> None:
            for share in (0.2, 0.4, 0.6) if is_long else (0.3,):
                await step.reached(share)
                await asyncio.to_thread(by)

        return script

    assert_right(trial.cases, trial.under("server: kill -9, restart", ended(server.restart)).answers)
    assert_right(
        trial.cases, trial.under("server: SIGTERM, restart", ended(lambda: _relieve(server))).answers
    )
    trial.finish()


def _relieve(server: RewardServer) -> None:
    server.signal(signal.SIGTERM)
    assert server.process.wait(60) == 0
    server.restart()


@in_both_lengths
def test_whoever_lacks_the_key_is_not_believed(serve: Serve, is_long: bool) -> None:
    server = serve()
    trial = Trial(server, fairs(100 if is_long else 12))
    server.environment["MARCH_SIGNING_KEY"] = KEY + "x"
    server.restart()
    other_key = trial.under("server: restarted with another key").answers
    server.kill()
    impostor = HTTPServer(("127.0.0.1", server.port), Impostor)
    Thread(target=impostor.serve_forever, daemon=True).start()
    paying = asyncio.run(ask(server.url, trial.cases)).answers
    impostor.shutdown()
    impostor.server_close()
    assert {type(given) for given in [*other_key, *paying]} == {UntrustedAnswer}
    server.environment["MARCH_SIGNING_KEY"] = KEY
    server.restart()
    assert_right(trial.cases, trial.under("server: its own key again").answers)


@in_both_lengths_outside_the_gate
def test_tokens_come_and_go_and_break_while_it_serves(serve: Serve, tmp_path: Path, is_long: bool) -> None:
    old, new = new_token("trainer"), new_token("trainer")
    file = tmp_path / "tokens.yaml"

    def write(text: str) -> None:
        other = file.with_suffix(".new")
        other.write_text(text)
        other.chmod(0o600)
        other.rename(file)

    write(old.line)
    trial = Trial(serve(tokens_file=file), fairs(300 if is_long else 40), at_once=8, token=old.token)

    async def break_and_remove(step: Step) -> None:
        await step.reached(0.2)
        write("trainer: not-a-digest")
        await step.reached(0.4)
        file.unlink()
        await step.reached(0.6)
        write("")
        await step.reached(0.8)
        write(old.line)

    async def rotate(step: Step) -> None:
        await step.reached(0.5)
        write(new.line)

    assert_right(trial.cases, trial.under("tokens: broken, removed", break_and_remove).answers)
    rotated = trial.under("tokens: rotated", rotate).answers
    refused = [given for given in rotated if isinstance(given, RewardServerError)]
    assert 0 < len(refused) < len(rotated) and all("answered 401" in str(given) for given in refused)
    assert_right(trial.cases, trial.under("tokens: the new one", token=new.token).answers)
    trial.finish()


@pytest.mark.chaos
def test_a_server_killed_again_and_again_answers_all_in_the_end(serve: Serve) -> None:
    server = serve()
    trial = Trial(server, fairs(300), at_once=16)

    async def every_second(step: Step) -> None:
        for _ in range(4):
            await asyncio.sleep(1)
            await asyncio.to_thread(server.restart)

    assert_right(trial.cases, trial.under("server: killed four times", every_second).answers)
