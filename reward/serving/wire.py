"""What crosses the reward server's wire, in OpenRLHF's form and in our own, and pure functions between them.

OpenRLHF 0.11.2 posts one sample a request, `{"query": [text], "prompts": [text], "labels": [label]}`: the
query is the prompt and the response decoded together, end token included; the label is whatever the data
set holds, here the JSON of a `RagQuery`. It takes `rewards` as a scalar and makes tensors of `extra_logs`,
which must always have the same keys. Several samples in one request get lists.
"""

import re
from collections.abc import Sequence
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from reward.problems import problems
from reward.serving.config import AuditOverrides, InvalidRequest, RequestLimits
from reward.types import AuditResult, Outcome, RagQuery, Record, Verdict

_LIMITS = RequestLimits()
_MOST_ERROR_CHARS = 500
_MOST_PROBLEMS = 2_000  # more are only counted: each one that is shown costs a kilobyte
_STRINGS = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"?', re.DOTALL)

_M = TypeVar("_M", bound=BaseModel)


class AuditRequest(Record):
    """Body of `POST /v1/audit`; the answer is an `AuditResult`."""

    query: RagQuery
    response: str = Field(description="What is audited, without the prompt.")
    overrides: AuditOverrides | None = Field(
        default=None, description="Settings for this audit alone, within the server's bounds."
    )
    include_trajectories: bool = Field(default=False, description="Give the token records of all turns, too.")


class BatchRequest(Record):
    """Body of `POST /v1/audits`; each audit is read for itself, so a malformed one fails alone."""

    audits: tuple[dict[str, JsonValue], ...] = Field(min_length=1, description="Each an `AuditRequest`.")


class ErrorReply(Record):
    """Body of every answer that is no success."""

    detail: str = Field(description="What is wrong and how to fix it, in one line.")
    reason: str | None = Field(default=None, description="In one word, where one is known.")
    id: str | None = Field(default=None, description="The query's, of an audit without a reward.")
    status: int | None = Field(default=None, description="HTTP's; of an entry of a batch.")
    retry_after_s: int | None = Field(default=None, description="When to ask again; of an entry of a batch.")


class BatchEntry(Record):
    """One audit of a batch: its result, UNSCORED ones too, or why there is none."""

    result: AuditResult | None = None
    error: ErrorReply | None = None


class BatchReply(Record):
    """Answer of `POST /v1/audits`, in the order of the request."""

    entries: tuple[BatchEntry, ...]


class RewardRequest(BaseModel):
    """Body of `POST /get_reward` as OpenRLHF sends it; keys of other versions are ignored."""

    model_config = ConfigDict(frozen=True)

    query: tuple[str, ...] = Field(min_length=1, description="Prompt and response together, one a sample.")
    prompts: tuple[str, ...]
    labels: tuple[str, ...] = Field(description="The JSON of each sample's `RagQuery`.")

    @model_validator(mode="after")
    def _lists_are_equally_long(self) -> Self:
        lengths = [len(self.query), len(self.prompts), len(self.labels)]
        if len(set(lengths)) != 1:
            raise ValueError(f"query, prompts and labels have {lengths} items; send one of each a sample")
        return self


class RewardReply(Record):
    """Answer of `POST /get_reward`: scalars for one sample, lists for several."""

    rewards: float | list[float]
    scores: float | list[float]
    extra_logs: dict[str, float] | dict[str, list[float]]


def read_record(model: type[_M], data: bytes | str | dict[str, JsonValue]) -> _M:
    """The record that JSON, or what was read of it, holds.

    Raises:
        InvalidRequest: it is no JSON or not of the model's form. The line names the first problem and the
            number of others, and leaves the input out, which may be large.
    """
    try:
        return model.model_validate(data) if isinstance(data, dict) else model.model_validate_json(data)
    except ValidationError as error:
        if (num := error.error_count()) > _MOST_PROBLEMS:
            raise InvalidRequest(f"{num} problems; send what GET /openapi.json describes") from None
        problem, *others = problems(error)
        where = _short(".".join(str(part) for part in problem["loc"]))
        text = _short(problem["msg"])
        more = f" (and {len(others)} more)" if others else ""
        line = " ".join(f"{where}: {text}{more}".split()).removeprefix(": ")
        # The place may hold a key of the input, and that half a surrogate pair.
        raise InvalidRequest(line.encode(errors="backslashreplace").decode()) from error


