"""How a policy does on held-out worlds, held against the truth: `python -m pipeline.tiny.evaluate MODEL OUT`.

The Solver answers, and the audit judges the answer, on the path and with the settings of training: the same
prompts, temperature, voters and guards. Beside the reward stands what the documents really say. The Checker
is measured by itself too, on the asked questions and whatever its evidence, so its figure depends neither on
what the Solver wrote nor on the guards.

vLLM wants a process of its own, so whoever needs a figure starts this file and reads what it wrote. Left out
on purpose: greedy decoding, since training samples.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pydantic import Field

from pipeline.record.checkpoints import write_atomically
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.tiny.by_kind import KindCount, count_kinds, shares_by_kind
from pipeline.tiny.intervals import Estimate, rate, ratio
from pipeline.tiny.truth import oracle
from pipeline.tiny.votes import ask_checker
from pipeline.tiny.world import World, WorldSettings, sample_worlds
from pipeline.training.oracle import judge_tiny
from reward.auditor import audit
from reward.config import AuditConfig, LocalSamplerConfig, SamplingSettings
from reward.roles.prompts import PromptSet, load_prompts
from reward.samplers import Sampler, SamplerError, make_sampler
from reward.types import Outcome, RagQuery, Record, Verdict

EVALUATION_SEED = 20_260_101  # no training draws held-out worlds at all, and no other measurement these
NUM_WORLDS = 400
NUM_EXAMPLES = 8

# A model of a million parameters gains nothing from a second thread, and on a busy machine threads that wait
# for one another cost up to twenty times as much as the work.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}

logger = logging.getLogger(__name__)


class EvaluationSetup(Record):
    """What was measured and how; two results are comparable when these agree but for the model."""

    model: str = Field(description="Folder of a Hugging Face model.")
    num_worlds: int = Field(default=NUM_WORLDS, ge=1)
    num_tries: int = Field(default=1, ge=1, description="Answers to each world; the first is audited.")
    world: WorldSettings = WorldSettings()
    seed: int = Field(default=EVALUATION_SEED, ge=0, description="Of the worlds and of the sampling.")
    solver: SamplingSettings = SamplingSettings(temperature=1.0, max_tokens=128)
    audit: AuditConfig


class JudgedAnswer(Record):
    """The figures of one world: the answer, its audit, the truth, and the Checker by itself."""

    query_id: str
    outcome: Outcome
    reward: float | None
    faithful: bool
    num_faithful: int = Field(description="Of all tries.")
    false_accept: bool
    false_reject: bool
    coverage: float = Field(description="Share of the asked facts that the answer states, true or not.")
    truncated: bool = Field(description="The Solver was cut at its token limit.")
    num_mentions: int
    num_claims: int
    num_questions: int = Field(description="Asked facts, put to the Checker as they are.")
    num_votes: int = Field(description="`num_questions` times the voters.")
    num_votes_right: int
    num_consensus_right: int = Field(description="Questions whose consensus is the truth.")
    abstained: bool = Field(default=False, description="The answer is that the documents do not say.")
    answerable: bool = Field(default=True, description="The documents answer the query.")
    kinds: dict[str, KindCount] = Field(
        default_factory=dict, description="By kind of the asked items; `unanswerable` where nobody knows."
    )


class Example(Record):
    """An answer in full, for a person to read."""

    query: RagQuery
    response: str
    verdict: Verdict
    faithful: bool


class Evaluation(Record):
    """What a model did on all worlds. Rates are over all answers; each figure has a 95% interval."""

    setup: EvaluationSetup
    prompt_digest: str
    oracle_faithfulness: Estimate = Field(description="All its values are true, or it rightly abstains.")
    supported: Estimate = Field(description="Accepted by the audit.")
    false_accept: Estimate = Field(description="Accepted by the audit, but not faithful.")
    false_reject: Estimate = Field(description="Refused by the audit, but faithful.")
    checker_accuracy: Estimate = Field(description="Single votes on the asked questions that are right.")
    consensus_accuracy: Estimate = Field(description="Asked questions whose consensus is right.")
    answer_coverage: Estimate = Field(description="Asked facts that the answers state, true or not.")
    abstention_right: Estimate | None = Field(
        default=None, description="Abstentions among the queries that no document answers."
    )
    abstention_wrong: Estimate | None = Field(
        default=None, description="Abstentions among the queries that the documents answer."
    )
    stated_by_kind: dict[str, Estimate] = Field(
        default_factory=dict, description="Items of a kind that the answers state rightly."
    )
    votes_by_kind: dict[str, Estimate] = Field(default_factory=dict, description="Right votes, by kind.")
    proposer_coverage: Estimate | None = Field(description="Numbers of the answers that a claim covers.")
    mentions_per_answer: Estimate
    claims_per_answer: Estimate
    reward: Estimate | None = Field(description="Mean over scored answers; None when there is none.")
    num_unscored: int
    num_truncated: int
    outcomes: dict[Outcome, int]
    answers: tuple[JudgedAnswer, ...] = Field(description="One a world, in order; all figures follow.")
    examples: tuple[Example, ...] = Field(description="The first worlds' answers, not chosen.")


def evaluate(setup: EvaluationSetup) -> Evaluation:
    """Starts vLLM in this process and measures a model.

    Raises:
        ValueError: the model's folder or the prompts cannot be used.
        SamplerError: vLLM failed; a figure over part of the worlds would not be comparable.
    """
    sampler = make_sampler(LocalSamplerConfig(model=setup.model, seed=setup.seed))
    return asyncio.run(evaluate_with(sampler, setup))


async def evaluate_with(sampler: Sampler, setup: EvaluationSetup) -> Evaluation:
    """Measures whatever the sampler samples, all worlds at once, and closes the sampler."""
    prompts = load_prompts(setup.audit.prompts)
    worlds = sample_worlds(setup.num_worlds, setup.seed, "held_out", setup.world)
    start = time.perf_counter()
    try:
        await sampler.ready()
        logger.info("the engine was ready after %.0f s", time.perf_counter() - start)
        judged = await asyncio.gather(*(_judge(world, sampler, prompts, setup) for world in worlds))
        logger.info("all %d worlds were judged after %.0f s", len(worlds), time.perf_counter() - start)
    finally:
        await sampler.close()
    answers, examples = zip(*judged, strict=True)
    return summarise(answers, examples[:NUM_EXAMPLES], setup=setup, prompt_digest=prompts.digest)


def summarise(
    answers: Sequence[JudgedAnswer],
    examples: Sequence[Example],
    *,
    setup: EvaluationSetup,
    prompt_digest: str,
) -> Evaluation:
    """Returns the figures of all answers; pure."""
    ones = [1.0] * len(answers)
    rewards = [answer.reward for answer in answers if answer.reward is not None]
    numbers = [answer.num_mentions for answer in answers]
    claims = [answer.num_claims for answer in answers]
    questions = [answer.num_questions for answer in answers]
    counts = [answer.kinds for answer in answers]
    return Evaluation(
        setup=setup,
        prompt_digest=prompt_digest,
        oracle_faithfulness=rate([answer.faithful for answer in answers]),
        supported=rate([answer.outcome is Outcome.SUPPORTED for answer in answers]),
        false_accept=rate([answer.false_accept for answer in answers]),
        false_reject=rate([answer.false_reject for answer in answers]),
        checker_accuracy=_some(ratio([a.num_votes_right for a in answers], [a.num_votes for a in answers])),
        consensus_accuracy=_some(ratio([answer.num_consensus_right for answer in answers], questions)),
        abstention_right=_abstentions(answers, answerable=False),
        abstention_wrong=_abstentions(answers, answerable=True),
        stated_by_kind=shares_by_kind(counts, "num_stated", "num_asked"),
        votes_by_kind=shares_by_kind(counts, "num_votes_right", "num_votes"),
        answer_coverage=_some(ratio([answer.coverage for answer in answers], ones)),
        proposer_coverage=ratio(claims, numbers),
        mentions_per_answer=_some(ratio(numbers, ones)),
        claims_per_answer=_some(ratio(claims, ones)),
        reward=ratio(rewards, [1.0] * len(rewards)),
        num_unscored=len(answers) - len(rewards),
        num_truncated=sum(answer.truncated for answer in answers),
        outcomes=dict(Counter(answer.outcome for answer in answers)),
        answers=tuple(answers),
        examples=tuple(examples),
    )


def setup_for(recipe: Recipe, model: str, **changes: int) -> EvaluationSetup:
    """Returns the setup that measures a model as `recipe` trains it; `changes` are fields of the setup."""
    rollout = recipe.rollout
    solver = SamplingSettings(
        temperature=rollout.temperature, top_p=rollout.top_p, max_tokens=rollout.max_response_tokens
    )
    return EvaluationSetup(model=model, world=recipe.data.world, solver=solver, audit=recipe.audit, **changes)


async def _judge(
    world: World, sampler: Sampler, prompts: PromptSet, setup: EvaluationSetup
) -> tuple[JudgedAnswer, Example]:
    solved = await sampler.sample(prompts.solver(world.query), n=setup.num_tries, settings=setup.solver)
    response = solved.samples[0].text
    result, checked = await asyncio.gather(
        audit(world.query, response, sampler=sampler, prompts=prompts, config=setup.audit),
        ask_checker(world, sampler, prompts, setup.audit),
    )
    verdict = result.verdict
    judgement, truth = judge_tiny(world.query, response, verdict), oracle(world.query, response)
    answer = JudgedAnswer(
        query_id=world.query.id,
        outcome=verdict.outcome,
        reward=verdict.reward,
        faithful=judgement.faithful,
        num_faithful=sum(oracle(world.query, sample.text).faithful for sample in solved.samples),
        false_accept=judgement.false_accept,
        false_reject=judgement.false_reject,
        coverage=truth.coverage,
        truncated=solved.samples[0].finish_reason == "length",
        num_mentions=verdict.num_mentions,
        num_claims=len(verdict.claims),
        num_questions=len(world.asked),
        num_votes=len(world.asked) * setup.audit.voters,
        num_votes_right=sum(one.num_right for one in checked),
        num_consensus_right=sum(one.is_consensus_right for one in checked),
        abstained=truth.abstained,
        answerable=truth.answerable,
        kinds=count_kinds(world, response, checked, setup.audit.voters),
    )
    example = Example(query=world.query, response=response, verdict=verdict, faithful=judgement.faithful)
    return answer, example


def _abstentions(answers: Sequence[JudgedAnswer], *, answerable: bool) -> Estimate | None:
    """The share of abstentions among the queries of one sort; None where no query is unanswerable."""
    flags = [answer.abstained for answer in answers if answer.answerable is answerable]
    is_asked = any(not answer.answerable for answer in answers)
    return rate(flags) if flags and is_asked else None


def _some(estimate: Estimate | None) -> Estimate:
    assert estimate is not None, "every world asks at least one question"
    return estimate


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pipeline.tiny.evaluate", description=__doc__)
    parser.add_argument("model", help="folder of a Hugging Face model")
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--recipe", default="tiny", help="whose worlds, sampling and audit settings to use")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the recipe"
    )
    parser.add_argument("--worlds", type=int, default=NUM_WORLDS)
    parser.add_argument("--seed", type=int, default=EVALUATION_SEED)
    parser.add_argument("--tries", type=int, default=1, help="answers to each world; the first is audited")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code, with one line on stderr for what a user can mend."""
    arguments = _arguments(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, _stop)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        recipe = load_recipe(arguments.recipe, arguments.set)
        asked = {"num_worlds": arguments.worlds, "num_tries": arguments.tries, "seed": arguments.seed}
        setup = setup_for(recipe, arguments.model, **asked)
        evaluation = evaluate(setup)
    except (ValueError, FileNotFoundError, SamplerError) as error:
        print(f"evaluation failed: {error}", file=sys.stderr)
        return 1
    write_atomically(arguments.out, evaluation.model_dump_json(indent=1) + "\n")
    return 0


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    """Ends as an error would: vLLM's engine process outlives a parent that is merely killed."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
