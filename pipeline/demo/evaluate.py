"""How a policy does on held-out rows, held against the truth: `python -m pipeline.demo.evaluate MODEL OUT`.

The Solver answers, and the audit judges the answer, on the path and with the settings of training: the same
prompts, temperature, voters and guards. What the documents really say is reported beside the reward. The
Checker is measured by itself too, on the asked questions and whatever its evidence, so its figure depends
neither on what the Solver wrote nor on the guards.

vLLM wants a process of its own, so whoever needs a figure starts this file and reads what it wrote; each row
that is done is a line "judged N" on stdout. Left out on purpose: greedy decoding, since training samples.
"""

import argparse
import asyncio
import itertools
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pipeline.demo.evaluation import (
    EVALUATION_SEED,
    NUM_EXAMPLES,
    NUM_ROWS,
    Evaluation,
    EvaluationSetup,
    Example,
    JudgedAnswer,
    KindCount,
    summarise,
)
from pipeline.demo.votes import CheckedQuestion, ask_checker
from pipeline.launch.cpu_speed import dtype_of, threads_of
from pipeline.launch.reward_servers import has_gpu
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.statistics import linked
from pipeline.tiny.truth import held_out_rows
from pipeline.tiny.truth import judge as judge_tiny
from pipeline.training.oracle import judge_against
from pipeline.worlds.judge import judge as judge_wiki
from pipeline.worlds.wiki.world import WikiWorld
from pipeline.worlds.world import Judgement, WorldRow
from reward.auditor import audit
from reward.config import LocalSamplerConfig, SamplingSettings
from reward.offline.files import replace_file
from reward.provenance import seeded
from reward.roles.asking import answer_start
from reward.roles.prompts import PromptSet, load_prompts
from reward.samplers import Sampler, SamplerError
from reward.samplers.make import make_sampler
from reward.types import Role

_NUM_AT_ONCE = 64  # rows; with more an engine on two cores is no faster, and the first are done late

logger = logging.getLogger(__name__)


def rows_of(setup: EvaluationSetup) -> Sequence[WorldRow]:
    """The held-out rows that a setup asks for; raises `ValueError` when its world has fewer."""
    if setup.world == "tiny":
        return held_out_rows(setup.num_rows, setup.seed, setup.tiny)
    rows = WikiWorld(setup.wiki).rows("held_out")[: setup.num_rows]
    if len(rows) < setup.num_rows:
        raise ValueError(f"num_rows: {setup.num_rows}, but wiki has {len(rows)} held-out rows; use fewer")
    return rows


async def evaluate_with(
    sampler: Sampler, setup: EvaluationSetup, on_judged: Callable[[int], None] = lambda num: None
) -> Evaluation:
    """Measures whatever the sampler samples, many rows at once, and closes the sampler.

    `on_judged` is called after each row with the number of rows done. An engine that fails ends it, since
    figures over a part of the rows would not be comparable.
    """
    prompts = load_prompts(setup.audit.prompts)
    rows = rows_of(setup)
    start, num_done = time.perf_counter(), itertools.count(1)
    places = asyncio.Semaphore(_NUM_AT_ONCE)

    async def judge(row: WorldRow, cluster: str) -> tuple[JudgedAnswer, Example]:
        async with places:
            answer, example = await _judge(row, sampler, prompts, setup)
        on_judged(next(num_done))
        return answer.model_copy(update={"cluster": cluster}), example

    try:
        await sampler.ready()
        logger.info("the engine was ready after %.0f s", time.perf_counter() - start)
        judged = await asyncio.gather(*map(judge, rows, _clusters(rows, setup)))
        logger.info("all %d rows were judged after %.0f s", len(rows), time.perf_counter() - start)
    finally:
        await sampler.close()
    answers, examples = zip(*judged, strict=True)
    return summarise(answers, examples[:NUM_EXAMPLES], setup=setup, prompt_digest=prompts.digest)


def _clusters(rows: Sequence[WorldRow], setup: EvaluationSetup) -> list[str]:
    """Of each row the first one that shares a subject with it, directly or over others."""
    if setup.world == "tiny":  # each world has documents of its own
        return [""] * len(rows)
    return [rows[group].query.id for group in linked([[one.subject for one in row.asked] for row in rows])]


def setup_for(recipe: Recipe, model: str, **changes: Any) -> EvaluationSetup:
    """Returns the setup that measures a model as `recipe` trains it; `changes` are fields of the setup."""
    rollout = recipe.rollout
    solver = SamplingSettings(
        temperature=rollout.temperature, top_p=rollout.top_p, max_tokens=rollout.max_response_tokens
    )
    given: dict[str, Any] = {
        "model": model,
        "tiny": recipe.data.world,
        "dtype": None if has_gpu() else dtype_of(recipe),
        "solver": solver,
        # By what was said alone: what the query decides would hide every wrong answer that the check accepts.
        "audit": recipe.audit.model_copy(update={"refute_unanswerable": False}),
    }
    if recipe.oracle == "wiki":
        given |= {"world": "wiki", "wiki": recipe.data.wiki, "num_votes": 1}
    return EvaluationSetup.model_validate(given | changes)


