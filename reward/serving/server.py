"""The reward server: audits over HTTP, for the trainer and for any RAG system.

    POST /get_reward   OpenRLHF's remote reward:
                       `--reward.remote_url http://march:TOKEN@127.0.0.1:5001/get_reward`
    POST /v1/audit     a verdict with claims, votes and evidence; takes overrides within bounds, and gives
                       the turns' exact token ids when asked
    POST /v1/audits    several of them at once, answered in order, each with its own result or error
    GET  /healthz      the process lives; open
    GET  /readyz       the sampler answers, and the server is not stopping; open
    GET  /version      package version, digests of settings and prompts, sampler, model
    GET  /metrics      Prometheus

A request passes middleware.py (token, limits, signature), routes.py (its records) and service.py (its audit);
errors.py is the table of what fails how. An UNSCORED audit is no number on `/get_reward`, whose wire knows
only numbers: 503 with Retry-After, or 422 where no retry can change it. OpenRLHF's stock client asks five
times a second apart after either and then ends the training with an error; it makes no reward of them. On
`/v1/audit` it is 200, and the verdict says so.

The server listens on the loopback by default and speaks plain HTTP; with `tls` it speaks HTTPS, and with
`tls.client_ca` only to clients who show a certificate. It takes a listening socket from a supervisor, if one
is passed (connections.py).

The end: uvicorn by itself closes its port at once, and raises the signal again; a balancer would see refused
connections, and a supervisor a death by signal. Here the port stays open until the audits under way have
ended or `drain_grace_s` is over, `/readyz` and new audits are answered 503 meanwhile, and the process exits
with 0. A second signal ends it at once. A socket that a supervisor holds is closed first instead: connections
that come now wait in its backlog for the next process; those accepted until then are answered.
"""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import socket
import time
from collections.abc import AsyncIterator
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from reward import telemetry
from reward.config import OpenAISamplerConfig, bare_url
from reward.roles.prompts import load_prompts
from reward.samplers import Sampler
from reward.samplers.make import make_sampler
from reward.serving.config import NoSampler, ServerConfig
from reward.serving.connections import guarded, open_listener, raise_file_limit, tls_options
from reward.serving.logs import configure_logging, without_query
from reward.serving.metrics import CERTIFICATES, TOKENS, AuditMetrics
from reward.serving.middleware import RequestMiddleware
from reward.serving.routes import Readiness, add_audit_routes, add_status_routes
from reward.serving.service import AuditService
from reward.serving.signing import read_signing_key
from reward.serving.tokens import TOKEN_ENV, TokenBook, read_token

logger = logging.getLogger(__name__)

_SHUTDOWN_GRACE_S = 10
_TICK_S = 0.1


def create_app(
    config: ServerConfig, *, sampler: Sampler | None = None, token: str | None, signing_key: str | None = None
) -> FastAPI:
    """Builds the server's application.

    By default its sampler is the configured one, closed with the application. Without a `token` only those of
    `tokens_file` are valid; with a `signing_key` the answers of the audit's paths are signed.

    Raises:
        ValueError: the prompts, the model, the tokenizer or the tokens cannot be had.
    """
    tokens = TokenBook(
        token, config.tokens_file, lambda is_usable: service.metrics.file_read(TOKENS, is_usable)
    )
    if unknown := sorted(config.quotas.keys() - tokens.names()):
        known = ", ".join(sorted(tokens.names()))
        logger.warning("quotas: %s: no token has this name now; there are %s", ", ".join(unknown), known)
    prompts = load_prompts(config.audit.prompts)
    chosen = sampler or (None if isinstance(config.sampler, NoSampler) else make_sampler(config.sampler))
    service = AuditService(config, sampler=chosen, prompts=prompts)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()
        if chosen is not None and sampler is None:
            await chosen.close()

    app = FastAPI(title="MARCH reward server", lifespan=lifespan, docs_url=None, redoc_url=None)
    readiness = Readiness(service)
    app.state.service, app.state.readiness = service, readiness
    add_audit_routes(app, config, service)
    add_status_routes(app, config, service, readiness)
    refused = service.metrics.refused
    app.add_middleware(
        RequestMiddleware, config=config, tokens=tokens, signing_key=signing_key, refused=refused
    )
    return app


