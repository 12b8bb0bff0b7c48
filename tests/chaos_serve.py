"""`march` with two additions for the tests of faults, as a script: `python tests/chaos_serve.py serve ...`

GET /probe             what the server's process holds now; behind the token like everything else
CHAOS_CLOCK=FILE       the wall clock is off by the seconds that the file holds, now
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from orchestration.cli import main
from reward.serving import server

_create_app = server.create_app


def with_probe(*args: Any, **options: Any) -> FastAPI:
    app = _create_app(*args, **options)

    @app.get("/probe")
    async def probe() -> dict[str, int]:
        gc.collect()
        service = app.state.service
        return {
            "tasks": len(asyncio.all_tasks()),
            "audits": len(service._running),
            "present": service.admission.num_admitted,
            "inside": service.admission.num_running,
            "requests": service.num_requests,
            "held_bytes": service.admission.num_bytes,
            "threads": threading.active_count(),
            "fds": len(os.listdir("/proc/self/fd")),
        }

    return app


def shift_clock(file: Path) -> None:
    real = time.time
    time.time = lambda: real() + float(file.read_text() or 0)


if __name__ == "__main__":
    server.create_app = with_probe
    if "CHAOS_CLOCK" in os.environ:
        shift_clock(Path(os.environ["CHAOS_CLOCK"]))
    main()
