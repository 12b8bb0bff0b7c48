"""Settings of the audit and of its samplers. A default is vetted; unknown keys are refused."""

from enum import StrEnum
from types import UnionType
from typing import Annotated, Literal, Self, Union, get_args, get_origin
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from reward.locales import AUTO, usual_of

_Reward = Annotated[float, Field(ge=-1, le=0)]
_Seed = Annotated[int | None, Field(ge=0, lt=2**62)]
_KindName = Literal["number", "name", "date"]


class Settings(BaseModel):
    """A frozen part of a configuration tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, given: object) -> object:
        for key, value in given.items() if isinstance(given, dict) else ():
            field = cls.model_fields.get(key)
            if isinstance(value, bool) and field is not None and _is_number(field.annotation):
                raise ValueError(f"{key}: {str(value).lower()} is no number; write one")
        return given


def _is_number(annotation: object) -> bool:
    """Whether a field takes numbers, and not true and false as well."""
    choices = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return any(one in (int, float) for one in choices) and bool not in choices


class SamplingSettings(Settings):
    """How a role is sampled."""

    temperature: float = Field(default=0.6, ge=0, le=2, description="0.6 in the paper (Table 6).")
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1, description="The likeliest tokens alone; None: all.")
    max_tokens: int = Field(default=2048, ge=1, le=131_072, description="Most tokens of one completion.")
    seed: _Seed = Field(default=None, description="Same seed, prompt and model: the same completions.")


class Structured(StrEnum):
    """Which roles the sampler constrains to their output format, so that what they write always parses."""

    NONE = "none"
    PROPOSER = "proposer"  # in training: the trained Checker must stay free
    ALL = "all"  # in audits


class UncoveredPolicy(StrEnum):
    """What a number of the response that no claim covers does to the verdict, once no retry is left."""

    REFUTE = "refute"  # zero tolerance: an unchecked number is an unsupported number
    UNSCORED = "unscored"  # the Proposer failed, so say nothing
    IGNORE = "ignore"  # the paper's own reward; invites "less said, less leaked"


class RewardFunction(StrEnum):
    """What the claims of a response are worth together; the paper compares both (section 3.4)."""

    ZERO_TOLERANCE = "ztr"  # section 2.3: one unsupported claim costs all
    ERROR_RATE = "error_rate"  # minus the share of unsupported claims


class CheckName(StrEnum):
    """Optional checks of the audit without a model, for documents of one layout (`reward/checks/`)."""

    OPENING_HOURS = "opening_hours"  # a table of weekdays and hours
    RATINGS = "ratings"  # fields of stars and reviews
    YES_NO_FIELDS = "yes_no_fields"  # fields that are true, false or null


def _one_as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class AuditConfig(Settings):
    """One audit: the prompts, the voters, the guards and the reward."""

    kinds: Annotated[tuple[_KindName, ...], BeforeValidator(_one_as_list)] = Field(
        default=("number", "name", "date"),
        min_length=1,
        description="Kinds of claims that are checked. Without date, dates are numbers; the paper has "
        "[number].",
    )
    prompts: str = Field(default="full", description='"full", "compact", or the path of a file like them.')
    proposer: SamplingSettings = SamplingSettings()
    checker: SamplingSettings = SamplingSettings()
    voters: int = Field(default=3, ge=1, le=15, description="Independent Checker samples; odd; paper: 3.")
    min_valid_voters: int | None = Field(default=None, ge=1, description="Fewest a claim; None: majority.")
    proposer_retries: int = Field(default=1, ge=0, le=5, description="Samples after an unusable claim list.")
    min_claims: int = Field(
        default=3,
        ge=1,
        le=512,
        description="With fewer usable claims than this, and than numbers in the response, the Proposer is "
        "asked again; then `uncovered` decides, and with `ignore` the audit is UNSCORED (too_few_claims). "
        "The paper's k = 3 (Appendix, reward hacking).",
    )
    max_claims: int = Field(default=64, ge=1, le=512, description="More make the audit UNSCORED.")
    uncovered: UncoveredPolicy = UncoveredPolicy.REFUTE
    coverage_penalty: float = Field(
        default=0.0,
        ge=0,
        description="Times the share of uncovered numbers, taken off the reward, with uncovered: ignore; "
        "never below reward_refuted.",
    )
    number_words: bool = Field(
        default=True, description='Whether numbers in words ("four hundred", "a dozen") must be checked, too.'
    )
    locale: str = Field(
        default="auto",
        description='How texts write "1.500" and "5/3/2021" where they do not show it: "en-US", "de".',
    )
    relative_tolerance: float = Field(
        default=0.0, ge=0, lt=1, description="Two values this close are the same; never for years or codes."
    )
    checks: tuple[CheckName, ...] = Field(
        default=(),
        description="What the audit without a model asks beside looking up, for documents of one layout.",
    )
    early_stop: bool = Field(
        default=False,
        description="Ask a bare majority of the voters first, the others only if a claim is open.",
    )
    structured: Structured = Structured.NONE
    thinking: bool = Field(
        default=False,
        description='What is before the first "</think>" of a turn is thought: it is neither audited nor '
        "shown to another role. Only for a model that is served with its thought hidden.",
    )
    max_prompt_tokens: int | None = Field(
        default=None,
        ge=64,
        description="Longer Checker prompts are split: the documents in parts, each with all questions.",
    )
    max_parts: int = Field(
        default=8, ge=1, le=64, description="Most parts; what is beyond is unread, and the verdict says so."
    )
    seed: _Seed = Field(default=None, description="Makes a verdict repeatable; none in training.")
    verbatim_evidence: bool = Field(
        default=False,
        description='A number whose evidence is in no document verbatim counts as "cannot answer".',
    )
    reward_function: RewardFunction = Field(
        default=RewardFunction.ZERO_TOLERANCE,
        description="ztr, or error_rate: from reward_supported down to reward_refuted with the share of "
        "errors (`reward.judging.vote.error_count`).",
    )
    refute_without_claims: bool = Field(
        default=False,
        description="Whether an answer without any usable claim, by the Proposer's fault, is REFUTED by what "
        "a lookup refutes, and UNSCORED else. Not with error_rate, which needs to know all claims.",
    )
    refute_by_lookup: tuple[_KindName, ...] = Field(
        default=(),
        description="Kinds of what a lookup refutes whatever the voters say, asked about or not, and also "
        "kinds that are not in `kinds`.",
    )
    refute_unanswerable: bool = Field(
        default=True, description="Whether a query that is known to be unanswerable decides its verdict."
    )
    refute_other_counts: bool = Field(
        default=True,
        description="Whether an answer that counts something else than its query asks, and a document "
        "counts, is REFUTED though its claims are true (`reward.judging.query`).",
    )
    refute_unreadable: bool = Field(
        default=True,
        description="Whether a Checker's turn that ends without an answer to each question is paid as "
        "refuted; else it is not trained, and not to answer is a way out.",
    )
    reward_supported: _Reward = 0.0
    reward_refuted: _Reward = -1.0
    reward_no_claims: _Reward | None = Field(
        default=None,
        description="Of an answer with nothing to check; None: no reward, and a training masks it.",
    )
    reward_abstention: _Reward | None = Field(
        default=None, description="Of an answer that only says that the documents do not say; None as above."
    )
    reward_right_abstention: _Reward | None = Field(
        default=None, description="The same where the query is known to be unanswerable; None as above."
    )
    max_response_chars: int = Field(default=100_000, ge=1)
    max_query_chars: int = Field(
        default=20_000,
        ge=1,
        description="About 5,000 tokens; the names and numbers of more take over a second.",
    )
    max_documents_chars: int = Field(
        default=500_000,
        ge=1,
        description="All documents of a query together, about 125,000 tokens; more can take over a second to "
        "read for the first time.",
    )
    max_document_numbers: int = Field(
        default=12_000, ge=1, description="In all documents together; more take over a second to read."
    )

    @field_validator("locale")
    @classmethod
    def _locale_is_known(cls, locale: str) -> str:
        if locale != AUTO:
            usual_of(locale)
        return locale

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        if self.voters % 2 == 0:
            raise ValueError(f"voters: {self.voters} is even, so votes can tie; use {self.voters + 1}")
        if self.min_valid_voters is not None and self.min_valid_voters > self.voters:
            raise ValueError(
                f"min_valid_voters: {self.min_valid_voters} exceeds voters: {self.voters}; lower it"
            )
        if self.thinking and self.structured is not Structured.NONE:
            raise ValueError(
                f"structured: {self.structured} does not fit thinking: true, since a grammar binds a turn "
                "from its first token and leaves no thought; set structured: none, or thinking: false"
            )
        if not self.reward_refuted < self.reward_supported:
            raise ValueError("reward_refuted: must be below reward_supported")
        for name in ("kinds", "refute_by_lookup"):
            if len(set(kinds := getattr(self, name))) < len(kinds):
                raise ValueError(f"{name}: {list(kinds)} names a kind twice; leave it out once")
        for name in ("reward_no_claims", "reward_abstention", "reward_right_abstention"):
            reward = getattr(self, name)
            if reward is not None and reward > self.reward_supported:
                raise ValueError(
                    f"{name}: {reward} exceeds reward_supported: {self.reward_supported}; lower it, since "
                    "saying nothing is never paid better than a supported answer"
                )
        return self

    @property
    def num_valid_voters_needed(self) -> int:
        """Fewest readable votes that decide a claim."""
        return self.min_valid_voters if self.min_valid_voters is not None else self.voters // 2 + 1

    @property
    def num_first_voters(self) -> int:
        """Voters who are asked at once: all of them, or with `early_stop` the fewest that can decide."""
        fewest = max(self.voters // 2 + 1, self.num_valid_voters_needed)
        return fewest if self.early_stop else self.voters


def bare_url(url: str) -> str:
    """An address without what may be secret in it: user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")).rstrip("/")