def serve(config: ServerConfig) -> None:
    """Runs the server until SIGINT or SIGTERM, and then ends in order.

    Raises:
        SystemExit: with one line, when the token, the prompts, the model or the port cannot be used.
    """
    configure_logging(config.log_format)
    gc.set_threshold(50_000, 20, 50)  # collections caused the longest pauses of all, and a fifth of the start
    try:
        telemetry.start("march-reward-server")
        # With a tokens file the environment's token is one more, and may be missing.
        needs_token = config.tokens_file is None or os.environ.get(TOKEN_ENV)
        token = read_token() if needs_token else None
        signing_key = read_signing_key()
        listener, is_passed = open_listener(config.host, config.port)
        app = create_app(config, token=token, signing_key=signing_key)
        metrics: AuditMetrics = app.state.service.metrics
        note = partial(metrics.file_read, CERTIFICATES)
        tls = tls_options(config.tls, note) if config.tls is not None else {}
    except ValueError as error:
        raise SystemExit(f"reward server: {error}") from error
    _log_start(config, *listener.getsockname()[:2], is_passed=is_passed)
    raise_file_limit()
    gc.collect()
    gc.freeze()  # what lives as long as the server is not collected again
    logging.getLogger("uvicorn.access").addFilter(without_query)
    settings = uvicorn.Config(
        app,
        **tls,
        http=guarded(config.limits, metrics.refused_connections),
        ws="none",
        proxy_headers=False,  # nothing here depends on who a proxy says that it speaks for
        timeout_keep_alive=75,  # longer than clients keep one, so that none is closed under a request
        log_config=None,
        access_log=config.access_log,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_GRACE_S,
    )
    server = DrainingServer(settings, config, app, is_socket_shared=is_passed)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after its orderly end
        server.run(sockets=[listener])
    if server.never_ready is not None:
        raise SystemExit(
            f"reward server: ready_within_s: not ready after {config.ready_within_s:g} s "
            f"({server.never_ready}: {_sampled(config)}); fix the sampler's address or model, or allow more"
        )


class DrainingServer(uvicorn.Server):
    """Uvicorn with an orderly end; a shared socket is one that another process will listen on, too."""

    def __init__(
        self, settings: uvicorn.Config, config: ServerConfig, app: FastAPI, *, is_socket_shared: bool
    ) -> None:
        super().__init__(settings)
        self._service: AuditService = app.state.service
        self._readiness: Readiness = app.state.readiness
        self._ready_within_s, self._grace_s = config.ready_within_s, config.drain_grace_s
        self._has_shared_socket = is_socket_shared
        self._awaiting: asyncio.Task[None] | None = None
        self.never_ready: str | None = None  # why it ended before it was ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end at the first signal, which is not raised again; a second one is uvicorn's."""
        if self.should_exit or not self.started:
            self._grace_s = 0.0
            return super().handle_exit(sig, frame)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_within_s is not None and self.started:
            self._awaiting = asyncio.create_task(self._end_unless_ready(self._ready_within_s))

    async def _end_unless_ready(self, seconds: float) -> None:
        self.never_ready = await self._readiness.within(seconds)
        self.should_exit = self.should_exit or self.never_ready is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answers what was accepted, within the grace, before uvicorn closes port and connections."""
        begin = time.monotonic()
        if self._awaiting is not None:
            self._awaiting.cancel()  # while it drains it is not ready, which is no failure
        if self._has_shared_socket:
            for server in self.servers:
                server.close()  # this process's copy of the socket, not the socket
            await asyncio.sleep(_TICK_S)  # what was just accepted is read
        self._service.drain()
        while self._service.num_requests and time.monotonic() - begin < self._grace_s:
            await asyncio.sleep(_TICK_S)
        await self._service.close()
        await super().shutdown(sockets)


def _log_start(config: ServerConfig, host: str, port: int, *, is_passed: bool) -> None:
    if config.tls is None and not ipaddress.ip_address(host).is_loopback:
        logger.warning("host %s is reachable from elsewhere and the token travels in plain HTTP", host)
    how = " (a socket that was passed; host and port are not used)" if is_passed else ""
    scheme = "http" if config.tls is None else "https"
    logger.info("reward server on %s://%s:%d%s", scheme, host, port, how)


def _sampled(config: ServerConfig) -> str:
    sampler = config.sampler
    urls = sampler.base_urls if isinstance(sampler, OpenAISamplerConfig) else ()
    where = f" at {', '.join(map(bare_url, urls))}" if urls else ""
    return f"{getattr(sampler, 'model', sampler.kind)}{where}"
