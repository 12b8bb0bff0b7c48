"""`serve` as a process of its own: its refusals, its log and its end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

TOKEN = "a-token/of:32 characters, awkward"

SERVE = """
import sys
from reward.serving.config import ServerConfig
from reward.serving.server import serve
serve(ServerConfig.model_validate_json(sys.argv[1]))
"""


def serving(port: int, token: str | None) -> subprocess.Popen[str]:
    config = {
        "port": port,
        "sampler": {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "none"},
    }
    environment = {name: value for name, value in os.environ.items() if name != "MARCH_REWARD_TOKEN"}
    environment |= {"MARCH_REWARD_TOKEN": token} if token else {}
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, json.dumps(config)],
        cwd=Path(__file__).parents[1],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_port_in_use_or_no_token_is_one_line_and_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for token, words in ((TOKEN, f"127.0.0.1:{port}"), (None, "MARCH_REWARD_TOKEN is not set")):
            process = serving(port, token)
            _, told = process.communicate(timeout=60)
            assert process.returncode == 1
            assert words in told and told.count("\n") == 1


def test_serve_answers_logs_no_token_and_ends_in_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = serving(port, TOKEN)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", auth=("march", TOKEN), trust_env=False) as client:
        for _ in range(300):
            try:
                assert client.get("/version").status_code == 200
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        assert client.get("/readyz").status_code == 503  # there is no model server
        assert client.get("/version", auth=("march", "wrong")).status_code == 401
    process.terminate()
    _, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert TOKEN not in told and "/version" not in told
    assert "Traceback" not in told
