"""The benchmarks as tasks of Inspect (https://inspect.aisi.org.uk): `inspect eval march/ragtruth`.

    inspect eval march/ragtruth --model vllm/Qwen/Qwen3-8B --model-role grader=openai/gpt-4.1 \\
        -T path=data/ragtruth -T style=cot

Inspect finds this package by its entry point; each benchmark's files, prompts and rules are those of
`pipeline/evaluate/benchmarks/`. Every task takes `path`, `style` (plain, cot or 10-shot), `limit`, `audit`
(lexical, model or none) and what `make_task` takes beside them.
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task

from pipeline.evaluate.tasks.build import make_task
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.scores import item_scores, majority
from reward.offline.ragtruth import CHECKS

__all__ = ["item_scores", "majority", "make_task"]


@task(name="march/ragtruth")
@of_march
def ragtruth(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """RAGTruth by FaithJudge's protocol; the lookup reads its tables of hours, stars and yes/no fields."""
    return make_task("ragtruth", path, style, limit, checks=CHECKS, **settings)


@task(name="march/faithbench")
@of_march
def faithbench(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """FaithBench by FaithJudge's protocol."""
    return make_task("faithbench", path, style, limit, **settings)


@task(name="march/facts_grounding")
@of_march
def facts_grounding(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """FACTS Grounding with one judge."""
    return make_task("facts_grounding", path, style, limit, **settings)


@task(name="march/contextual_judge_bench")
@of_march
def contextual_judge_bench(
    path: str = "", style: str = "plain", limit: int | None = None, **settings: Any
) -> Task:
    """ContextualJudgeBench: each pair in both orders; the model under test is the judge."""
    return make_task("contextual_judge_bench", path, style, limit, **settings)


@task(name="march/hotpotqa")
@of_march
def hotpotqa(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """HotpotQA, distractor setting: the judge's accuracy with official EM and F1."""
    return make_task("hotpotqa", path, style, limit, **settings)


@task(name="march/2wikimultihopqa")
@of_march
def twowiki(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """2WikiMultihopQA: the judge's accuracy with official EM and F1."""
    return make_task("2wikimultihopqa", path, style, limit, **settings)


@task(name="march/musique")
@of_march
def musique(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """MuSiQue, answerable set: the judge's accuracy with official EM and F1."""
    return make_task("musique", path, style, limit, **settings)


@task(name="march/tiny")
@of_march
def tiny(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
    """The made-up world, for the tiny policy: an oracle judges."""
    return make_task("tiny", path, style, limit, **settings)


@task(name="march/ragtruth_judge")
@of_march
def ragtruth_judge(path: str = "", limit: int | None = None, **settings: Any) -> Task:
    """RAGTruth's labelled answers: does the judge agree with people? Nothing is asked of the model."""
    return make_task("ragtruth_judge", path, "plain", limit, **settings)


@task(name="march/faithbench_judge")
@of_march
def faithbench_judge(path: str = "", limit: int | None = None, **settings: Any) -> Task:
    """FaithBench's labelled answers: does the judge agree with people? Nothing is asked of the model."""
    return make_task("faithbench_judge", path, "plain", limit, **settings)
