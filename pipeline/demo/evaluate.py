"""How a policy does on held-out rows, held against the truth: `python -m pipeline.demo.evaluate MODEL OUT`.

The Solver answers, and the audit judges the answer, on the path and with the settings of training: the same
prompts, temperature, voters and guards. Beside the reward stands what the documents really say. The Checker
is measured by itself too, on the asked questions and whatever its evidence, so its figure depends neither on
what the Solver wrote nor on the guards.

vLLM wants a process of its own, so whoever needs a figure starts this file and reads what it wrote; each row
that is done is a line "judged N" on stdout. Left out on purpose: greedy decoding, since training samples.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn

from pydantic import Field

from pipeline.demo.by_kind import KindCount, count_kinds, shares_by_kind
from pipeline.demo.intervals import Estimate, rate, ratio
from pipeline.demo.votes import ask_checker
from pipeline.launch.cpu_speed import dtype_of, threads_of
from pipeline.launch.reward_servers import has_gpu
from pipeline.record.checkpoints import write_atomically
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.tiny.world import PLAIN_WORLD, WorldSettings
from pipeline.training.oracle import judge_against
from pipeline.worlds.tiny import TinyDraw
from pipeline.worlds.wiki.settings import WikiSettings
from pipeline.worlds.world import Judgement, StatedValue, World, WorldRow, open_world
from reward.auditor import audit
from reward.config import AuditConfig, LocalSamplerConfig, SamplingSettings
from reward.roles.prompts import PromptSet, load_prompts
from reward.samplers import Sampler, SamplerError, make_sampler
from reward.types import Outcome, RagQuery, Record, Verdict

EVALUATION_SEED = 20_260_101  # no training reads held-out rows at all, and no other measurement these
NUM_ROWS = 400
NUM_EXAMPLES = 8
_NUM_AT_ONCE = 64  # rows; with more an engine on two cores is no faster, and the first are done late

logger = logging.getLogger(__name__)


class EvaluationSetup(Record):
    """What was measured and how; two results are comparable when these agree but for the model."""

    model: str = Field(description="Folder of a Hugging Face model.")
    num_rows: int = Field(default=NUM_ROWS, ge=1)
    num_tries: int = Field(default=1, ge=1, description="Answers to each row; the first is audited.")
    num_votes: int = Field(default=3, ge=1, description="Of the Checker by itself, on each asked question.")
    world: Literal["tiny", "wiki"] = "tiny"
    tiny: WorldSettings = PLAIN_WORLD
    wiki: WikiSettings | None = None
    dtype: Literal["bfloat16", "float32"] | None = Field(
        default=None, description="Of the engine's weights; as the engine chooses when left out."
    )
    seed: int = Field(default=EVALUATION_SEED, ge=0, description="Of drawn rows and of the sampling.")
    solver: SamplingSettings = SamplingSettings(temperature=1.0, max_tokens=128)
    audit: AuditConfig


class JudgedAnswer(Record):
    """The figures of one row: the answer, its audit, the truth, and the Checker by itself."""

    query_id: str
    response: str = Field(default="", description="Kept, so that another judge can judge it again.")
    outcome: Outcome
    reward: float | None
    right: bool = Field(default=False, description="All that was asked and nothing wrong beside it.")
    faithful: bool = Field(description="Nothing that it says is wrong.")
    num_faithful: int = Field(description="Of all tries.")
    false_accept: bool
    false_reject: bool
    coverage: float = Field(description="Share of the asked facts that the answer states rightly.")
    truncated: bool = Field(description="The Solver was cut at its token limit.")
    num_mentions: int
    num_claims: int
    covered: bool | None = Field(
        default=None, description="Each mention has a usable claim; None where there is no mention."
    )
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
    abstained: bool = False
    values: tuple[StatedValue, ...] = Field(default=(), description="What it claims, and what is true.")


class Evaluation(Record):
    """What a model did on all rows. Rates are over all answers; each figure has a 95% interval."""

    setup: EvaluationSetup
    prompt_digest: str
    solver_right: Estimate = Field(description="All that was asked, rightly, and nothing wrong beside it.")
    oracle_faithfulness: Estimate = Field(description="All its values are true, or it rightly abstains.")
    supported: Estimate = Field(description="Accepted by the audit.")
    false_accept: Estimate = Field(description="Accepted by the audit, but not faithful.")
    false_reject: Estimate = Field(description="Refused by the audit, but faithful.")
    checker_accuracy: Estimate = Field(description="Single votes on the asked questions that are right.")
    consensus_accuracy: Estimate = Field(description="Asked questions whose consensus is right.")
    answer_coverage: Estimate = Field(description="Asked facts that the answers state rightly.")
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
    proposer_covers: Estimate | None = Field(
        description="Answers with mentions, of which each has a usable claim; None when there is none."
    )
    mentions_per_answer: Estimate
    claims_per_answer: Estimate
    reward: Estimate | None = Field(description="Mean over scored answers; None when there is none.")
    unscored: Estimate = Field(description="Answers without a verdict.")
    num_unscored: int
    num_truncated: int
    outcomes: dict[Outcome, int]
    answers: tuple[JudgedAnswer, ...] = Field(description="One a row, in order; all figures follow.")
    examples: tuple[Example, ...] = Field(description="The first rows' answers, not chosen.")


def evaluate(setup: EvaluationSetup) -> Evaluation:
    """Starts vLLM in this process and measures a model.

    Raises:
        ValueError: the model's folder or the prompts cannot be used.
        SamplerError: vLLM failed; a figure over part of the rows would not be comparable.
    """
    sampler = make_sampler(LocalSamplerConfig(model=setup.model, seed=setup.seed, dtype=setup.dtype))
    return asyncio.run(evaluate_with(sampler, setup, on_judged=_tell))


def world_of(setup: EvaluationSetup) -> tuple[World, Sequence[WorldRow]]:
    """The world and the held-out rows that a setup asks for.

    Raises:
        ValueError: it has fewer of them.
    """
    draw = TinyDraw(num_rows=setup.num_rows, seed=setup.seed, settings=setup.tiny)
    world = open_world(setup.world, wiki=setup.wiki, tiny=draw)
    rows = world.rows("held_out")[: setup.num_rows]
    if len(rows) < setup.num_rows:
        raise ValueError(
            f"num_rows: {setup.num_rows}, but {setup.world} has {len(rows)} held-out rows; use fewer"
        )
    return world, rows


async def evaluate_with(
    sampler: Sampler, setup: EvaluationSetup, on_judged: Callable[[int], None] = lambda num: None
) -> Evaluation:
    """Measures whatever the sampler samples, many rows at once, and closes the sampler.

    Args:
        sampler: Samples for all roles.
        setup: What is measured, and how.
        on_judged: Told how many rows are done, after each.
    """
    prompts = load_prompts(setup.audit.prompts)
    world, rows = world_of(setup)
    start, num_done = time.perf_counter(), itertools.count(1)
    places = asyncio.Semaphore(_NUM_AT_ONCE)

    async def judge(row: WorldRow) -> tuple[JudgedAnswer, Example]:
        async with places:
            judged = await _judge(row, world, sampler, prompts, setup)
        on_judged(next(num_done))
        return judged

    try:
        await sampler.ready()
        logger.info("the engine was ready after %.0f s", time.perf_counter() - start)
        judged = await asyncio.gather(*map(judge, rows))
        logger.info("all %d rows were judged after %.0f s", len(rows), time.perf_counter() - start)
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
    covered = [answer.covered for answer in answers if answer.covered is not None]
    counts = [answer.kinds for answer in answers]
    return Evaluation(
        setup=setup,
        prompt_digest=prompt_digest,
        solver_right=rate([answer.right for answer in answers]),
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
        proposer_covers=rate(covered) if covered else None,
        mentions_per_answer=_some(ratio(numbers, ones)),
        claims_per_answer=_some(ratio(claims, ones)),
        reward=ratio(rewards, [1.0] * len(rewards)),
        unscored=rate([answer.outcome is Outcome.UNSCORED for answer in answers]),
        num_unscored=len(answers) - len(rewards),
        num_truncated=sum(answer.truncated for answer in answers),
        outcomes=dict(Counter(answer.outcome for answer in answers)),
        answers=tuple(answers),
        examples=tuple(examples),
    )


def setup_for(recipe: Recipe, model: str, **changes: Any) -> EvaluationSetup:
    """Returns the setup that measures a model as `recipe` trains it; `changes` are fields of the setup."""
    rollout = recipe.rollout
    solver = SamplingSettings(
        temperature=rollout.temperature, top_p=rollout.top_p, max_tokens=rollout.max_response_tokens
    )
    world = {"world": "wiki", "wiki": recipe.data.wiki, "num_votes": 1} if recipe.oracle == "wiki" else {}
    dtype = None if has_gpu() else dtype_of(recipe)
    given: dict[str, Any] = {
        "tiny": recipe.data.world,
        "dtype": dtype,
        "solver": solver,
        "audit": recipe.audit,
    }
    given |= world | changes
    return EvaluationSetup.model_validate({"model": model} | given)


async def _judge(
    row: WorldRow, world: World, sampler: Sampler, prompts: PromptSet, setup: EvaluationSetup
) -> tuple[JudgedAnswer, Example]:
    solved = await sampler.sample(prompts.solver(row.query), n=setup.num_tries, settings=setup.solver)
    response = solved.samples[0].text
    result, checked = await asyncio.gather(
        audit(row.query, response, sampler=sampler, prompts=prompts, config=setup.audit),
        ask_checker(row, sampler, prompts, setup.audit, num_votes=setup.num_votes),
    )
    verdict, truth = result.verdict, world.judge(row, response)
    others = (world.judge(row, sample.text).faithful for sample in solved.samples[1:])
    answer = JudgedAnswer(
        query_id=row.query.id,
        response=response,
        outcome=verdict.outcome,
        reward=verdict.reward,
        right=truth.right,
        faithful=truth.faithful,
        num_faithful=truth.faithful + sum(others),
        **_errors(truth, verdict),
        coverage=truth.coverage,
        truncated=solved.samples[0].finish_reason == "length",
        num_mentions=verdict.num_mentions,
        num_claims=len(verdict.voted_claims),
        covered=_is_covered(verdict),
        num_questions=len(row.asked),
        num_votes=len(row.asked) * setup.num_votes,
        num_votes_right=sum(one.num_right for one in checked),
        num_consensus_right=sum(one.is_consensus_right for one in checked),
        abstained=truth.abstained,
        answerable=truth.answerable,
        kinds=count_kinds(row, truth, checked, setup.num_votes),
    )
    example = Example(
        query=row.query,
        response=response,
        verdict=verdict,
        faithful=truth.faithful,
        abstained=truth.abstained,
        values=truth.values,
    )
    return answer, example


def _is_covered(verdict: Verdict) -> bool | None:
    return bool(verdict.voted_claims) and not verdict.uncovered if verdict.num_mentions else None


def _errors(truth: Judgement, verdict: Verdict) -> dict[str, bool]:
    found = judge_against(truth, verdict)
    return {"false_accept": found.false_accept, "false_reject": found.false_reject}


def _abstentions(answers: Sequence[JudgedAnswer], *, answerable: bool) -> Estimate | None:
    """The share of abstentions among the queries of one sort; None where no query is unanswerable."""
    flags = [answer.abstained for answer in answers if answer.answerable is answerable]
    is_asked = any(not answer.answerable for answer in answers)
    return rate(flags) if flags and is_asked else None


def _some(estimate: Estimate | None) -> Estimate:
    assert estimate is not None, "every row asks at least one question"
    return estimate


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pipeline.demo.evaluate", description=__doc__)
    parser.add_argument("model", help="folder of a Hugging Face model")
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--recipe", default="tiny", help="whose world, sampling and audit settings to use")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the recipe"
    )
    parser.add_argument("--rows", type=int, default=NUM_ROWS)
    parser.add_argument("--seed", type=int, default=EVALUATION_SEED)
    parser.add_argument("--tries", type=int, default=1, help="answers to each row; the first is audited")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code, with one line on stderr for what a user can fix."""
    arguments = _arguments(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, _stop)
    try:
        recipe = load_recipe(arguments.recipe, arguments.set)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads_of(recipe).update))  # nothing works beside it
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        asked = {"num_rows": arguments.rows, "num_tries": arguments.tries, "seed": arguments.seed}
        setup = setup_for(recipe, arguments.model, **asked)
        evaluation = evaluate(setup)
    except (ValueError, FileNotFoundError, SamplerError) as error:
        print(f"evaluation failed: {error}", file=sys.stderr)
        return 1
    write_atomically(arguments.out, evaluation.model_dump_json(indent=1) + "\n")
    return 0


def _tell(num: int) -> None:
    print(f"judged {num}", flush=True)


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    """Ends as an error would: vLLM's engine process outlives a parent that is merely killed."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
