"""The paths: how a request is read, what each path asks of the service, and what the server says of itself.

A body goes straight from JSON to records and back, and only while the server has memory for it and the client
is there: FastAPI would parse it into Python's objects first and validate an answer that is valid by its type.
Its signatures stay: they are the API's description.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, JsonValue
from starlette.requests import ClientDisconnect

from reward.provenance import config_digest, package_version
from reward.samplers import SamplerError
from reward.serving import wire
from reward.serving.config import InvalidRequest, ServerConfig, apply_overrides
from reward.serving.errors import DECLARED, Refused, Unscored, reply_of
from reward.serving.logs import current_caller
from reward.serving.service import AuditService
from reward.types import AuditResult, Outcome

logger = logging.getLogger(__name__)

_GONE = 499  # as nginx logs it; nobody reads it
_BATCH_AT_ONCE = 16  # audits of one batch, so that one request does not take the places of many
_CACHE_S = 1.0  # for so long `/readyz` repeats an answer, whoever asks: the path is open to all
_TIMEOUT_S, _PAUSE_S = 5.0, 1.0
# For the description of the API; the middleware asks for the token.
_WITH_TOKEN = [Security(HTTPBearer(auto_error=False, scheme_name="token"))]
_UNAUTHORISED: dict[int | str, dict[str, Any]] = {401: DECLARED[401]}

_T = TypeVar("_T")


class AuditRoute(APIRoute):
    """A route whose endpoint takes a pydantic model `body` and returns a response."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint = self.endpoint
        assert self.body_field is not None
        model: type[BaseModel] = self.body_field.field_info.annotation  # type: ignore[assignment]

        async def handle(request: Request) -> Response:
            service: AuditService = request.app.state.service
            service.refuse_when_draining()
            declared = request.headers.get("content-length", "")
            num_declared = int(declared) if declared.isdecimal() else 0
            with service.admission.holding(current_caller().name or "", num_declared) as take:
                read = bytearray()
                try:
                    async for part in request.stream():
                        take(len(part))
                        read += part
                except ClientDisconnect:
                    return Response(status_code=_GONE)
                _check_content_type(request.headers.get("content-type", ""))
                data = bytes(read)
                wire.check_values(data, "body", request.app.state.limits)
                return await while_connected(request, endpoint(wire.read_record(model, data)))

        return handle


def _check_content_type(content_type: str) -> None:
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise Refused(415, f"content type {media_type!r}; send application/json")


async def while_connected(request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
    """The answer; it is given up when the client goes. The request's body must have been read."""
    task = asyncio.current_task()
    assert task is not None
    gone = asyncio.ensure_future(request.receive())  # nothing else can come now

    def leave(_: object) -> None:
        task.cancel()

    gone.add_done_callback(leave)
    try:
        return await answer
    except asyncio.CancelledError:
        if not gone.done():
            raise
        task.uncancel()
        return Response(status_code=_GONE)
    finally:
        gone.remove_done_callback(leave)
        gone.cancel()


def add_audit_routes(app: FastAPI, config: ServerConfig, service: AuditService) -> None:
    """Adds the paths that audit; `app.state` must hold `service` before they are asked."""
    app.state.limits = config.limits
    router = APIRouter(route_class=AuditRoute, responses=DECLARED, dependencies=_WITH_TOKEN)

    @router.post("/get_reward", response_model=wire.RewardReply)
    async def get_reward(body: wire.RewardRequest) -> Response:
        samples = wire.read_samples(body, strip_suffixes=config.strip_suffixes, limits=config.limits)
        results = await _all([service.audit(query, response) for query, response in samples])
        verdicts = [one.verdict for one in results]
        failures = [Unscored(verdict) for verdict in verdicts if verdict.outcome is Outcome.UNSCORED]
        if failures:  # the final one says more: no retry helps the others
            raise next((one for one in failures if one.is_final), failures[0])
        return _answer(wire.reward_reply(verdicts, without_claims=config.audit.reward_refuted))

    @router.post("/v1/audit", response_model=AuditResult)
    async def audit(body: wire.AuditRequest) -> Response:
        return _answer(await audited(body))

    @router.post("/v1/audits", response_model=wire.BatchReply)
    async def audits(body: wire.BatchRequest) -> Response:
        if (num := len(body.audits)) > config.limits.max_batch:
            raise InvalidRequest(f"audits: {num} of them; send max_batch {config.limits.max_batch}")
        places = asyncio.Semaphore(_BATCH_AT_ONCE)

        async def entry(asked: dict[str, JsonValue]) -> wire.BatchEntry:
            async with places:
                try:
                    return wire.BatchEntry(result=await audited(wire.read_record(wire.AuditRequest, asked)))
                except Exception as error:  # it costs its own entry alone
                    return wire.BatchEntry(error=reply_of(error))

        return _answer(wire.BatchReply(entries=tuple(await _all([entry(one) for one in body.audits]))))

    async def audited(body: wire.AuditRequest) -> AuditResult:
        wire.check_documents(body.query, "query", config.limits)
        settings = apply_overrides(config.audit, body.overrides, bounds=config.overrides)
        return await service.audit(
            body.query, body.response, config=settings, with_turns=body.include_trajectories
        )

    app.include_router(router)


async def _all(audits: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """All answers in order; when one raises, the others are waited for no longer."""
    if len(audits) == 1:
        return [await audits[0]]
    tasks = [asyncio.ensure_future(one) for one in audits]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _answer(body: BaseModel) -> Response:
    return Response(body.model_dump_json(), media_type="application/json")


class Readiness:
    """Whether the server is ready: it is not stopping, and its sampler answers.

    Rollout engines sleep between rollouts, so of them only the registry is asked.
    """

    def __init__(self, service: AuditService) -> None:
        self._service = service
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
        if self._service.sampler is None:  # there is nothing to wait for
            return None
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._service.sampler.ready()
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
    app: FastAPI, config: ServerConfig, service: AuditService, readiness: Readiness
) -> None:
    model = service.sampler.model if service.sampler else ""

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", responses={503: {"description": "Not ready; `reason` says why."}})
    async def readyz() -> JSONResponse:
        if (reason := await readiness.why_not()) is None:
            return JSONResponse({"status": "ready"})
        body = {"status": "not ready", "reason": reason}
        return JSONResponse(body, status_code=503, headers={"Retry-After": "1"})

    @app.get("/version", responses=_UNAUTHORISED, dependencies=_WITH_TOKEN)
    async def version() -> dict[str, str]:
        return {
            "version": package_version(),
            "config_digest": config_digest(config.audit),
            "prompts": config.audit.prompts,
            "prompt_digest": service.prompts.digest,
            "sampler": config.sampler.kind,
            "model": model,
        }

    @app.get("/metrics", responses=_UNAUTHORISED, dependencies=_WITH_TOKEN)
    async def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
