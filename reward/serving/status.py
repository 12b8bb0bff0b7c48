"""What the server says of itself: whether it is ready, its version, its metrics.

Ready means: it is not stopping, and its sampler answers. Rollout engines sleep between rollouts, so of them
only the registry is asked.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from reward.provenance import config_digest, package_version
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler, SamplerError
from reward.serving.config import ServerConfig
from reward.serving.service import AuditService

logger = logging.getLogger(__name__)

_CACHE_S = 1.0  # for so long an answer is repeated, whoever asks: the path is open to all
_TIMEOUT_S, _PAUSE_S = 5.0, 1.0


class Readiness:
    """Answers `/readyz`."""

    def __init__(self, service: AuditService, sampler: Sampler | None) -> None:
        self._service = service
        self._sampler = sampler  # None: there is nothing to wait for
        self._lock = asyncio.Lock()
        self._looked_at = -math.inf  # on the monotonic clock, seconds
        self._found: str | None = None

    async def why_not(self) -> str | None:
        """None when the server is ready, else the reason in one word; one look serves all who ask."""
        if self._service.is_draining:
            return "stopping"
        async with self._lock:
            if time.monotonic() - self._looked_at >= _CACHE_S:
                self._found = await self._look()
                self._looked_at = time.monotonic()
            return self._found

    async def _look(self) -> str | None:
        if self._sampler is None:
            return None
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._sampler.ready()
        except TimeoutError:
            return "timeout"
        except SamplerError as error:
            logger.info("not ready: %s", error)  # the detail names addresses, and the path is open
            return error.reason
        return None

    async def within(self, seconds: float) -> str | None:
        """Waits until the server is ready; the last reason when it was not in time."""
        ends = time.monotonic() + seconds
        while (reason := await self.why_not()) is not None and time.monotonic() < ends:
            await asyncio.sleep(_PAUSE_S)
        return reason


def add_status_routes(
    app: FastAPI,
    config: ServerConfig,
    service: AuditService,
    readiness: Readiness,
    *,
    sampler: Sampler | None,
    prompts: PromptSet,
) -> None:
    """Adds the paths that say how the server is."""

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", responses={503: {"description": "Not ready; `reason` says why."}})
    async def readyz() -> JSONResponse:
        if (reason := await readiness.why_not()) is None:
            return JSONResponse({"status": "ready"})
        body = {"status": "not ready", "reason": reason}
        return JSONResponse(body, status_code=503, headers={"Retry-After": "1"})

    @app.get("/version")
    async def version() -> dict[str, str]:
        return {
            "version": package_version(),
            "config_digest": config_digest(config.audit),
            "prompts": config.audit.prompts,
            "prompt_digest": prompts.digest,
            "sampler": config.sampler.kind,
            "model": sampler.model if sampler else "",
        }

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
