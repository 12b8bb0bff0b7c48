"""What each role of the tiny policy should write: prompts and completions, with errors where wanted.

The prompts come from the same templates that rollouts and audits use (`reward/roles/prompts/compact.yaml`),
and the completions have the form that `reward.roles.formats` reads. Pure: chance comes from the generator that
is passed in.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.tiny.recipe import Errors, Stage
from pipeline.tiny.world import MARKERS, Fact, World, WorldSettings, sample_world
from reward.roles.prompts import PromptSet
from reward.samplers import Message
from reward.types import Role

Claimed = tuple[Fact, int]  # a fact and the number that is written for it
_PROPOSER_PRACTICE = Errors(
    p_late=0.3, p_early=0.3, p_miscopy=0.3
)  # it must copy what stands there, not the truth
_EASY = WorldSettings(unrelated=(0, 0), p_duplicate=0.3)
_MIDDLING = WorldSettings(p_duplicate=0.6)
_ROLES = (Role.SOLVER, Role.PROPOSER, Role.CHECKER)


@dataclass(frozen=True)
class Demonstration:
    """One turn to learn from; the completion ends before the end token."""

    role: Role
    messages: list[Message]
    completion: str


def write_answer(claimed: Sequence[Claimed]) -> str:
    """The Solver's answer: one sentence an item, "a) The July picnic in Kabul raised 466 euros."."""
    items = zip(MARKERS, claimed, strict=False)
    return " ".join(f"{marker}) {fact.statement(number)}" for marker, (fact, number) in items)


def write_claims(claimed: Sequence[Claimed]) -> str:
    """The Proposer's lines, "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"."""
    return "\n".join(f"- Question: {fact.question()} [Answer: {number}]" for fact, number in claimed)


def write_check(claimed: Sequence[Claimed]) -> str:
    """The Checker's lines, "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"."""
    lines = enumerate(claimed, 1)
    return "\n".join(
        f"{i}. Evidence: {fact.statement(number)} [Answer: {number}]" for i, (fact, number) in lines
    )


def demonstrate(rng: random.Random, stage: Stage, progress: float, prompts: PromptSet) -> Demonstration:
    """Draws one demonstration.

    Args:
        rng: The only source of chance.
        stage: Its mix of roles, curriculum and errors.
        progress: Share of the stage's steps already taken, in [0, 1]; moves the curriculum.
        prompts: The templates of the three roles.
    """
    role = rng.choices(_ROLES, stage.mix)[0]
    world = _practice_world(rng, progress if stage.curriculum else 1.0)
    if role is Role.SOLVER:
        answer = write_answer(_solver_numbers(rng, world, stage.errors))
        return Demonstration(role, prompts.solver(world.query), answer)
    if role is Role.PROPOSER:
        claimed = _solver_numbers(rng, world, _PROPOSER_PRACTICE)
        return Demonstration(role, prompts.proposer(write_answer(claimed)), write_claims(claimed))
    facts = _questioned(rng, world)
    messages = prompts.checker(world.query.documents, [fact.question() for fact in facts])
    return Demonstration(role, messages, write_check(_checker_numbers(rng, world, facts, stage.errors)))


def _practice_world(rng: random.Random, progress: float) -> World:
    """Easy worlds in the first 15% of the steps, middling ones until 40%, then those that runs meet."""
    if progress < 0.15:
        return sample_world(rng, "train", settings=_EASY)
    if progress < 0.4:
        return sample_world(rng, "train", settings=_MIDDLING)
    return sample_world(rng, "train")


def _solver_numbers(rng: random.Random, world: World, errors: Errors) -> list[Claimed]:
    claimed = []
    for i, fact in enumerate(world.asked):
        twin = world.near_duplicates.get(fact.key)
        number = fact.number
        if twin is not None and rng.random() < (errors.p_late if i > 0 else errors.p_early):
            number = twin.number
        elif rng.random() < errors.p_miscopy:
            number = _miscopy(rng, fact.number)
        claimed.append((fact, number))
    return claimed


def _miscopy(rng: random.Random, number: int) -> int:
    """Changes one digit after the first."""
    digits = list(str(number))
    i = rng.randrange(1, len(digits))
    digits[i] = str((int(digits[i]) + rng.randint(1, 9)) % 10)
    return int("".join(digits))


def _questioned(rng: random.Random, world: World) -> Sequence[Fact]:
    """Half of the time the asked facts, else any facts of the documents: a Solver may state those too."""
    if rng.random() < 0.5:
        return world.asked
    return rng.sample(world.facts, min(len(world.facts), rng.randint(1, 3)))


def _checker_numbers(
    rng: random.Random, world: World, facts: Sequence[Fact], errors: Errors
) -> list[Claimed]:
    return [
        (fact, rng.choice(world.facts).number if rng.random() < errors.p_checker else fact.number)
        for fact in facts
    ]
