"""The options of `march serve` as the server's settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from orchestration.settings.sampler import audit_sampler, engine_servers
from reward.serving.config import ServerConfig


def server_config(
    file: Path | None,
    *,
    openai_url: str | None = None,
    model: str | None = None,
    options: Mapping[str, str | int | None] | None = None,
) -> ServerConfig:
    """The server's settings: those of a YAML file, if there is one, and what the command line says over them.

    Args:
        file: Keys of `ServerConfig` in YAML.
        openai_url: Servers to sample, with commas between them; needs `model`.
        model: The model's name on those servers, or a model for vLLM in this process.
        options: `host`, `port` and `prompts`; None leaves a setting as it is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a setting is wrong, or nothing says which model is sampled.
    """
    tree = _read(file) if file else {}
    given = {key: value for key, value in (options or {}).items() if value is not None}
    prompts = given.pop("prompts", None)
    tree |= given
    if prompts is not None:
        tree["audit"] = {**(tree.get("audit") or {}), "prompts": prompts}
    if openai_url is not None:
        if model is None:
            raise ValueError(f"--model: missing; say which model {openai_url} shall use")
        tree["sampler"] = engine_servers(openai_url, model)
    elif model is not None:
        tree["sampler"] = audit_sampler(model, None)
    if "sampler" not in tree:
        raise ValueError(
            "sampler: missing; give --openai-url and --model for a server, --model for vLLM here, or --config"
        )
    return ServerConfig.model_validate(tree)


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"--config: {file}: no such file; mend the path")
    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"--config: {file}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(tree, dict):
        raise ValueError(f"--config: {file}: holds no mapping of keys; see reward/config.py, ServerConfig")
    return tree
