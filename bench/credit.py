"""What a Checker's turns are paid under each credit, held against the truth that a world knows.

    python -m bench credit --data RUN [--data RUN ...]

Reads the rollouts of trainings on a world with known answers. What a turn is paid is the trainer's own
(`reward.roles.checker.own_rewards`, `pipeline.training.credit.turn_reward`), by the settings of the run's
audit. Counted are the turns on answers with one claim to queries that the documents answer, so that a turn is
one vote. It is right if it says the asked fact: if the answer is right, what bears its claim out is; if the
consensus is right, what equals it is; where neither is, a vote for one of them is wrong, and of others nobody
knows.

`correlation` is that of pay and truth within the turns on one query's answers, which is what moves the
Checker where those are each other's baseline (`rloo`).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measure import write_result
from pipeline.record.rollout_files import read_rollouts
from pipeline.record.rollout_record import turn_reward
from pipeline.record.rollout_rows import RolloutRow
from pipeline.settings.ppo import CheckerCredit
from reward.claims import target_of
from reward.config import AuditConfig
from reward.judging.coverage import CoveredClaim
from reward.judging.vote import gives_majority
from reward.roles.checker import OwnRewards, Round, own_rewards
from reward.types import Answer, Role, Trajectory


@dataclass(frozen=True)
class Turn:
    """One voter's turn on one answer."""

    query: tuple[str, str]  # the file and the id: the answers to one query of one step
    paid: dict[CheckerCredit, float | None]
    is_right: bool


def run(runs: Sequence[Path] = ()) -> None:
    """Writes `bench/results/credit.json`.

    Raises:
        ValueError: no run is named, or none has a turn to count.
    """
    if not runs:
        print("credit: left out; name the runs of trainings on a world: --data RUN")
        return
    turns = [turn for run in runs for turn in turns_of(run)]
    if not turns:
        raise ValueError(f"--data: no turns with a known truth in {', '.join(map(str, runs))}")
    found = {credit.value: figures(turns, credit) for credit in CheckerCredit}
    for name, one in found.items():
        print(name, one)
    kept = {"votes": len(turns), "credits": found}
    write_result("credit", samples_s={}, figures=kept, data=[run.name for run in runs])


def turns_of(run: Path) -> Iterator[Turn]:
    """The turns of a run whose truth is known."""
    recipe = json.loads((run / "run.json").read_text(encoding="utf-8"))["recipe"]
    config = AuditConfig.model_validate(recipe["audit"])
    for file in sorted(run.glob("rollouts/step-*.parquet")):
        for row in read_rollouts(file):
            num_claims, num_voted = len(row.verdict.claims), len(row.verdict.voted_claims)
            if row.oracle is not None and row.oracle.answerable and num_claims == num_voted == 1:
                yield from _turns(row, (f"{run}/{file.name}", row.query_id), config)


def _turns(row: RolloutRow, query: tuple[str, str], config: AuditConfig) -> Iterator[Turn]:
    (found,) = row.verdict.claims
    asked = CoveredClaim(found.claim, target_of(found.claim))
    votes = tuple((vote,) for vote in found.votes)
    own = own_rewards(Round((asked,), votes, groups=(), first_voters=(), unread=row.verdict.unread), config)
    gives = gives_majority(found.votes, asked.target)
    for vote, rewards, gives_consensus in zip(found.votes, own, gives, strict=True):
        is_right = _is_right(row, vote, rewards, gives_consensus=gives_consensus)
        if is_right is not None:
            # As the trainer has it, without its tokens, which no file of rollouts holds.
            turn = Trajectory(
                role=Role.CHECKER,
                prompt_token_ids=(0,),
                response_token_ids=(0,),
                finish_reason="stop",
                own_reward=rewards.reward,
                undisputed_reward=rewards.undisputed,
                answer_rewards=rewards.answers,
            )
            paid = {credit: turn_reward(turn, row.verdict, credit) for credit in CheckerCredit}
            yield Turn(query, paid, is_right)


def _is_right(row: RolloutRow, vote: Answer | None, own: OwnRewards, *, gives_consensus: bool) -> bool | None:
    if vote is None or own.reward is None or row.oracle is None:
        return None
    bears_out = own.reward == 0
    if row.oracle.faithful:
        return bears_out
    if row.oracle.num_consensus_right:
        return gives_consensus
    return False if bears_out or gives_consensus or vote.value is None else None


def figures(turns: Sequence[Turn], credit: CheckerCredit) -> dict[str, float]:
    """How often a credit pays right and wrong turns, and how pay and truth go together."""
    counts: Counter[tuple[bool, bool]] = Counter()
    by_query: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for turn in turns:
        paid = turn.paid[credit]
        if paid is not None:
            counts[paid == 0, turn.is_right] += 1
            by_query[turn.query].append((paid, float(turn.is_right)))
    centred = np.concatenate([np.array(rows) - np.mean(rows, axis=0) for rows in by_query.values()])
    return {
        "paid_right": counts[True, True],
        "paid_wrong": counts[True, False],
        "refuted_right": counts[False, True],
        "refuted_wrong": counts[False, False],
        "not_trained": len(turns) - sum(counts.values()),
        "correlation": round(float(np.corrcoef(centred.T)[0, 1]), 3),
    }