def check_values(data: bytes, field: str, limits: RequestLimits) -> None:
    """Raises `InvalidRequest` when JSON holds more values than it may; it is counted before it is read."""
    if _num_values(data) <= limits.max_values:  # commas and brackets of texts, too, which are fewer mostly
        return
    # A value or a key has a comma or a bracket before it, so that twice as many texts are too many as well.
    num = _num_values(_STRINGS.sub(b"", data, count=2 * limits.max_values + 2))
    if num > limits.max_values:
        raise InvalidRequest(f"{field}: over max_values {limits.max_values} JSON values; send fewer at once")


def _num_values(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_ERROR_CHARS else f"{text[:_MOST_ERROR_CHARS]}..."


def read_samples(
    request: RewardRequest, *, strip_suffixes: Sequence[str], limits: RequestLimits = _LIMITS
) -> list[tuple[RagQuery, str]]:
    """Each sample's query and response.

    Raises:
        InvalidRequest: a label is no `RagQuery`, a query does not begin with its prompt, or there are too
            many samples or documents.
    """
    if len(request.query) > limits.max_samples:
        raise InvalidRequest(f"query: {len(request.query)} samples; send max_samples {limits.max_samples}")
    samples = []
    for i, label in enumerate(request.labels):
        check_values(label.encode(errors="replace"), f"labels[{i}]", limits)
        query = _read_label(label, f"labels[{i}]")
        check_documents(query, f"labels[{i}]", limits)
        response = _read_response(request.query[i], request.prompts[i], f"query[{i}]", strip_suffixes)
        samples.append((query, response))
    return samples


def check_documents(query: RagQuery, field: str, limits: RequestLimits) -> None:
    """Raises `InvalidRequest` when a query has more documents than it may."""
    if (num := len(query.documents)) > limits.max_documents:
        line = f"{field}: documents: {num} of them; send at most max_documents {limits.max_documents}"
        raise InvalidRequest(line)


def _read_label(label: str, field: str) -> RagQuery:
    try:
        return read_record(RagQuery, label)
    except InvalidRequest as error:
        fix = "put the JSON of a RagQuery (id, query, documents) into the data set's label column"
        raise InvalidRequest(f"{field}: {error}; {fix}") from error


def _read_response(query: str, prompt: str, field: str, strip_suffixes: Sequence[str]) -> str:
    if not query.startswith(prompt):
        fix = "raise the prompt's length limit (a cut prompt hides documents) or fix the tokenizer"
        raise InvalidRequest(f"{field}: does not begin with its prompt; {fix}")
    start, end = len(prompt), len(query)
    while suffix := next((s for s in strip_suffixes if s and query.endswith(s, start, end)), None):
        end -= len(suffix)
    return query[start:end]


def reward_reply(verdicts: Sequence[Verdict], *, without_claims: float) -> RewardReply:
    """The rewards of scored verdicts.

    Args:
        verdicts: One a sample.
        without_claims: Of an answer without claims, where the audit gives it none: this wire needs a number,
            as OpenRLHF's stock trainer cannot mask an answer. Our own trainer reads verdicts and masks it.

    Raises:
        ValueError: a verdict is UNSCORED, and a failure never becomes a reward.
    """
    rewards = [_reward(verdict, without_claims) for verdict in verdicts]
    logs = [_extra_logs(verdict) for verdict in verdicts]
    if len(verdicts) == 1:
        return RewardReply(rewards=rewards[0], scores=rewards[0], extra_logs=logs[0])
    listed = {key: [log[key] for log in logs] for key in logs[0]}
    return RewardReply(rewards=rewards, scores=rewards, extra_logs=listed)


def _reward(verdict: Verdict, without_claims: float) -> float:
    if verdict.outcome is Outcome.NO_CLAIMS and verdict.reward is None:
        return without_claims
    if verdict.reward is None:
        raise ValueError(f"verdict {verdict.id!r} is UNSCORED ({verdict.reason}) and has no reward")
    return verdict.reward


def _extra_logs(verdict: Verdict) -> dict[str, float]:
    return {
        "audit_refuted": float(verdict.outcome is Outcome.REFUTED),
        "audit_no_claims": float(verdict.outcome is Outcome.NO_CLAIMS),
        "num_claims": float(len(verdict.claims)),
        "num_mentions": float(verdict.num_mentions),
        "num_uncovered": float(len(verdict.uncovered)),
    }
