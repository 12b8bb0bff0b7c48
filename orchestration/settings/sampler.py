"""`--model` and its companions as the settings of a sampler."""

import os
import warnings
from urllib.parse import urlsplit

from pipeline.models.cache import cached, require_model
from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplerConfig

# An audit constrains what the model writes, so that it parses, unless it thinks first; a training leaves the
# trained Checker free.
BY_MODEL = {"structured": "all"}


def audit_sampler(model: str, model_name: str | None) -> SamplerConfig:
    """The sampler that `--model` and `--model-name` describe: servers for URLs, else vLLM in this process.

    Args:
        model: URLs of servers of one model, with commas between them; or a model's folder or name.
        model_name: The model's name on the servers.

    Raises:
        ValueError: a URL without a name, or a name without a URL.
        FileNotFoundError: the name of a known model that is not fetched.
    """
    if not model.startswith(("http://", "https://")):
        if model_name is not None:
            raise ValueError(f"--model-name: {model_name!r} is for a --model that is a URL; leave it out")
        # The start-up log and warnings of the training stack would bury ours.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
        warnings.filterwarnings("ignore", category=FutureWarning)
        if (fetched := cached(model)) is not None:
            require_model(model)
        return LocalSamplerConfig(model=str(fetched or model))
    if model_name is None:
        raise ValueError(f"--model-name: missing; say which model {model} shall use")
    return engine_servers(model, model_name)


def engine_servers(urls: str, model: str) -> OpenAISamplerConfig:
    """OpenAI-compatible servers of one model, from URLs with commas between them."""
    base_urls = tuple(_versioned(url) for url in (part.strip() for part in urls.split(",")) if url)
    return OpenAISamplerConfig(base_urls=base_urls, model=model)


def _versioned(url: str) -> str:
    """A bare http://host:port means its /v1, where every OpenAI-compatible server answers."""
    parts = urlsplit(url)
    return url if parts.path.strip("/") else parts._replace(path="/v1").geturl()
