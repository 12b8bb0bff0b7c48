"""The server's paths: how a request is read, and what each path asks of the service.

A body goes straight from JSON to records and back, and only while there is room for it and a client to
answer: FastAPI would parse it into Python's objects first and validate an answer that is valid by its type.
Its signatures stay: they are the API's description.

An answer's header `March-Audit` says where its verdicts come from, one word a sample: "fresh", "joined" or
"cached" (`service.Source`). A request may name itself with `Idempotency-Key`, the same for each attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from reward.provenance import config_digest, package_version
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.serving.access import Overloaded
from reward.serving.config import ServerConfig, apply_overrides
from reward.serving.errors import DECLARED, Unscored, entry_error, problems_of
from reward.serving.lifecycle import Readiness
from reward.serving.service import AuditService, Served
from reward.serving.signing import WEIGHTS_HEADER, weights_of
from reward.serving.wire import (
    IDEMPOTENCY_HEADER,
    AuditRequest,
    BatchEntry,
    BatchReply,
    BatchRequest,
    ErrorReply,
    RewardReply,
    RewardRequest,
    UnreadableSample,
    check_documents,
    read_samples,
    reward_reply,
)
from reward.types import AuditResult, Outcome

_GONE = 499  # as nginx logs it; nobody reads it

_T = TypeVar("_T")
_M = TypeVar("_M", bound=BaseModel)
logger = logging.getLogger(__name__)


class HeldBytes:
    """The bodies of all requests at once, in bytes.

    Args:
        max_bytes: Beyond it, requests are refused.
        max_body_bytes: What a body of undeclared length counts for.
    """

    def __init__(self, max_bytes: int, *, max_body_bytes: int) -> None:
        self.num_bytes = 0
        self._max_bytes = max_bytes
        self._max_body_bytes = max_body_bytes

    @contextmanager
    def of(self, request: Request, *, retry_after_s: Callable[[], int]) -> Iterator[None]:
        """Counts a request's body while the request is under way.

        Raises:
            Overloaded: there is no room for it.
        """
        declared = request.headers.get("content-length", "")
        num_bytes = int(declared) if declared.isdecimal() else self._max_body_bytes
        if self.num_bytes and self.num_bytes + num_bytes > self._max_bytes:
            detail = f"requests of {self.num_bytes} bytes are under way; ask again, or raise max_held_bytes"
            raise Overloaded("memory", detail, retry_after_s=retry_after_s())
        self.num_bytes += num_bytes
        try:
            yield
        finally:
            self.num_bytes -= num_bytes


class AuditRoute(APIRoute):
    """A route whose endpoint takes a pydantic model `body` and the request, and returns a response.

    `app.state` holds the `service` and the `held` bytes.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that reads, asks the endpoint, and answers."""
        endpoint = self.endpoint
        assert self.body_field is not None
        model: type[BaseModel] = self.body_field.field_info.annotation  # type: ignore[assignment]

        async def handle(request: Request) -> Response:
            service: AuditService = request.app.state.service
            held: HeldBytes = request.app.state.held
            service.refuse_when_draining()
            with held.of(request, retry_after_s=service.room.retry_after_s):
                try:
                    body = read_json(model, await request.body(), request.headers.get("content-type", ""))
                except ClientDisconnect:
                    return Response(status_code=_GONE)
                return await while_connected(request, endpoint(body, request))

        return handle


def read_json(model: type[_M], body: bytes, content_type: str) -> _M:
    """The record that a body holds.

    Raises:
        HTTPException: 415, the body is not said to be JSON.
        RequestValidationError: it is none, or not of the model's form.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise HTTPException(415, f"content type {media_type!r}; send application/json")
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(problems_of(error)) from error


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


SOURCE_HEADER = "March-Audit"
_MAX_KEY_CHARS = 128
_BATCH_AT_ONCE = 16  # audits of one batch, so that one request does not take the room of many
_KEY_PARAMETER = {
    "name": IDEMPOTENCY_HEADER,
    "in": "header",
    "required": False,
    "description": "The same for each attempt of one request; with a policy in training, only these share a "
    "verdict after its audit has ended, and its trajectories.",
    "schema": {"type": "string", "maxLength": _MAX_KEY_CHARS},
}


