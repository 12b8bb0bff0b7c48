"""Figures and intervals of scripted generations and verdicts: those of before Inspect, to the ninth digit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.plan import EvaluationJob
from pipeline.evaluate.run import run_evaluation
from pipeline.evaluate.tasks.scorers import item_scores
from pipeline.statistics import ItemScores, by_slice, estimates
from reward.config import AuditConfig
from reward.offline.ragtruth import CHECKS
from tests.benchmark_files import FOLDERS
from tests.evaluations import ChatServer, drawn_verdict
from tests.inspect_tasks import run_task

NUM_ITEMS = 6


def draw(*parts: Any) -> int:
    return hashlib.sha256(json.dumps(parts).encode()).digest()[0]


def drawn_answers(body: Mapping[str, Any]) -> list[str]:
    """The n-th of one request is that of a request with the n-th seed; some choose, some state numbers."""
    first, chooses = body.get("seed") or 0, "**Result:**" in str(body["messages"])
    texts = []
    for seed in range(first, first + (body.get("n") or 1)):
        number = draw(body["messages"], seed)
        end = f"**Result:** {'AB'[number % 2]}" if chooses and number > 20 else f"Answer: {number}"
        texts.append(f"It took {number} years, and 1,000 came.\n{end}")
    return texts


def drawn_judge(body: Mapping[str, Any]) -> list[str]:
    """A verdict by the question; a fifth is read at the second attempt only, and a fifth never."""
    kind = draw(body["messages"]) % 5
    if kind == 0 or (kind == 1 and not body["seed"]):
        return ["I would rather not say."]
    if "sentences" not in body["response_format"]["json_schema"]["schema"]["properties"]:
        return drawn_verdict(body)
    label = ["supported", "unsupported", "no_rad"][draw(body["messages"], "label") % 3]
    sentence = {"sentence": "So.", "label": label, "rationale": "", "excerpt": ""}
    following = ["No Issues", "Major Issue(s)"][draw(body["messages"], "following") % 2]
    return [json.dumps({"sentences": [sentence], "instruction_following": following})]


# Of all estimates by the harness that `march evaluate` had before it ran on Inspect (docs/log.md);
# FaithBench on the release's rows, by the reader that knew two layouts; the questions without `numeric_em`,
# and the judges with the figures of their agreement among the estimates.
FIGURES = {
    ("ragtruth", "plain"): "dea036d68a8a511a",
    ("ragtruth", "cot"): "a5dbadf261ab0fa8",
    ("faithbench", "plain"): "ceebc69f7c825fa3",
    ("facts_grounding", "cot"): "a8d15feb352b6acc",
    ("contextual_judge_bench", "plain"): "f58289409b748ddb",
    ("hotpotqa", "10-shot"): "27d9e2a377c12c5f",
    ("2wikimultihopqa", "cot"): "07cb1b092d5dea1f",
    ("musique", "plain"): "98dab3c717763b2f",
    ("ragtruth_judge", "plain"): "dec213ba2e467583",
    ("faithbench_judge", "plain"): "3889d529771822f7",
}


def digest(estimates: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(rounded(estimates), sort_keys=True).encode()).hexdigest()[:16]


def rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize(("name", "style"), FIGURES)
def test_figures_and_intervals_are_those_of_before(
    name: str, style: str, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    model.complete, judge.complete = drawn_answers, drawn_judge
    path = FOLDERS[name]
    job = EvaluationJob.model_validate(
        {
            "out": tmp_path / "out",
            "benchmarks": {name: path},
            "model": model.config(),
            "judge": judge.config(),
            "style": style,
            "limit": NUM_ITEMS,
            "cache": False,
            "audit_settings": AuditConfig(checks=CHECKS if name == "ragtruth" else ()),
        }
    )
    manifest = run_evaluation(job)[0]
    assert manifest is not None
    ours = manifest.benchmarks[name].estimates
    assert digest(manifest.benchmarks[name].model_dump(mode="json")["estimates"]) == FIGURES[name, style]
    settings = {} if name.endswith("_judge") else {"style": style}
    log = run_task(tmp_path, name, model, judge, None, path=str(path), limit=NUM_ITEMS, **settings)
    assert log.status == "success" and log.results is not None
    benchmark, scores = make_benchmark(name), item_scores(log)
    items = [
        ItemScores(item=one.id, slice=one.slice, cluster=one.cluster, scores=scores[one.id])
        for one in benchmark.read_items(path, NUM_ITEMS)
    ]
    theirs = {part: benchmark.estimates(found) for part, found in by_slice(items).items()}
    assert theirs == ours, "`inspect eval` asks and judges at once"
    # What Inspect itself shows are these means.
    shown = {score.name: score.metrics["average"].value for score in log.results.scores}
    means = {key: one.value for key, one in estimates(items).items() if one.value is not None}
    assert {key: value for key, value in shown.items() if value == value} == means
