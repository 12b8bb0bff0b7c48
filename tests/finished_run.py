"""Shared by the tests of lineage and registry: the folder of a run as `march train` leaves it."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.prepare import write_rows
from pipeline.lineage.record import note_surroundings
from pipeline.record.run import RunState
from pipeline.settings.recipe import load_recipe
from reward.roles.prompts import load_prompts
from reward.types import RagQuery


def write_finished_run(
    root: Path, query: RagQuery, *, tracking_uri: str = "sqlite:///x", mlflow_run_id: str = "a" * 32
) -> Path:
    """A finished run on prepared rows; its weights are a configuration and a shard of a few bytes."""
    folder, rows = root / "my-run", root / "rows"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text("{}")
    (folder / "model" / "model.safetensors").write_bytes(b"weights")
    prompts = load_prompts("compact")
    write_rows([query], rows, prompts=prompts, tokenizer_path=None, max_prompt_tokens=None, source="picnics")
    recipe = load_recipe("tiny", ["data.source=prepared", f"data.path={rows}", "seed=7"])
    state = RunState(
        recipe=recipe, recipe_digest=recipe.digest, rows=rows / "train.jsonl", num_rows=1,
        tracking_uri=tracking_uri, mlflow_run_id=mlflow_run_id,
    )  # fmt: skip
    (folder / "run.json").write_text(state.model_dump_json())
    (folder / "steps.jsonl").write_text('{"step": 1, "reward": -0.5}\n{"step": 2, "reward": -0.1}\n{"st')
    (folder / "result.json").write_text('{"steps": 2, "model": "model", "worker_s": 12.5}')
    note_surroundings(folder)
    return folder