def add_audit_routes(app: FastAPI, config: ServerConfig, service: AuditService) -> None:
    """Adds the paths that audit; `app.state` must hold `service` and `held` before they are asked."""
    router = APIRouter(route_class=AuditRoute, responses=DECLARED)
    keyed = {"parameters": [_KEY_PARAMETER]}

    @router.post("/get_reward", response_model=RewardReply, openapi_extra=keyed)
    async def get_reward(body: RewardRequest, request: Request) -> Response:
        samples = read_samples(body, strip_suffixes=config.strip_suffixes, limits=config.door)
        asker = _asker(request)
        served = await _all([service.audit(query, response, asker=asker) for query, response in samples])
        verdicts = [one.result.verdict for one in served]
        failures = [Unscored(verdict) for verdict in verdicts if verdict.outcome is Outcome.UNSCORED]
        if failures:  # the final one says more: no retry helps the others
            raise next((one for one in failures if one.is_final), failures[0])
        return _answer(reward_reply(verdicts, without_claims=config.audit.reward_refuted), served)

    @router.post("/v1/audit", response_model=AuditResult, openapi_extra=keyed)
    async def audit(body: AuditRequest, request: Request) -> Response:
        served = await audited(body, _asker(request))
        return _answer(served.result, [served])

    @router.post("/v1/audits", response_model=BatchReply, openapi_extra=keyed)
    async def audits(body: BatchRequest, request: Request) -> Response:
        if (num := len(body.audits)) > config.door.max_batch:
            raise UnreadableSample(f"audits: {num} of them; send max_batch {config.door.max_batch}")
        key, places = _asker(request), asyncio.Semaphore(_BATCH_AT_ONCE)

        async def one(i: int) -> Served | ErrorReply:
            async with places:
                try:
                    asked = AuditRequest.model_validate(body.audits[i])
                    return await audited(asked, f"{key}/{i}" if key else "")
                except Exception as error:  # it costs its own entry alone
                    return entry_error(error)

        return _batch_answer(await _all([one(i) for i in range(num)]))

    async def audited(body: AuditRequest, asker: str) -> Served:
        check_documents(body.query, "query", config.door)
        settings = apply_overrides(config.audit, body.overrides, bounds=config.overrides)
        served = await service.audit(body.query, body.response, config=settings, asker=asker)
        bare = AuditResult(verdict=served.result.verdict)
        return served if body.include_trajectories else Served(bare, served.source)

    app.include_router(router)


def add_status_routes(
    app: FastAPI, config: ServerConfig, service: AuditService, *, sampler: Sampler | None, prompts: PromptSet
) -> Readiness:
    """Adds the paths that tell how the server is; what is returned is to be closed with it."""
    readiness = Readiness(service, sampler, cache_s=config.ready_cache_s)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", responses={503: {"description": "Not ready; `reason` says why."}})
    async def readyz() -> JSONResponse:
        reason = await readiness.why_not()
        if reason is None:
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

    return readiness


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


def _asker(request: Request) -> str:
    key = request.headers.get(IDEMPOTENCY_HEADER, "")
    if len(key) > _MAX_KEY_CHARS:
        raise UnreadableSample(
            f"{IDEMPOTENCY_HEADER}: has {len(key)} characters; send {_MAX_KEY_CHARS} at most"
        )
    return key


def _batch_answer(served: Sequence[Served | ErrorReply]) -> Response:
    entries = tuple(
        BatchEntry(error=one) if isinstance(one, ErrorReply) else BatchEntry(result=one.result)
        for one in served
    )
    return _answer(BatchReply(entries=entries), served)


def _answer(body: BaseModel, served: Sequence[Served | ErrorReply]) -> Response:
    versions = [None if isinstance(one, ErrorReply) else one.result.verdict.weights_version for one in served]
    sources = ["error" if isinstance(one, ErrorReply) else one.source for one in served]
    headers = {SOURCE_HEADER: ",".join(sources), WEIGHTS_HEADER: weights_of(versions)}
    return Response(body.model_dump_json(), media_type="application/json", headers=headers)
