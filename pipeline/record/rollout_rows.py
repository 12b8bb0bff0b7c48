"""The rows of `rollouts/step-NNNNNN.parquet`: one answer each, with its verdict and the turns of it that were
trained.

A file holds the answers of one PPO step; its columns are the fields of `RolloutRow`, nested records as
structs, so that any reader of Parquet can ask it:

    duckdb -c "SELECT step, verdict.outcome, count(*) FROM 'runs/NAME/rollouts/*.parquet' GROUP BY ALL"

`SCHEMA_VERSION` is in each file's metadata under `march`, beside the step and the number of its answers;
it grows when a column changes its name or meaning. Token ids are left out: they are the policy's, and large.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipeline.record.rollout_record import OracleJudgement, RolloutRecord
from reward.types import Document, RagQuery, Record, Role, Verdict

if TYPE_CHECKING:
    from openrlhf.trainer.ppo_utils.experience import Experience

SCHEMA_VERSION = 2  # 1 had `verdict.num_numbers` for `num_mentions`


class RolloutTurn(Record):
    """One turn of an answer that has a row in the PPO buffer; fillers are none."""

    role: Role
    num_prompt_tokens: int
    num_response_tokens: int
    finish_reason: str = Field(description='"stop" when the model ended by itself, "length" when it was cut.')
    weights_version: int | None = Field(
        description="Count of weight syncs before it was sampled; None where the sampler does not say."
    )
    trained: bool = Field(description="False when it is masked, as that of an UNSCORED answer.")
    reward: float | None = Field(
        description="As paid, on the scale of `ppo.reward_scalars`; None when masked."
    )
    advantage: float | None = Field(
        description="Mean over its tokens, whitened, before the weights of the loss; None when masked."
    )


class RolloutRow(Record):
    step: int = Field(ge=1)
    place: int = Field(ge=1)  # among the answers of the step
    query_id: str
    query: str
    document_ids: tuple[str, ...]  # of those that the Solver was given
    documents_sha256: str  # names the set of them; equal in all answers to the same documents
    documents: tuple[Document, ...] | None = None  # once a file: at the first of the answers that share them
    response: str
    verdict: Verdict
    oracle: OracleJudgement | None = None
    turns: tuple[RolloutTurn, ...] = ()
    num_checker_turns: int = 0  # voters whose tokens came back
    audit_s: float = 0.0  # from the finished answer to its verdict


@dataclass(frozen=True)
class TrainedAnswer:
    label: str  # the `RagQuery`, as JSON
    record: RolloutRecord
    turns: Sequence[RolloutTurn]


def rollout_rows(answers: Sequence[TrainedAnswer], *, step: int) -> list[RolloutRow]:
    """Returns the rows of the answers of a step; equal documents stand in the first row only."""
    rows: list[RolloutRow] = []
    seen: set[str] = set()
    for place, answer in enumerate(answers, start=1):
        row = _row(answer, step=step, place=place)
        is_first = row.documents_sha256 not in seen
        seen.add(row.documents_sha256)
        rows.append(row if is_first else row.model_copy(update={"documents": None}))
    return rows


def _row(answer: TrainedAnswer, *, step: int, place: int) -> RolloutRow:
    query = RagQuery.model_validate_json(answer.label)
    texts = [document.model_dump_json() for document in query.documents]
    return RolloutRow(
        step=step,
        place=place,
        query_id=query.id,
        query=query.query,
        document_ids=tuple(document.id for document in query.documents),
        documents_sha256=hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        documents=query.documents,
        response=answer.record.response,
        verdict=answer.record.verdict,
        oracle=answer.record.oracle,
        turns=tuple(answer.turns),
        num_checker_turns=answer.record.num_checker_turns,
        audit_s=answer.record.audit_s,
    )


def answer_turns(
    records: Sequence[RolloutRecord], batches: Mapping[Role, Sequence[Experience]]
) -> list[tuple[RolloutTurn, ...]]:
    """Returns what each answer's turns brought: the Solver's, then those of the other trained roles.

    A role has a row of every answer, in their order, as `pipeline.training.experience` lays them out.
    """
    turns: list[list[RolloutTurn]] = [[] for _ in records]
    for role, role_batches in batches.items():
        for of_answer, record, figures in zip(turns, records, _row_figures(role_batches), strict=True):
            if (about := _about(record, role)) is not None:
                of_answer.append(RolloutTurn(role=role, **about, **figures))
    return [tuple(of_answer) for of_answer in turns]


def _about(record: RolloutRecord, role: Role) -> dict[str, Any] | None:
    """Lengths, end and weights of a role's turn; None for a filler."""
    if role is Role.SOLVER:
        return {
            "num_prompt_tokens": record.num_prompt_tokens,
            "num_response_tokens": record.num_response_tokens,
            "finish_reason": record.finish_reason,
            "weights_version": min(record.weights_versions.get(role, ()), default=None),
        }
    turn = record.turns.get(role)
    if turn is None:
        return None
    return {
        "num_prompt_tokens": len(turn.prompt_token_ids),
        "num_response_tokens": len(turn.response_token_ids),
        "finish_reason": turn.finish_reason,
        "weights_version": turn.weights_version,
    }


def _row_figures(batches: Sequence[Experience]) -> list[dict[str, Any]]:
    """What each row was paid; None where nothing is trained."""
    figures: list[dict[str, Any]] = []
    for batch in batches:
        nums = batch.action_mask.sum(dim=-1)  # (B,)
        means = (batch.advantages.float() * batch.action_mask).sum(dim=-1) / nums.clamp(min=1)
        for num, reward, mean in zip(nums.tolist(), batch.rewards.tolist(), means.tolist(), strict=True):
            paid = {"reward": reward, "advantage": mean} if num else {"reward": None, "advantage": None}
            figures.append({"trained": num > 0, **paid})
    return figures
