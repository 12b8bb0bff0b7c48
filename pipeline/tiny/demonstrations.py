"""What each role of the tiny policy should write: prompts and completions, with errors where wanted.

The prompts come from the same templates that rollouts and audits use (`reward/roles/prompts/compact.yaml`),
and the completions have the form that `reward.roles.formats` reads. Pure: chance comes from the generator
that is passed in.
"""

import random
from collections.abc import Sequence

from pipeline.settings.worlds import WorldSettings
from pipeline.tiny.facts import ABSTENTION, Fact, Value
from pipeline.tiny.recipe import Errors, Stage
from pipeline.tiny.words import LAST_NAMES
from pipeline.tiny.world import MARKERS, World, near_miss, sample_world
from pipeline.worlds.world import Demonstration
from reward.roles.prompts import PromptSet
from reward.types import Role

Claimed = tuple[Fact, Value]  # a fact and the value that is written for it
Checked = tuple[Fact, Value | None]  # the same; None for "Cannot answer"
# The Proposer must copy what is there, not the truth.
_PROPOSER_PRACTICE = Errors(p_late=0.3, p_early=0.3, p_miscopy=0.3)
_P_ABSENT = 0.3  # of a question to the Checker that no document answers, in worlds that have such queries


def write_answer(claimed: Sequence[Claimed]) -> str:
    """The Solver's answer: one sentence an item, "a) The July picnic in Kabul raised 466 euros."."""
    items = zip(MARKERS, claimed, strict=False)
    return " ".join(f"{marker}) {fact.statement(value)}" for marker, (fact, value) in items)


def write_claims(claimed: Sequence[Claimed]) -> str:
    """The Proposer's lines, "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"."""
    return "\n".join(f"- Question: {fact.question()} [Answer: {value}]" for fact, value in claimed)


def write_check(claimed: Sequence[Checked]) -> str:
    """The Checker's lines, "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"."""
    found = (
        "none [Answer: Cannot answer]" if value is None else f"{fact.statement(value)} [Answer: {value}]"
        for fact, value in claimed
    )
    return "\n".join(f"{i}. Evidence: {one}" for i, one in enumerate(found, 1))


def demonstrate(rng: random.Random, stage: Stage, progress: float, prompts: PromptSet) -> Demonstration:
    """Draws one demonstration.

    `progress` is the share of the stage's steps already taken, in [0, 1]; it moves the curriculum.
    """
    role = rng.choices(tuple(Role), stage.mix)[0]
    world = _practice_world(rng, stage.world, progress if stage.curriculum else 1.0)
    if role is Role.SOLVER:
        return Demonstration(role, prompts.solver(world.query), _solver_answer(rng, world, stage.errors))
    if role is Role.PROPOSER:
        claimed = _solver_values(rng, world, _PROPOSER_PRACTICE)
        return Demonstration(role, prompts.proposer(write_answer(claimed)), write_claims(claimed))
    facts = _questioned(rng, world, stage.world)
    messages = prompts.checker(world.query.documents, [fact.question() for fact in facts])
    checked = [(fact, _checker_value(rng, world, fact, stage.errors)) for fact in facts]
    return Demonstration(role, messages, write_check(checked))


def _practice_world(rng: random.Random, settings: WorldSettings, progress: float) -> World:
    """Easy worlds in the first 15% of the steps, middling ones until 40%, then those that runs meet."""
    if progress < 0.15:
        settings = settings.model_copy(update={"unrelated": (0, 0), "p_duplicate": 0.3})
    elif progress < 0.4:
        settings = settings.model_copy(update={"p_duplicate": 0.6})
    return sample_world(rng, "train", settings=settings)


def _solver_answer(rng: random.Random, world: World, errors: Errors) -> str:
    """Chance is drawn only for errors that the world and the stage know, so that older stages stay."""
    if not world.is_answerable:
        wanted = errors.p_invent and rng.random() < errors.p_invent
        invented = _invented(rng, world) if wanted else []
        return write_answer(invented) if invented else ABSTENTION
    if errors.p_abstain and rng.random() < errors.p_abstain:
        return ABSTENTION
    return write_answer(_solver_values(rng, world, errors))


def _invented(rng: random.Random, world: World) -> list[Claimed]:
    """The value of each item's near-duplicate, or of another fact of its kind; empty where one has none."""
    claimed: list[Claimed] = []
    for fact in world.asked:
        twin = world.near_duplicates.get(fact.key)
        alike = [twin] if twin else [one for one in world.facts if one.kind == fact.kind]
        if not alike:
            return []
        claimed.append((fact, rng.choice(alike).value))
    return claimed


def _solver_values(rng: random.Random, world: World, errors: Errors) -> list[Claimed]:
    claimed: list[Claimed] = []
    for i, fact in enumerate(world.asked):
        twin = world.near_duplicates.get(fact.key)
        value = fact.value
        if twin is not None and rng.random() < (errors.p_late if i > 0 else errors.p_early):
            value = twin.value
        elif rng.random() < errors.p_miscopy:
            value = _miscopy(rng, fact.value)
        claimed.append((fact, value))
    return claimed


def _miscopy(rng: random.Random, value: Value) -> Value:
    """Changes one digit after the first of a number, the last name of a person, the day of a date."""
    if isinstance(value, int):
        digits = list(str(value))
        i = rng.randrange(1, len(digits))
        digits[i] = str((int(digits[i]) + rng.randint(1, 9)) % 10)
        return int("".join(digits))
    first, last = value.split()
    if first.isdecimal():
        return f"{int(first) % 28 + 1} {last}"
    return f"{first} {rng.choice([name for name in LAST_NAMES if name != last])}"


def _questioned(rng: random.Random, world: World, settings: WorldSettings) -> Sequence[Fact]:
    """Half of the time the asked facts, else any facts of the documents: a Solver may state those too."""
    if rng.random() < 0.5:
        return world.asked
    facts = rng.sample(world.facts, min(len(world.facts), rng.randint(1, 3)))
    if not settings.unanswerable_share:
        return facts
    return [near_miss(rng, world, fact) if rng.random() < _P_ABSENT else fact for fact in facts]


def _checker_value(rng: random.Random, world: World, fact: Fact, errors: Errors) -> Value | None:
    alike = [one for one in world.facts if one.kind == fact.kind]
    if rng.random() < errors.p_checker and alike:
        return rng.choice(alike).value
    if errors.p_blind and rng.random() < errors.p_blind:
        return None
    return world.truth.get(fact.key)
