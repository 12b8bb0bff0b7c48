"""Settings of the reward server, and what one request may change of its audit's (`reward.config`).

A request of `/v1/audit` may override settings of the audit itself: never prompts, sampling, rewards or the
limits on length. The trainer's `/get_reward` takes no overrides, so a training's reward has one meaning.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from reward.config import AuditConfig, SamplerConfig, Settings, UncoveredPolicy
from reward.types import Record


class NoSampler(Settings):
    """No model: each claim is looked up in the documents, as `march audit` does by default."""

    kind: Literal["lexical"] = "lexical"


class Quota(Settings):
    """What one token may take of the server, so that no caller fills it alone."""

    in_flight: int | None = Field(
        default=None,
        ge=1,
        description="Audits under way and waiting. None: all that the server takes, or three quarters of it "
        "where `tokens_file` names several callers.",
    )


Weakenable = Literal[
    "voters",
    "min_valid_voters",
    "early_stop",
    "verbatim_evidence",
    "uncovered",
    "min_claims",
    "max_claims",
    "relative_tolerance",
    "kinds",
]


class OverrideBounds(Settings):
    """How far a request may change the server's own audit settings: to stricter ones, unless said here."""

    may_weaken: tuple[Weakenable, ...] = Field(
        default=(), description="Settings that a request may also make weaker than the server's."
    )


class TlsConfig(Settings):
    """The server's certificate; PEM files."""

    cert: Path = Field(description="The server's certificate and its chain.")
    key: Path = Field(description="The certificate's key, without a password.")
    client_ca: Path | None = Field(
        default=None, description="Clients must show a certificate that one of these signed (mutual TLS)."
    )


class RequestLimits(Settings):
    """What a caller may send and for how long, beside `max_body_bytes`."""

    max_connections: int = Field(default=8192, ge=1, description="Open at once; one more is answered 503.")
    max_header_bytes: int = Field(default=16_384, ge=1024, description="Path and headers together; else 431.")
    header_timeout_s: float = Field(default=20.0, gt=0, description="For a request's headers; else 408.")
    body_timeout_s: float = Field(default=30.0, gt=0, description="For a request's whole body; else 408.")
    stall_timeout_s: float = Field(
        default=30.0, gt=0, description="A client that takes nothing of its answer for so long is cut off."
    )
    max_samples: int = Field(default=256, ge=1, description="Samples of one /get_reward; more are a 422.")
    max_documents: int = Field(default=1024, ge=1, description="Documents of one query; more are a 422.")
    max_batch: int = Field(default=64, ge=1, description="Audits of one /v1/audits; more are a 422.")
    max_values: int = Field(
        default=100_000,
        ge=1000,
        description="JSON values of one body, which may take a hundred times their bytes once they are read; "
        "more are a 422.",
    )


