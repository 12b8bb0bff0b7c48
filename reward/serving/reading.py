"""How an audit's request is read and answered: straight from JSON to records and back, and only while there
is room for its body and a client to answer.

FastAPI would parse a body into Python's objects first and validate an answer that is valid by its type. Its
signatures stay: they are the API's description.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from reward.serving.room import Overloaded
from reward.serving.service import AuditService

_GONE = 499  # as nginx logs it; nobody reads it

_M = TypeVar("_M", bound=BaseModel)


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
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError(problems) from error


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
