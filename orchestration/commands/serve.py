"""`march serve`."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[Path | None, typer.Option(help="Settings in YAML; options override them.")] = None,
    openai_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server that is sampled, e.g. http://host:8000/v1.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Its model's name; without --openai-url a model for vLLM here.")
    ] = None,
    lexical: Annotated[
        bool, typer.Option("--lexical", help="Audit without a model: no GPU, and no other server.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port to listen on.", show_default="5001")
    ] = None,
    prompts: Annotated[
        str | None, typer.Option(help="full, compact, or a YAML file like them.", show_default="full")
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(help="Kinds of claims, with commas between them.", show_default="number,name,date"),
    ] = None,
    ready_within: Annotated[
        float | None,
        typer.Option(min=1, help="End with an error if no engine has answered after so many seconds."),
    ] = None,
) -> None:
    """Run the reward server: audits over HTTP, for OpenRLHF and for any RAG system.

    The environment variable MARCH_REWARD_TOKEN holds the token that a caller must present; more tokens
    (`march token`), TLS and limits are settings of --config. With MARCH_SIGNING_KEY set, answers are signed.
    """
    from orchestration.settings.serve import server_config

    options = {"host": host, "port": port, "prompts": prompts, "kinds": kinds, "ready_within_s": ready_within}
    settings = server_config(config, openai_url=openai_url, model=model, lexical=lexical, options=options)
    from reward.serving.server import serve as run_server

    run_server(settings)
