"""What a verdict was made with, and the seeds that make it repeatable.

A digest of the settings, a digest of the prompts, the model and the seed: a verdict that is made again with
all of them the same, of the same response and documents, is the same verdict.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

from reward.config import AuditConfig, SamplingSettings
from reward.types import Provenance, Role

_SEED_BYTES = 4  # servers take seeds of 32 bits at least
_SEED_MASK = 0x7FFF_FFFF


@lru_cache(maxsize=64)
def provenance_of(
    config: AuditConfig, *, auditor: Literal["lexical", "model"], prompt_digest: str = "", model: str = ""
) -> Provenance:
    """The provenance of a verdict; `prompt_digest` and `model` where a model was asked."""
    return Provenance(
        auditor=auditor,
        version=package_version(),
        config_digest=config_digest(config),
        prompt_digest=prompt_digest,
        model=model,
        seed=config.seed,
    )


@cache
def package_version() -> str:
    """The installed version; "unpackaged" where the code runs from a checkout that nobody installed."""
    try:
        return importlib.metadata.version("march-pipeline")
    except importlib.metadata.PackageNotFoundError:
        return "unpackaged"


def config_digest(config: AuditConfig) -> str:
    """SHA-256 (hex) of the settings' JSON, defaults included, with sorted keys."""
    return json_sha256(config.model_dump(mode="json"))


def json_sha256(content: object) -> str:
    """SHA-256 (hex) of a content's JSON with sorted keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def seeded(
    settings: SamplingSettings,
    messages: Sequence[Mapping[str, object]],
    *,
    seed: int | None,
    role: Role,
    attempt: int,
) -> SamplingSettings:
    """The settings with a seed of this request's own: other content, roles and attempts get other seeds.

    Without any seed they are returned as they are. A seed of their own is kept for the first attempt, whose
    number is 0, and gives later ones others, so that a retry is a fresh sample.
    """
    if seed is None and (settings.seed is None or attempt == 0):
        return settings
    content = json.dumps([settings.seed if seed is None else seed, role, attempt, list(messages)])
    digest = hashlib.sha256(content.encode()).digest()[:_SEED_BYTES]
    return settings.model_copy(update={"seed": int.from_bytes(digest) & _SEED_MASK})
