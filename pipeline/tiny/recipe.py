"""The two supervised stages of the tiny policy, as values: how it learns the task, then how it learns to err.

A policy that already solves its task cannot show that reinforcement fixes anything, so the second stage
trains on demonstrations with chosen errors: the Solver grows careless after its first item and takes the
near-duplicate's number.
"""

from dataclasses import dataclass
from typing import Literal

from pipeline.settings.worlds import PLAIN_WORLD, WorldSettings


@dataclass(frozen=True)
class Errors:
    """How often a demonstration is wrong on purpose; each figure is a probability for one item."""

    p_late: float = 0.0  # Solver: the near-duplicate's value, in items after the first
    p_early: float = 0.0  # the same, in the first item
    p_miscopy: float = 0.0  # Solver: one digit after the first, the last name or the day is another
    p_checker: float = 0.0  # Checker: the value of any fact of the documents that is of the same kind
    p_invent: float = 0.0  # Solver: other facts' values where the documents do not answer, a query
    p_abstain: float = 0.0  # Solver: an abstention though the documents answer, a query
    p_blind: float = 0.0  # Checker: "Cannot answer" though the documents answer


@dataclass(frozen=True)
class Stage:
    name: str
    seed: int
    num_steps: int
    optimiser: Literal["muon", "adamw"]  # muon: on the matrices, with AdamW on the rest
    lr: float  # AdamW's
    matrix_lr: float  # Muon's; unused with adamw
    warmup_steps: int
    decay_from: float  # share of the steps after which the rate falls in a straight line to a twentieth
    curriculum: bool  # few near-duplicates and no unrelated facts at first
    mix: tuple[float, float, float]  # weights of Solver, Proposer and Checker demonstrations
    errors: Errors
    batch_size: int = 32
    world: WorldSettings = PLAIN_WORLD  # of the demonstrations


BASE = Stage(
    name="base",
    seed=0,
    num_steps=900,
    optimiser="muon",
    lr=2e-3,
    matrix_lr=0.01,
    warmup_steps=30,
    decay_from=0.6,
    curriculum=True,
    mix=(0.35, 0.2, 0.45),
    errors=Errors(),
)

ERRORS = Stage(
    name="errors",
    seed=7,
    num_steps=160,
    optimiser="adamw",
    lr=5e-4,
    matrix_lr=0.0,
    warmup_steps=10,
    decay_from=0.0,
    curriculum=False,
    mix=(0.4, 0.2, 0.4),
    errors=Errors(p_late=0.65, p_early=0.08, p_miscopy=0.03, p_checker=0.05),
)