class ServerConfig(Settings):
    """The reward server.

    Secrets are no settings: one token comes from the environment variable MARCH_REWARD_TOKEN, further ones as
    hashes in a file, and the key that signs answers from MARCH_SIGNING_KEY.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=5001, ge=1, le=65_535)
    tokens_file: Path | None = Field(
        default=None, description="More tokens, as `name: sha256-hex` lines, read again when it changes."
    )
    tls: TlsConfig | None = Field(default=None, description="HTTPS; plain HTTP by default.")
    limits: RequestLimits = RequestLimits()
    audit: AuditConfig = AuditConfig()
    overrides: OverrideBounds = Field(
        default=OverrideBounds(), description="What a request of /v1/audit may change; /get_reward never may."
    )
    sampler: SamplerConfig | NoSampler = Field(discriminator="kind")
    deadline_s: float = Field(
        default=150.0,
        gt=0,
        le=3600,
        description="For one audit. OpenRLHF's stock client waits 180 s for an answer; `march train` as long "
        "as it takes.",
    )
    ready_within_s: float | None = Field(
        default=None,
        gt=0,
        description="The server ends with an error if it was not ready by then; None: it waits on.",
    )
    max_in_flight: int = Field(default=512, ge=1, description="Audits that ask the sampler at once.")
    max_waiting: int = Field(
        default=4096,
        ge=0,
        description="Audits that wait for a place; more are answered 503 with Retry-After.",
    )
    quota: Quota = Field(default=Quota(), description="Of each token; what is beyond is answered 429.")
    quotas: dict[str, Quota] = Field(default={}, description="By a token's name, in place of `quota`.")
    max_held_bytes: int = Field(
        default=1024**3,
        ge=1024,
        description="Bodies of all requests at once, as far as they have come; more are answered 503, and "
        "429 beyond three quarters of it for one of several callers.",
    )
    max_kept: int = Field(
        default=1024,
        ge=0,
        description="Verdicts of a frozen model that may be given again, some 50 KB each where an answer "
        "has many claims; 0 keeps none.",
    )
    drain_grace_s: float = Field(
        default=20.0,
        ge=0,
        description="How long SIGTERM waits for audits under way; `deadline_s` would see them all through.",
    )
    max_body_bytes: int = Field(default=16 * 1024**2, ge=1024)
    strip_suffixes: tuple[str, ...] = Field(
        default=("<|end|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"),
        description="End tokens that OpenRLHF's wire leaves at the end of a response.",
    )
    log_format: Literal["auto", "text", "json"] = Field(
        default="auto", description="Of the log on stderr: auto is text on a terminal, else JSON lines."
    )
    access_log: bool = Field(
        default=False, description="A line a request in that log, by uvicorn, with the client's address."
    )
    audit_log: Path | None = Field(default=None, description="JSONL of every verdict given; none by default.")


class AuditOverrides(Record):
    """Settings of `AuditConfig` for one request; what is left out stays as the server has it."""

    voters: int | None = Field(default=None, ge=1, le=9)
    min_valid_voters: int | None = Field(default=None, ge=1)
    early_stop: bool | None = None
    verbatim_evidence: bool | None = None
    uncovered: UncoveredPolicy | None = None
    seed: int | None = Field(default=None, ge=0)
    min_claims: int | None = Field(default=None, ge=1, le=512)
    max_claims: int | None = Field(default=None, ge=1, le=128)
    relative_tolerance: float | None = Field(default=None, ge=0, lt=1)
    kinds: tuple[str, ...] | None = Field(default=None, min_length=1)


class InvalidRequest(ValueError):
    """A request cannot be answered as it is, now or later (422); one line: field, value and fix."""


_STRICTNESS = tuple(UncoveredPolicy(one) for one in ("ignore", "unscored", "refute"))  # rising
# Whether a value of a setting is at least as strict as the server's own.
_IS_AS_STRICT: Mapping[Weakenable, Callable[[Any, Any], bool]] = {
    "voters": lambda asked, own: asked >= own,
    "min_valid_voters": lambda asked, own: asked >= own,
    "early_stop": lambda asked, own: own or not asked,
    "verbatim_evidence": lambda asked, own: asked or not own,
    "uncovered": lambda asked, own: _STRICTNESS.index(asked) >= _STRICTNESS.index(own),
    "min_claims": lambda asked, own: asked >= own,
    "max_claims": lambda asked, own: asked <= own,
    "relative_tolerance": lambda asked, own: asked <= own,
    "kinds": lambda asked, own: set(asked) >= set(own),
}


def apply_overrides(
    config: AuditConfig, overrides: AuditOverrides | None, *, bounds: OverrideBounds
) -> AuditConfig:
    """The settings of one request.

    Raises:
        InvalidRequest: a value is weaker than the server's own, or the settings do not fit together.
    """
    changes = overrides.model_dump(exclude_none=True) if overrides else {}
    if not changes:
        return config
    if "voters" in changes and config.min_valid_voters is not None:
        changes = {"min_valid_voters": _votes_needed(config, changes["voters"]), **changes}
    try:
        changed = AuditConfig.model_validate({**config.model_dump(), **changes})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, ["overrides", *problem["loc"]]))
        text = problem["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"{where}: {text}" if problem["loc"] else f"overrides.{text}") from error
    for name in _IS_AS_STRICT.keys() & changes.keys() - set(bounds.may_weaken):
        asked, own = getattr(changed, name), getattr(config, name)
        if name == "min_valid_voters":
            own = _votes_needed(config, changed.voters)
        if not _IS_AS_STRICT[name](asked, own):
            raise InvalidRequest(
                f"overrides.{name}: {_shown(asked)} is weaker than this server's {_shown(own)}; "
                f"leave it out, or add {name} to overrides.may_weaken in its settings"
            )
    return changed


def _votes_needed(config: AuditConfig, voters: int) -> int:
    """Fewest readable votes of so many voters that are no smaller share of them than the server's own."""
    own = config.min_valid_voters
    return voters // 2 + 1 if own is None else max(own, math.ceil(own * voters / config.voters))


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
