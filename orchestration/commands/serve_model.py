"""`march model serve`: a registered version in vLLM, and the next one when the champion changes."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands import options
from orchestration.commands.artifacts import StoreOption, byte_progress, open_named
from orchestration.registry.open import open_version
from orchestration.terminal.messages import warn_ignored

if TYPE_CHECKING:
    from orchestration.promotion.policy import SmokePolicy
    from orchestration.serving.follow import Follower

_EVERY_S = 30.0
_PATIENCE_S = 600.0  # for a registry or a store that is away at the start


def serve_model(
    reference: Annotated[
        str, typer.Argument(metavar="MODEL@REF", help="Model, and version number or alias.")
    ],
    vllm_options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- VLLM_OPTION...]", help="Passed on to vLLM.", show_default=False),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")] = 8000,
    follow: Annotated[
        bool, typer.Option("--follow", help="Take promotions and rollbacks up while it serves.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="With --follow: from one look to the next.")
    ] = _EVERY_S,
    one_at_a_time: Annotated[
        bool,
        typer.Option(
            "--one-at-a-time",
            help="With --follow: end the old version before the new one starts; for memory that holds one.",
        ),
    ] = False,
    first: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="With --follow: folder or hub name served until there is such a version."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print vLLM's command; do not run it.")] = False,
    policy: options.Policy = None,
    registry: options.RegistryUri = None,
    store: StoreOption = None,
) -> None:
    """Serve a registered version with vLLM, verified against its digest: march model serve MODEL@champion.

    With --follow another version is fetched, started and asked before it answers here; one that fails is
    reported, and the old one goes on.
    """
    import shlex

    from orchestration.promotion.policy import read_policy
    from orchestration.registry.stored import local_weights
    from orchestration.serving.follow import Fetched, Follower
    from orchestration.serving.forward import LOOPBACK
    from reward.samplers.start import demand_libraries

    rules, model = read_policy(policy), reference.partition("@")[0]

    def look(last: Fetched | None) -> Fetched:
        version = open_version(reference, registry, open_named(store))[1]
        if last is not None and last.sha256 == version.sha256:
            return last
        with byte_progress("fetching") as bar:
            weights = local_weights(version, advance=bar.advance)
        return Fetched(version.version, str(weights), version.sha256)

    def command(served: Fetched, port: int, host: str = LOOPBACK) -> list[str]:
        # Not `vllm serve`: the CPU build's does not start.
        server = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", served.weights]
        names = [model, *([f"{model}@{served.version}"] if served.version else [])]
        server += ["--served-model-name", *names, "--host", host, "--port", str(port)]
        return [*server, *(vllm_options or ())]

    if not show:
        demand_libraries()
    if follow and not show:
        if reference.partition("@")[2].isdigit():
            raise ValueError(f"--follow: {reference} never changes; name an alias, or leave --follow out")
        follower = Follower(
            look,
            command,
            partial(_problem, model, rules.smoke),
            limit_s=rules.smoke.timeout_s,
            every_s=every,
            one_at_a_time=one_at_a_time,
        )
        _follow(follower, host=host, port=port, first=first)
        return
    where = "beside --print" if show else "without --follow"
    ignored = every if every != _EVERY_S else None
    warn_ignored(where, follow=follow, every=ignored, one_at_a_time=one_at_a_time, first=first)
    line = command(look(None), port, host)
    if show:
        print(shlex.join(line))
    else:
        os.execv(line[0], line)


def _follow(follower: Follower, *, host: str, port: int, first: str | None) -> None:
    """Serves what the registry names, until a signal ends it."""
    import asyncio
    import logging
    import signal
    from contextlib import suppress

    from orchestration.registry.decisions import NoVersionError
    from orchestration.retrain.transient import patiently
    from orchestration.serving.follow import Fetched
    from pipeline.launch.signals import terminable

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("orchestration").setLevel(logging.INFO)

    async def serve(served: Fetched) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        await follower.front.listen(host, port)
        await follower.run(served)

    with terminable(), suppress(KeyboardInterrupt, asyncio.CancelledError):
        try:
            served = patiently(lambda: follower.look(None), patience_s=_PATIENCE_S)
        except NoVersionError:
            if first is None:
                raise
            served = Fetched("", first)
        asyncio.run(serve(served))


async def _problem(model: str, policy: SmokePolicy, port: int) -> str | None:
    """What is wrong with the answers of the server on a port to the smoke test's prompts."""
    from orchestration.registry.smoke import ask
    from orchestration.serving.forward import LOOPBACK
    from reward.config import OpenAISamplerConfig
    from reward.samplers import SamplerError
    from reward.samplers.make import make_sampler

    config = OpenAISamplerConfig(
        base_urls=(f"http://{LOOPBACK}:{port}/v1",),
        model=model,
        api_key_env="VLLM_API_KEY",  # vLLM's own name of it, which the server has inherited
        max_retries=0,
    )
    try:
        answers = await ask(make_sampler(config), policy)
    except SamplerError as error:
        return f"it does not answer ({error})"
    num_empty = sum(not answer.strip() for answer in answers)
    return f"{num_empty} of {len(answers)} prompts have an empty answer" if num_empty else None
