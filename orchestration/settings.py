"""Options of the command line as typed settings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplerConfig
from reward.serving.config import ServerConfig


def audit_sampler(model: str, model_name: str | None) -> SamplerConfig:
    """The sampler that `--model` and `--model-name` describe: servers for URLs, else vLLM in this process.

    Args:
        model: URLs of servers of one model, with commas between them; or a model's folder or name.
        model_name: The model's name on the servers.

    Raises:
        ValueError: a URL without a name, or a name without a URL.
    """
    if not _is_url(model):
        if model_name is not None:
            raise ValueError(f"--model-name: {model_name!r} is for a --model that is a URL; leave it out")
        return _local(model)
    if model_name is None:
        raise ValueError(f"--model-name: missing; say which model {model} shall use")
    return _servers(model, model_name)


def server_config(
    file: Path | None,
    *,
    openai_url: str | None = None,
    model: str | None = None,
    options: Mapping[str, str | float | None] | None = None,
) -> ServerConfig:
    """The server's settings: those of a YAML file, if there is one, and what the command line says over them.

    Args:
        file: Keys of `ServerConfig` in YAML.
        openai_url: Servers to sample, with commas between them; needs `model`.
        model: The model's name on those servers, or a model for vLLM in this process.
        options: `host`, `port`, `ready_within_s` and `prompts`; None leaves a setting as it is.

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
        tree["sampler"] = _servers(openai_url, model)
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


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _servers(urls: str, model: str) -> OpenAISamplerConfig:
    base_urls = tuple(_versioned(url) for url in (part.strip() for part in urls.split(",")) if url)
    return OpenAISamplerConfig(base_urls=base_urls, model=model)


def _versioned(url: str) -> str:
    """A bare http://host:port means its /v1, where every OpenAI-compatible server answers."""
    return url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1"


def _local(model: str) -> LocalSamplerConfig:
    # The start-up log and warnings of the training stack would bury ours.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    warnings.filterwarnings("ignore", category=FutureWarning)
    return LocalSamplerConfig(model=model)
