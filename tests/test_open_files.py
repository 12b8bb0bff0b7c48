"""`ulimit -n` against the connections that the server promises to hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import logging, resource, sys
from reward.serving.config import ServerConfig
from reward.serving.connections import raise_file_limit
logging.basicConfig(format="%(message)s")
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
sampler = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "none"}
raise_file_limit(ServerConfig(sampler=sampler, max_in_flight=100, limits={"max_connections": connections}))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "limit", "warning"),
    [
        (900, 1000, 500, 900, ""),  # enough
        (300, 1000, 500, 664, ""),  # raised to what is needed, 500 + 100 + 64
        (300, 600, 500, 600, "open files: 600 are allowed, but limits.max_connections 500"),
        (600, 600, 500, 600, "start with ulimit -n 664 or lower limits.max_connections"),
    ],
)
def test_the_soft_limit_is_raised_and_what_is_still_missing_is_logged(
    soft: int, hard: int, connections: int, limit: int, warning: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(connections)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(limit), str(hard)]
    assert warning in done.stderr and done.stderr.count("\n") == bool(warning)
