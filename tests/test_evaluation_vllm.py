"""A whole evaluation of the tiny policy: vLLM as the judge, and a scripted one (about two minutes)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.evaluate.results import read_results
from reward.config import OpenAISamplerConfig, SamplingSettings
from tests.evaluations import ChatServer, drawn_verdict, files, run, shops_job
from tests.march_cli import DATA, MARCH
from tests.vllm_process import ENVIRONMENT, TINY_POLICY, VllmServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAISamplerConfig]:
    server = VllmServer(tmp_path_factory.mktemp("vllm") / "log.txt")
    try:
        server.wait_until_healthy()
        yield OpenAISamplerConfig(base_urls=(server.url,), model="tiny", timeout_s=300)
    finally:
        server.close()


def test_vllm_answers_and_vllm_judges_by_schema(
    vllm: OpenAISamplerConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
        judging=SamplingSettings(temperature=0, max_tokens=256, seed=1),
    )
    manifest = run(job)[0].manifest
    unused.close()
    assert manifest is not None and "refuses" not in caplog.text
    counts = manifest.benchmarks["shops"].counts
    # Even a model that knows nothing of verdicts gives one that can be read: the schema binds it.
    replies = (job.out / "shops" / "records.jsonl").read_text()
    assert (counts.num_generations, counts.num_judgements, counts.num_unread) == (12, 12, 0), replies
    assert counts.model_use is not None and counts.model_use.num_completion <= 12 * 24
    assert counts.judge_use is not None and counts.judge_use.num_prompt > 12 * 10
    results = list(read_results(job.out / "shops" / "items.jsonl"))
    assert {one.judgement.label for each in results for one in each.generations if one.judgement} <= {
        "right",
        "wrong",
    }
    whole = files(job.out)
    records = job.out / "shops" / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-200])  # an audit, and a torn line
    assert run(job)[0].manifest == manifest and files(job.out) == whole


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
