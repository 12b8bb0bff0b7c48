"""`ulimit -n`: the soft limit does not bound how many connections the server holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import resource
from reward.serving.connections import raise_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 1000))
raise_file_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1000", "1000"]
