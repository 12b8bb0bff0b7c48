"""What is settled about a step's answers before their rows are laid out: whose turns are whose, what is paid
for saying less, and which answers are too old.

`samples` are a step's answers, as `pipeline.training.experience.MarchSamplesGenerator` makes them.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median_low
from typing import Any

import torch

from reward.types import Outcome, Role


def share_turns(samples: Sequence[Any]) -> None:
    """Gives answers without a turn of a role one that an equal answer has to spare.

    Equal answers to a query share one audit under way; the reward server gives its turns to the answer that
    began it, and the verdict to all. Three voters took part, one voter's turn is trained, so the other two
    are there for the copies: without them a sure Solver, whose answers are mostly equal, would leave its
    Checker next to nothing to train on. Each turn is still trained once.
    """
    equal: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for sample in samples:
        equal[sample.rollout.query_id, sample.rollout.response].append(sample)
    for group in equal.values():
        for taker in group:
            for role in taker.turns:
                for giver in group:
                    _hand_over(giver, taker, role)


def _hand_over(giver: Any, taker: Any, role: Role) -> None:
    """One turn, to an answer of the same audit that has none."""
    spare = giver.rollout.spare_turns.get(role, ())
    is_of_this_audit = giver.rollout.verdict == taker.rollout.verdict
    if giver is taker or not spare or taker.rollout.turns.get(role) or not is_of_this_audit:
        return
    turn, rest = spare[0], spare[1:]
    taker.turns[role] = giver.spare[role].pop(0)
    versions = giver.rollout.weights_versions
    taker.rollout = taker.rollout.model_copy(
        update={
            "turns": taker.rollout.turns | {role: turn},
            "weights_versions": versions | taker.rollout.weights_versions,
        }
    )
    giver.rollout = giver.rollout.model_copy(update={"spare_turns": giver.rollout.spare_turns | {role: rest}})


def refuse_less(samples: Sequence[Any], *, reward: float) -> int:
    """Lowers the Solver's reward of answers that mention and claim less than the medians of their query's.

    Returns how many were lowered to `reward`, that of a refuted answer. What is too old to be trained is
    masked already.

    Zero tolerance pays for claims that are not made: an answer to half of a question has half the chances to
    be refuted. SmolLM2, trained without this, answered one of two facts after eighteen steps (docs/log.md).
    What most answers of a group mention is a measure that needs no label, and it does not fall while only
    some say less. The measure is of answers that are trained and claim something, and of two middle ones the
    smaller: a failed audit says nothing, and where half of the answers say more, the others do not say less.
    Claims are counted beside mentions, since mentions depend on the writing: "1883-07-10" has three parts,
    "July 10, 1883" two, and both are one claim. Refuted answers count with all that they mention, since they
    tried to answer the whole question. What is masked stays so, and only supported answers are lowered: a
    refuted answer is paid no worse, and an answer without a claim, an abstention above all, has settings of
    its own.
    """
    groups: dict[str, list[Any]] = defaultdict(list)
    for sample in samples:
        verdict = sample.rollout.verdict
        is_trained = verdict.reward is not None and bool(sample.action_mask.any())
        if is_trained and verdict.outcome is not Outcome.NO_CLAIMS:
            groups[sample.rollout.query_id].append(sample)
    num = 0
    for group in groups.values():
        verdicts = [sample.rollout.verdict for sample in group]
        mentions = median_low(one.num_mentions for one in verdicts)
        claims = median_low(len(one.claims) for one in verdicts)
        for sample, verdict in zip(group, verdicts, strict=True):
            says_less = verdict.num_mentions < mentions and len(verdict.claims) < claims
            if verdict.outcome is Outcome.SUPPORTED and says_less:
                sample.rewards = sample.rewards.new_full(sample.rewards.shape, reward)
                sample.rollout = sample.rollout.model_copy(update={"says_less": True})
                num += 1
    return num


def staleness(sample: Any, *, version: int) -> int:
    """Weight syncs since the oldest turn of an answer was sampled; 0 where nobody knows."""
    versions = [v for of_role in sample.rollout.weights_versions.values() for v in of_role]
    return version - min(versions, default=version)


def mask_stale(samples: list[Any], *, version: int, limit: int) -> int:
    """Masks the rows of answers older than `limit` weight syncs; returns how many of them had a reward.

    In asynchronous mode the engines answer while the actor trains. OpenRLHF's queue bounds how far they run
    ahead, and its lock keeps a batch, audits included, on one weights version; both are its own, so the
    trainer counts again. An answer too old is masked as an UNSCORED one is: it keeps its rows, and no figure
    of it becomes a reward.
    """
    stale = [sample for sample in samples if staleness(sample, version=version) > limit]
    for sample in stale:
        for row in [sample, *sample.turns.values()]:
            row.action_mask = torch.zeros_like(row.action_mask)
    return sum(sample.rollout.verdict.reward is not None for sample in stale)