class OpenAISamplerConfig(Settings):
    """One or several OpenAI-compatible servers of the same model, such as `vllm serve`.

    With a seed, a vLLM server without a GPU needs `--no-enable-chunked-prefill`: 0.29.0 dies of a seeded
    request whose prompt it reads in chunks.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # an address may hold credentials

    kind: Literal["openai"] = "openai"
    base_urls: Annotated[tuple[str, ...], BeforeValidator(_one_as_list)] = Field(
        min_length=1,
        validation_alias=AliasChoices("base_urls", "base_url"),
        description="With the version, e.g. http://127.0.0.1:8000/v1; the least busy is asked, and the next "
        "one when it fails. For one server, `base_url` does, too. What is secret in it (user, password, "
        "query) is sent to that server and shown nowhere.",
    )
    model: str
    api_key_env: str = Field(default="OPENAI_API_KEY", description="Variable that holds the key, if any.")
    timeout_s: float = Field(
        default=120.0,
        gt=0,
        description="For n completions of a prompt, with waiting, retries and failing over.",
    )
    max_retries: int = Field(default=3, ge=0, le=10, description="Rounds over the servers after the first.")
    cool_down_s: float = Field(
        default=10.0, ge=0, description="How long a server that failed is avoided before it is tried again."
    )

    @field_validator("base_urls")
    @classmethod
    def _urls_are_usable(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"base_urls: {bare_url(url)!r} is no address; write http://host:port/v1")
        names = [bare_url(url) for url in urls]
        if len(set(names)) < len(names):
            raise ValueError(f"base_urls: {names} names a server twice; leave it out once")
        return tuple(url.rstrip("/") for url in urls)


class RaySamplerConfig(Settings):
    """The live rollout engines of a training run, over Ray: every role is the current policy."""

    kind: Literal["ray"] = "ray"
    address: str = Field(description="Address of the Ray cluster, e.g. 127.0.0.1:6379")
    namespace: str = "march"
    registry: str = Field(default="march-engines", description="Named actor that hands out engines.")
    tokenizer: str = Field(description="Folder or name of the policy's tokenizer.")
    max_model_len: int = Field(ge=2, description="Prompt and completion together, in tokens.")
    timeout_s: float = Field(
        default=120.0, gt=0, description="For one generation of a found run; a sleeping engine never answers."
    )


class LocalSamplerConfig(Settings):
    """vLLM inside this process."""

    kind: Literal["vllm"] = "vllm"
    model: str = Field(description="Folder or name of a Hugging Face model.")
    max_model_len: int | None = Field(default=None, ge=2)
    dtype: Literal["bfloat16", "float16", "float32"] | None = Field(
        default=None,
        description="Of the weights; None takes bfloat16 with a GPU, and float32 without one: most CPUs only "
        "emulate bfloat16, at a tenth of the speed, but it takes half the memory.",
    )
    seed: int = 0
    timeout_s: float = Field(
        default=600.0, gt=0, description="For n completions, without the engine's start."
    )


SamplerConfig = OpenAISamplerConfig | RaySamplerConfig | LocalSamplerConfig
