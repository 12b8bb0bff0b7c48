"""The rows of a run: those that a recipe cannot take are refused before anything starts."""

from pathlib import Path

import pytest

from pipeline.data.prepare import Manifest
from pipeline.launch.rows import planned_rows
from pipeline.settings.recipe import load_recipe
from tests.march_cli import march

LORA = "llama31_8b_stem_lora_1gpu"
LIMIT = 6144


def rows(folder: Path, *, longest: int | None) -> list[str]:
    """Options that put 320 rows in place of the recipe's own, of which only the manifest is written."""
    manifest = Manifest(
        source="x", num_read=320, num_duplicates=0, num_overlong=0, num_rows=320,
        longest_prompt_tokens=longest, prompt_digest="", rows_sha256="",
    )  # fmt: skip
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    return ["--set", f"data.path={folder}"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["train", LORA, "--run-dir", "run"], 2),
        (["train", LORA, "--dry-run"], 2),
        (["doctor", "--json", "--only", "recipe", "--recipe", LORA], 1),
    ],
    ids=["train", "dry run", "doctor"],
)
def test_rows_longer_than_the_recipe_allows_are_refused_before_a_rollout(
    command: list[str],
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    assert march(*command, *rows(Path("rows"), longest=LIMIT + 1)) == code
    said = capsys.readouterr()
    assert (
        "rows/manifest.json: longest_prompt_tokens 6145 exceeds rollout.max_prompt_tokens 6144; "
        "`march prepare --max-prompt-tokens 6144` leaves such rows out"
    ) in said.out + said.err
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("longest", [LIMIT, None])
def test_rows_that_fit_or_were_not_counted_are_taken(longest: int | None, tmp_path: Path) -> None:
    assert planned_rows(load_recipe(LORA, rows(tmp_path, longest=longest)[1:])) == 320