def _truth(row: WorldRow, response: str, setup: EvaluationSetup) -> Judgement:
    """What is true of the answer; a thought before it is none."""
    start = answer_start(response, setup.audit)
    answer = response[start:]
    truth = judge_tiny(row.query, answer) if setup.world == "tiny" else judge_wiki(row, answer)
    places = ({"start": one.start + start, "end": one.end + start} for one in truth.values)
    values = [one.model_copy(update=place) for one, place in zip(truth.values, places, strict=True)]
    return truth.model_copy(update={"values": tuple(values)})


async def _judge(
    row: WorldRow, sampler: Sampler, prompts: PromptSet, setup: EvaluationSetup
) -> tuple[JudgedAnswer, Example]:
    messages = prompts.solver(row.query)
    settings = seeded(setup.solver, messages, seed=setup.seed, role=Role.SOLVER, attempt=0)
    solved = await sampler.sample(messages, n=setup.num_tries, settings=settings)
    response = solved.samples[0].text
    config = setup.audit.model_copy(update={"seed": setup.seed})
    result, checked = await asyncio.gather(
        audit(row.query, response, sampler=sampler, prompts=prompts, config=config),
        ask_checker(row, sampler, prompts, config, num_votes=setup.num_votes),
    )
    verdict, truth = result.verdict, _truth(row, response, setup)
    others = (_truth(row, sample.text, setup).faithful for sample in solved.samples[1:])
    errors = judge_against(truth, verdict)
    # What a lookup refutes and nobody asked about is in no list of what is uncovered.
    is_asked = all(claim in verdict.voted_claims for claim in verdict.claims)
    covered = bool(verdict.voted_claims) and not verdict.uncovered and is_asked
    answer = JudgedAnswer(
        query_id=row.query.id,
        response=response,
        outcome=verdict.outcome,
        reward=verdict.reward,
        right=truth.right,
        faithful=truth.faithful,
        num_faithful=truth.faithful + sum(others),
        false_accept=errors.false_accept,
        false_reject=errors.false_reject,
        coverage=truth.coverage if truth.answerable else None,
        truncated=solved.samples[0].finish_reason == "length",
        num_mentions=verdict.num_mentions,
        num_claims=len(verdict.voted_claims),
        covered=covered if verdict.num_mentions else None,
        num_questions=len(row.asked),
        num_votes=len(row.asked) * setup.num_votes,
        num_votes_right=sum(one.num_right for one in checked),
        num_consensus_right=sum(one.is_consensus_right for one in checked),
        abstained=truth.abstained,
        answerable=truth.answerable,
        kinds=_by_kind(row, truth, checked, setup.num_votes),
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


def _by_kind(
    row: WorldRow, truth: Judgement, checked: Sequence[CheckedQuestion], num_votes: int
) -> dict[str, KindCount]:
    """Counts what a row asks for by kind; what no document answers is a kind of its own."""
    counts = {}
    for kind in dict.fromkeys(one.kind for one in checked):
        places = [place for place, one in enumerate(checked) if one.kind == kind]
        known = [place for place in places if row.asked[place].value is not None]
        counts[kind] = KindCount(
            num_asked=len(known),
            num_stated=sum(truth.stated[place] for place in known),
            num_votes=len(places) * num_votes,
            num_votes_right=sum(checked[place].num_right for place in places),
        )
    return counts


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pipeline.demo.evaluate", description=__doc__)
    add = parser.add_argument
    add("model", help="folder of a Hugging Face model")
    add("out", type=Path, help="JSON file to write")
    add("--recipe", default="tiny", help="whose world, sampling and audit settings to use")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the recipe")
    add("--rows", type=int, default=NUM_ROWS)
    add("--seed", type=int, default=EVALUATION_SEED)
    add("--tries", type=int, default=1, help="answers to each row; the first is audited")
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
        sampler = make_sampler(LocalSamplerConfig(model=setup.model, seed=setup.seed, dtype=setup.dtype))
        evaluation = asyncio.run(evaluate_with(sampler, setup, on_judged=_tell))
    except (ValueError, FileNotFoundError, SamplerError) as error:
        print(f"evaluation failed: {error}", file=sys.stderr)
        return 1
    replace_file(arguments.out, evaluation.model_dump_json(indent=1) + "\n")
    return 0


def _tell(num: int) -> None:
    print(f"judged {num}", flush=True)


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    """Ends as an error would: vLLM's engine process outlives a parent that is merely killed."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
