"""What a Checker's votes are paid under each credit, held against the truth that a world knows.

    python -m bench credit --data RUN [--data RUN ...]

Reads the rollouts of trainings on a world with known answers. Counted are the votes on answers with one claim
to queries that the documents answer. A vote is right if it says the asked fact: if the answer is right, what
bears its claim out is; if the consensus is right, what equals it is; where neither is, a vote for one of
them is wrong, and of others nobody knows.

`correlation` is that of pay and truth within the votes on one query's answers, which is what moves the
Checker where those are each other's baseline (`rloo`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measure import write_result
from pipeline.record.rollout_files import read_rollouts
from reward.claims import target_of
from reward.judging.vote import gives_majority, vote
from reward.types import ClaimState


@dataclass(frozen=True)
class Vote:
    """One vote on one claim."""

    query: tuple[str, str]
    bears_out: bool
    disputes: bool  # gives the answer by which the majority contradicts the claim
    is_supported: bool  # the claim, by all votes
    is_right: bool


CREDITS: dict[str, Callable[[Vote], float | None]] = {
    "answer": lambda one: 0.0 if one.is_supported else -1.0,
    "vote": lambda one: 0.0 if one.bears_out else -1.0,
    "undisputed_vote": lambda one: None if one.disputes else 0.0 if one.bears_out else -1.0,
}


def run(runs: Sequence[Path] = ()) -> None:
    """Writes `bench/results/credit.json`.

    Raises:
        ValueError: no run is named, or none has a vote to count.
    """
    if not runs:
        print("credit: left out; name the runs of trainings on a world: --data RUN")
        return
    votes = [one for run in runs for one in _votes(run)]
    if not votes:
        raise ValueError(f"--data: no votes with a known truth in {', '.join(map(str, runs))}")
    found = {name: _of_credit(votes, pay) for name, pay in CREDITS.items()}
    for name, figures in found.items():
        print(name, figures)
    arguments = [word for run in runs for word in ("--data", run.name)]
    write_result("credit", samples_s={}, figures={"votes": len(votes), "credits": found}, arguments=arguments)


def _votes(run: Path) -> Iterator[Vote]:
    for file in sorted(run.glob("rollouts/step-*.parquet")):
        for rollout in read_rollouts(file):
            verdict, truth = rollout.verdict, rollout.oracle
            if truth is None or truth.answerable is False or len(verdict.claims) != 1:
                continue
            (one,) = verdict.claims
            majority = gives_majority(one.votes, target_of(one.claim))
            for given, gives in zip(one.votes, majority, strict=True):
                if given is None:
                    continue
                bears_out = vote(one.claim, [given], num_valid_needed=1).state is ClaimState.SUPPORTED
                if truth.faithful:
                    right: bool | None = bears_out
                elif truth.num_consensus_right:
                    right = gives
                else:
                    right = False if bears_out or gives or given.value is None else None
                if right is not None:
                    disputes = gives and one.state is ClaimState.CONTRADICTED
                    query = (f"{run}/{file.name}", rollout.query_id)
                    yield Vote(query, bears_out, disputes, one.state is ClaimState.SUPPORTED, right)


def _of_credit(votes: Sequence[Vote], pay: Callable[[Vote], float | None]) -> dict[str, float]:
    counts: Counter[tuple[bool, bool]] = Counter()
    by_query: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in votes:
        paid = pay(one)
        if paid is not None:
            counts[paid == 0, one.is_right] += 1
            by_query[one.query].append((paid, float(one.is_right)))
    centred = np.concatenate([np.array(rows) - np.mean(rows, axis=0) for rows in by_query.values()])
    return {
        "paid_right": counts[True, True],
        "paid_wrong": counts[True, False],
        "refuted_right": counts[False, True],
        "refuted_wrong": counts[False, False],
        "not_trained": len(votes) - sum(counts.values()),
        "correlation": round(float(np.corrcoef(centred.T)[0, 1]), 3),
    }
