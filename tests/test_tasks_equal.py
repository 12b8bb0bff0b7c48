"""Inspect's tasks and `march evaluate` find the same in the same generations and verdicts, to the digit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.plan import BenchmarkSource, EvaluationJob
from pipeline.evaluate.run import run_evaluation
from pipeline.evaluate.statistics import estimates_by_slice
from pipeline.evaluate.tasks import item_scores
from reward.config import AuditConfig
from reward.offline.ragtruth import CHECKS
from tests.benchmark_files import FOLDERS
from tests.evaluations import ChatServer, Watch, drawn_verdict
from tests.inspect_tasks import served_task

NUM_ITEMS = 6
WORLDS = {"num_worlds": NUM_ITEMS, "seed": 3}


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


@pytest.fixture
def model() -> Iterator[ChatServer]:
    server = ChatServer(drawn_answers, "tested")
    yield server
    server.close()


@pytest.fixture
def judge() -> Iterator[ChatServer]:
    server = ChatServer(drawn_judge, "judge")
    yield server
    server.close()


CASES = [
    ("ragtruth", "plain"),
    ("ragtruth", "cot"),
    ("faithbench", "plain"),
    ("facts_grounding", "cot"),
    ("contextual_judge_bench", "plain"),
    ("hotpotqa", "10-shot"),
    ("2wikimultihopqa", "cot"),
    ("musique", "plain"),
    ("tiny", "plain"),
    ("ragtruth_judge", "plain"),
    ("faithbench_judge", "plain"),
]


@pytest.mark.parametrize(("name", "style"), CASES)
def test_figures_and_intervals_are_those_of_march_evaluate(
    name: str, style: str, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    path = FOLDERS.get(name, tmp_path / "worlds.json")
    (tmp_path / "worlds.json").write_text(json.dumps(WORLDS))
    job = EvaluationJob.model_validate(
        {
            "out": tmp_path / "out",
            "benchmarks": (BenchmarkSource(name=name, path=path),),
            "model": model.config(),
            "judge": judge.config(),
            "style": style,
            "limit": NUM_ITEMS,
            "most_unread": 1,
            "audit_settings": AuditConfig(checks=CHECKS if name == "ragtruth" else ()),
        }
    )
    manifest = run_evaluation(job, make_benchmark, Watch()).manifest
    assert manifest is not None
    settings = {} if name.endswith("_judge") else {"style": style}
    log = served_task(tmp_path, name, model, judge, path=str(path), limit=NUM_ITEMS, **settings)
    assert log.status == "success" and log.results is not None
    theirs, ours = estimates_by_slice(item_scores(log)), manifest.benchmarks[name].estimates
    if name.endswith(
        "_judge"
    ):  # given answers are not audited, which `march evaluate` shows as empty figures
        ours = {
            part: {key: one for key, one in found.items() if key in theirs[part]}
            for part, found in ours.items()
        }
    assert theirs == ours
    # What Inspect itself shows are these means.
    shown = {score.name: score.metrics["average"].value for score in log.results.scores}
    means = {key: one.value for key, one in theirs["overall"].items() if one.value is not None}
    assert {key: value for key, value in shown.items() if value == value} == means
