"""A whole evaluation of the tiny policy: vLLM as the judge, and a scripted one (about two minutes)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pipeline.evaluate.plan import EvaluationJob
from pipeline.evaluate.results import ItemResult, read_results
from reward.config import OpenAISamplerConfig, SamplingSettings
from tests.evaluations import ChatServer, drawn_verdict, run, shops_job
from tests.march_cli import DATA, MARCH
from tests.vllm_process import ENVIRONMENT, TINY_POLICY

pytestmark = pytest.mark.slow


def test_vllm_answers_and_vllm_judges_by_schema(
    vllm_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vllm = OpenAISamplerConfig(base_urls=(vllm_url,), model="tiny", timeout_s=300)
    unused = ChatServer(drawn_verdict, "unused")
    job = shops_job(
        tmp_path / "out",
        unused,
        unused,
        model=vllm,
        judge=vllm,
        limit=4,
        num_generations=3,
        generation=SamplingSettings(temperature=0.6, top_p=0.95, top_k=20, max_tokens=24, seed=1),
        judging=SamplingSettings(temperature=0, max_tokens=32, seed=1),
    )
    manifest = run(job)[0].manifest
    unused.close()
    assert manifest is not None and "refuses" not in caplog.text
    counts = manifest.benchmarks["shops"].counts
    said = [one.reply for each in results_of(job) for one in each.generations]
    # The schema binds the judge; one that knows no JSON may fill it with blanks, and is then counted apart.
    assert len(said) == 12 and all(reply and reply.startswith("{") for reply in said)
    assert counts.num_generations == 12 and counts.num_judgements + counts.num_unread == 12
    primary = manifest.benchmarks["shops"].primary
    assert primary is not None and primary.num_items + primary.num_unscored == 4
    assert counts.model_use is not None and counts.model_use.num_completion <= 12 * 24
    assert counts.judge_use is not None and counts.judge_use.num_prompt > 12 * 10
    answers = [one.text for each in results_of(job) for one in each.generations]
    records = job.out / "shops" / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-200])  # an audit, and a torn line
    assert run(job)[0].manifest is not None
    assert [one.text for each in results_of(job) for one in each.generations] == answers


def results_of(job: EvaluationJob) -> list[ItemResult]:
    """What an evaluation of the shops found."""
    return list(read_results(job.out / "shops" / "items.jsonl"))


def test_the_tiny_policy_is_evaluated_in_process_from_its_folder(tmp_path: Path) -> None:
    judge = ChatServer(drawn_verdict, "judge")
    arguments = [
        *("evaluate", str(TINY_POLICY), "--out", str(tmp_path / "out"), "--limit", "2", "--generations", "2"),
        *("--benchmark", f"2wikimultihopqa={DATA / '2wikimultihopqa' / 'train.json'}", "--max-tokens", "32"),
        *(
            "--judge",
            judge.url,
            "--judge-model",
            "judge",
            "--no-cache",
            "--html",
            str(tmp_path / "page.html"),
        ),
    ]
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [*MARCH, *arguments], capture_output=True, text=True, timeout=500, env=environment, check=False
    )
    judge.close()
    assert done.returncode == 0, done.stderr[-3000:]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    figures = manifest["benchmarks"]["2wikimultihopqa"]
    assert figures["counts"]["num_generations"] == 4 and figures["counts"]["num_judgements"] == 4
    assert figures["estimates"]["overall"]["accuracy"]["num_items"] == 2
    assert manifest["settings"]["weights_sha256"] and (tmp_path / "page.html").exists()
