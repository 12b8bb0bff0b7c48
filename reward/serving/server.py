"""The reward server: audits over HTTP, for the trainer and for any RAG system.

    POST /get_reward   OpenRLHF's remote reward: `--reward.remote_url http://march:TOKEN@127.0.0.1:5001/get_reward`
    POST /v1/audit     a verdict with claims, votes and evidence; takes overrides within bounds, and gives
                       the turns' exact token ids when asked
    POST /v1/audits    several of them at once, answered in order, each with its own result or error
    GET  /healthz      the process lives; open
    GET  /readyz       the sampler answers, and the server is not about to stop; open
    GET  /version      package version, digests of settings and prompts, sampler, model
    GET  /metrics      Prometheus

An UNSCORED audit is no number on `/get_reward`, whose wire knows only numbers: 503 with Retry-After, or 422
where no retry can change it (`runner.RETRIES`). OpenRLHF's stock client asks five times a second apart after
either and then ends the training with an error; it makes no reward of them. On `/v1/audit` it is 200, and the
verdict says so. The server listens on the loopback by default and speaks plain HTTP; with `tls` it
speaks HTTPS, and with `tls.client_ca` only to clients who show a certificate. With a signing key it signs its
answers (signing.py). It takes a listening socket from a supervisor, if one is passed (connections.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from functools import partial

import uvicorn
from fastapi import FastAPI
from prometheus_client import Counter

from reward import telemetry
from reward.config import OpenAISamplerConfig, bare_url
from reward.roles.prompts import load_prompts
from reward.samplers import Sampler, make_sampler
from reward.serving.access import TokenBook, read_token
from reward.serving.config import NoSampler, ServerConfig
from reward.serving.connections import guarded, make_room, open_listener
from reward.serving.errors import add_error_answers
from reward.serving.gates import BodyGate, RequestGate, TokenGate, TraceGate
from reward.serving.lifecycle import DrainingServer
from reward.serving.logs import configure_logging
from reward.serving.routes import HeldBytes, add_audit_routes, add_status_routes
from reward.serving.service import AuditService
from reward.serving.signing import SigningGate, read_signing_key
from reward.serving.tls import server_options

logger = logging.getLogger(__name__)

_OPEN_PATHS = ("/healthz", "/readyz")
_QUIET_PATHS = (*_OPEN_PATHS, "/metrics")  # asked every few seconds
_SHUTDOWN_GRACE_S = 10

Watch = Callable[[ServerConfig, FastAPI], AbstractContextManager[object]]


def create_app(
    config: ServerConfig,
    *,
    sampler: Sampler | None = None,
    token: str | None,
    signing_key: str | None = None,
) -> FastAPI:
    """Builds the server's application.

    Args:
        config: The server's settings.
        sampler: Where completions come from; by default the configured one, closed with the application.
        token: What a caller must present; None when only those of `tokens_file` open.
        signing_key: Signs the answers of the audit's paths, if there is one.

    Raises:
        ValueError: the prompts, the model, the tokenizer or the tokens cannot be had.
    """
    tokens = TokenBook(token, config.tokens_file)
    prompts = load_prompts(config.audit.prompts)
    chosen = sampler or (None if isinstance(config.sampler, NoSampler) else make_sampler(config.sampler))
    service = AuditService(config, sampler=chosen, prompts=prompts)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.loop = asyncio.get_running_loop()
        yield
        await service.close()
        await readiness.close()
        if chosen is not None and sampler is None:
            await chosen.close()

    app = FastAPI(title="MARCH reward server", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    app.state.sampler, app.state.loop = chosen, None
    app.state.held = HeldBytes(config.max_held_bytes, max_body_bytes=config.max_body_bytes)
    add_audit_routes(app, config, service)
    readiness = add_status_routes(app, config, service, sampler=chosen, prompts=prompts)
    app.state.readiness = readiness
    add_error_answers(app)
    app.state.refused_connections = Counter(
        "march_connections_refused",
        "Connections ended before or beside a request",
        ["reason"],
        registry=service.metrics.registry,
    )
    app.state.certificates_read = Counter(
        "march_certificates_read",
        "Changed TLS files, taken or refused",
        ["result"],
        registry=service.metrics.registry,
    )
    _add_gates(app, config, tokens, signing_key)
    refused = service.metrics.refused
    app.add_middleware(RequestGate, quiet_paths=_QUIET_PATHS, logs_access=config.access_log, refused=refused)
    return app


def _add_gates(app: FastAPI, config: ServerConfig, tokens: TokenBook, signing_key: str | None) -> None:
    """What is added last is asked first: the token, the trace, the body, the signature."""
    door = config.door
    if signing_key is not None:
        app.add_middleware(SigningGate, key=signing_key, lifetime_s=config.signature_lifetime_s)
    app.add_middleware(BodyGate, max_body_bytes=config.max_body_bytes, body_timeout_s=door.body_timeout_s)
    if telemetry.is_on():
        app.add_middleware(TraceGate, quiet_paths=_QUIET_PATHS)
    app.add_middleware(
        TokenGate, tokens=tokens, open_paths=_OPEN_PATHS, max_header_bytes=door.max_header_bytes
    )


def serve(config: ServerConfig, *, watch: Watch | None = None) -> None:
    """Runs the server until it is told to stop (SIGINT, SIGTERM), and then ends in order (lifecycle.py).

    Args:
        config: The server's settings.
        watch: Entered while the server runs; `app.state` holds `service`, `sampler`, `readiness` and, once
            it runs, `loop`.

    Raises:
        SystemExit: with one line, when the token, the prompts, the model or the port is not as it must be.
    """
    configure_logging(config.log_format)
    gc.set_threshold(50_000, 20, 50)  # collections caused the longest pauses of all, and a fifth of the start
    try:
        telemetry.start("march-reward-server")
        # With a tokens file the environment's token is one more, and may be missing.
        needs_token = config.tokens_file is None or os.environ.get(config.token_env)
        token = read_token(config.token_env) if needs_token else None
        signing_key = read_signing_key(config.signing_key_env)
        listener = open_listener(config.host, config.port)
        app = create_app(config, token=token, signing_key=signing_key)
        tls = server_options(config.tls, app.state.certificates_read) if config.tls is not None else {}
    except ValueError as error:
        raise SystemExit(f"reward server: {error}") from error
    if not tls and not _is_loopback(listener.host):
        logger.warning(
            "host %s is reachable from elsewhere and the token travels in plain HTTP", listener.host
        )
    how = " (a socket that was passed; host and port are not used)" if listener.is_passed else ""
    logger.info("reward server on http%s://%s:%d%s", "s" if tls else "", listener.host, listener.port, how)
    make_room(config)
    _spare_what_is_there()
    settings = uvicorn.Config(
        app,
        **tls,
        http=guarded(config.door, app.state.refused_connections),
        ws="none",
        proxy_headers=False,  # nothing here depends on who a proxy says that it speaks for
        timeout_keep_alive=75,  # longer than clients keep one, so that none is closed under a request
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_GRACE_S,
    )
    server = DrainingServer(
        settings,
        service=app.state.service,
        grace_s=config.drain_grace_s,
        is_succeeded=listener.is_passed,
        awaited=partial(app.state.readiness.within, config.ready_within_s) if config.ready_within_s else None,
    )
    watching = watch(config, app) if watch is not None else contextlib.nullcontext()
    with contextlib.suppress(KeyboardInterrupt), watching:  # uvicorn raises it again after its orderly end
        server.run(sockets=[listener.socket])
    if server.never_ready is not None:
        raise SystemExit(
            f"reward server: ready_within_s: not ready after {config.ready_within_s:g} s "
            f"({server.never_ready}: {_sampled(config)}); mend the sampler's address or model, or allow more"
        )


def _sampled(config: ServerConfig) -> str:
    """What is sampled, for an error."""
    sampler = config.sampler
    urls = sampler.base_urls if isinstance(sampler, OpenAISamplerConfig) else ()
    where = f" at {', '.join(map(bare_url, urls))}" if urls else ""
    return f"{getattr(sampler, 'model', sampler.kind)}{where}"


def _spare_what_is_there() -> None:
    """Spares the garbage collector what lives as long as the server."""
    gc.collect()
    gc.freeze()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
