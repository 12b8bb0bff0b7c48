"""The options of `march serve` as the server's settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.settings.sampler import audit_sampler, engine_servers
from reward.assignments import read_settings
from reward.serving.config import ServerConfig


def server_config(
    file: Path | None,
    *,
    openai_url: str | None = None,
    model: str | None = None,
    lexical: bool = False,
    options: Mapping[str, str | float | None] | None = None,
) -> ServerConfig:
    """The server's settings: those of a YAML file, if there is one, and what the command line says over them.

    Args:
        file: Keys of `ServerConfig` in YAML.
        openai_url: Servers to sample, with commas between them; needs `model`.
        model: The model's name on those servers, or a model for vLLM in this process.
        lexical: Audit without a model; goes with neither of the two.
        options: `host`, `port`, `ready_within_s`, `prompts` and `kinds` (with commas between them); None
            leaves a setting as it is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a setting is wrong, or nothing says which model is sampled.
    """
    see = "ServerConfig in reward/serving/config.py"
    tree = read_settings(file, see=see, named="--config") if file else {}
    given: dict[str, Any] = {key: value for key, value in (options or {}).items() if value is not None}
    audit = {key: given.pop(key) for key in ("prompts", "kinds") if key in given}
    if "kinds" in audit:
        audit["kinds"] = [kind.strip() for kind in audit["kinds"].split(",")]
    tree |= given | ({"audit": (tree.get("audit") or {}) | audit} if audit else {})
    if lexical:
        if openai_url is not None or model is not None:
            raise ValueError("--lexical: asks no model; leave out --openai-url and --model")
        tree["sampler"] = {"kind": "lexical"}
    elif openai_url is not None:
        if model is None:
            raise ValueError(f"--model: missing; say which model {openai_url} shall use")
        tree["sampler"] = engine_servers(openai_url, model)
    elif model is not None:
        tree["sampler"] = audit_sampler(model, None)
    if "sampler" not in tree:
        raise ValueError(
            "sampler: missing; give --openai-url and --model for a server, --model for vLLM here, --lexical "
            "for an audit without a model, or --config"
        )
    return ServerConfig.model_validate(tree)
