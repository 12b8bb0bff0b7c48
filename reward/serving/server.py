"""The reward server: audits over HTTP, for the trainer and for any RAG system.

    POST /get_reward   OpenRLHF's remote reward: `--reward.remote_url http://march:TOKEN@127.0.0.1:5001/get_reward`
    POST /v1/audit     a verdict with claims, votes and evidence; takes overrides within bounds, and gives
                       the turns' exact token ids when asked
    GET  /healthz      the process lives; open
    GET  /readyz       the sampler answers; open
    GET  /version      package version, prompt digest, sampler
    GET  /metrics      Prometheus

An UNSCORED audit is 503 on `/get_reward`, because that wire knows only numbers, and 200 on `/v1/audit`,
whose verdict says so. The server listens on the loopback by default and speaks plain HTTP: put TLS before it
where it must be reached from elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from reward.config import ServerConfig
from reward.overrides import OverrideRefused, apply_overrides
from reward.provenance import package_version
from reward.roles.prompts import load_prompts
from reward.samplers import Sampler, SamplerError, make_sampler
from reward.serving.gate import SizeGate, TokenGate, read_token
from reward.serving.service import AuditService, Overloaded
from reward.serving.wire import (
    AuditRequest,
    RewardReply,
    RewardRequest,
    UnreadableSample,
    one_line,
    read_samples,
    reward_reply,
)
from reward.types import AuditResult, Outcome, Verdict

logger = logging.getLogger(__name__)

_OPEN_PATHS = ("/healthz", "/readyz")
_READY_TIMEOUT_S = 5.0
_SHUTDOWN_GRACE_S = 10


class Unscored(RuntimeError):
    """A sample of `/get_reward` has no reward."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.reason}: {verdict.detail}")
        self.verdict = verdict


def create_app(config: ServerConfig, *, sampler: Sampler | None = None, token: str) -> FastAPI:
    """Builds the server's application.

    Args:
        config: The server's settings.
        sampler: Where completions come from; by default the configured one, closed with the application.
        token: What every caller must present.

    Raises:
        ValueError: the prompts, the model or the tokenizer cannot be found.
    """
    prompts = load_prompts(config.audit.prompts)
    chosen = sampler or make_sampler(config.sampler)
    service = AuditService(config, sampler=chosen, prompts=prompts)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()
        if sampler is None:
            await chosen.close()

    app = FastAPI(title="MARCH reward server", lifespan=lifespan, docs_url=None, redoc_url=None)
    _add_audit_routes(app, config, service)
    _add_status_routes(app, config, service, sampler=chosen, prompt_digest=prompts.digest)
    _add_error_answers(app)
    app.add_middleware(SizeGate, max_body_bytes=config.max_body_bytes)
    app.add_middleware(TokenGate, token=token, open_paths=_OPEN_PATHS)  # added last: it is asked first
    return app


def _add_audit_routes(app: FastAPI, config: ServerConfig, service: AuditService) -> None:
    @app.post("/get_reward")
    async def get_reward(request: RewardRequest) -> RewardReply:
        samples = read_samples(request, strip_suffixes=config.strip_suffixes)
        results = await asyncio.gather(*(service.audit(query, response) for query, response in samples))
        for result in results:
            if result.verdict.outcome is Outcome.UNSCORED:
                raise Unscored(result.verdict)
        return reward_reply([result.verdict for result in results])

    @app.post("/v1/audit")
    async def audit(request: AuditRequest) -> AuditResult:
        settings = apply_overrides(config.audit, request.overrides, bounds=config.overrides)
        result = await service.audit(request.query, request.response, config=settings)
        return result if request.include_trajectories else AuditResult(verdict=result.verdict)


def _add_status_routes(
    app: FastAPI, config: ServerConfig, service: AuditService, *, sampler: Sampler, prompt_digest: str
) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                await sampler.ready()
        except TimeoutError:
            return JSONResponse({"status": "not ready", "reason": "timeout"}, status_code=503)
        except SamplerError as error:
            logger.info("not ready: %s", error)  # the detail names addresses, and this path is open
            return JSONResponse({"status": "not ready", "reason": error.reason}, status_code=503)
        return JSONResponse({"status": "ready"})

    @app.get("/version")
    async def version() -> dict[str, str]:
        return {
            "version": package_version(),
            "prompts": config.audit.prompts,
            "prompt_digest": prompt_digest,
            "sampler": config.sampler.kind,
        }

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _add_error_answers(app: FastAPI) -> None:
    """Every failure is one line under `detail`; none of them is a number."""

    @app.exception_handler(Unscored)
    async def unscored(_: Request, error: Unscored) -> JSONResponse:
        verdict = error.verdict
        body = {"detail": f"UNSCORED: {error}", "reason": verdict.reason, "id": verdict.id}
        return JSONResponse(body, status_code=503, headers={"Retry-After": "1"})

    @app.exception_handler(Overloaded)
    async def overloaded(_: Request, error: Overloaded) -> JSONResponse:
        body = {"detail": f"{error}; ask again, or raise max_in_flight", "reason": "overloaded"}
        return JSONResponse(body, status_code=503, headers={"Retry-After": "1"})

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": one_line(error.errors())}, status_code=422)

    @app.exception_handler(UnreadableSample)
    @app.exception_handler(OverrideRefused)
    async def unreadable(_: Request, error: UnreadableSample | OverrideRefused) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=422)


def serve(config: ServerConfig) -> None:
    """Runs the server until it is told to stop (SIGINT, SIGTERM); audits under way get ten seconds to end.

    Raises:
        SystemExit: with one line, when the token, the prompts, the model or the port is not as it must be.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("httpx", "httpx2"):  # ours and the openai package's, which report every request
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        token = read_token(config.token_env)
        listener = _listen(config.host, config.port)
        app = create_app(config, token=token)
    except ValueError as error:
        raise SystemExit(f"reward server: {error}") from error
    if not _is_loopback(config.host):
        logger.warning("host %s is reachable from elsewhere and the token travels in plain HTTP", config.host)
    logger.info("reward server on http://%s:%d", config.host, config.port)
    settings = uvicorn.Config(
        app,
        timeout_keep_alive=75,  # longer than clients keep one, so that none is closed under a request
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_GRACE_S,
    )
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after its orderly end
        uvicorn.Server(settings).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        mend = "stop what uses it or set another port" if in_use else "mend host or port"
        raise ValueError(f"port: cannot listen on {host}:{port} ({error.strerror}); {mend}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
