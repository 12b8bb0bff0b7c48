"""A resume trusts only checkpoints that are whole."""

import shutil
from pathlib import Path

import pytest

from pipeline.record.checkpoints import completed_steps, mark_complete, prepare_resume, roll_back
from pipeline.record.tracking import drop_steps_after, read_steps


def save(folder: Path, model: str, step: int) -> None:
    (folder / model / f"global_step{step}").mkdir(parents=True)
    (folder / model / "latest").write_text(f"global_step{step}")


def test_a_kill_between_actor_and_critic_resumes_from_the_step_before(tmp_path: Path) -> None:
    for step in (5, 10):
        save(tmp_path, "_actor", step)
        if step == 5:
            save(tmp_path, "_critic", step)
            mark_complete(tmp_path, step)
    assert prepare_resume(tmp_path) == 5
    assert (tmp_path / "_actor" / "latest").read_text() == "global_step5"
    assert not (tmp_path / "_actor" / "global_step10").exists()


def test_models_of_steps_that_are_taken_again_go_and_earlier_ones_stay(tmp_path: Path) -> None:
    for step in (5, 10):
        save(tmp_path, "_actor", step)
        (tmp_path / f"global_step{step}_hf").mkdir()
    mark_complete(tmp_path, 5)
    assert prepare_resume(tmp_path) == 5
    assert sorted(path.name for path in tmp_path.glob("*_hf")) == ["global_step5_hf"]


def test_a_manifest_whose_folders_were_rotated_away_does_not_count(tmp_path: Path) -> None:
    for step in (5, 10):
        save(tmp_path, "_actor", step)
        mark_complete(tmp_path, step)
    (tmp_path / "_actor" / "global_step5").rmdir()
    assert completed_steps(tmp_path) == [10]


def test_a_part_of_a_step_does_not_count_by_the_manifest_of_an_earlier_attempt(tmp_path: Path) -> None:
    for step in (20, 40):
        save(tmp_path, "_actor", step)
        mark_complete(tmp_path, step)
    shutil.rmtree(tmp_path / "_actor" / "global_step20")  # rotated away
    assert roll_back(tmp_path, lambda step: step == 20) == 0 == prepare_resume(tmp_path)
    save(tmp_path, "_actor", 20)  # and then a kill
    assert prepare_resume(tmp_path) == 0


def test_without_a_whole_checkpoint_the_run_starts_anew(tmp_path: Path) -> None:
    save(tmp_path, "_actor", 5)
    assert prepare_resume(tmp_path) == 0
    assert not (tmp_path / "_actor").exists()


def test_nothing_to_resume(tmp_path: Path) -> None:
    assert prepare_resume(tmp_path / "missing") == 0


@pytest.mark.parametrize(("checkpoint", "kept"), [(0, []), (1, [1]), (2, [1, 2]), (9, [1, 2])])
def test_steps_after_the_checkpoint_and_a_torn_line_are_forgotten(
    tmp_path: Path, checkpoint: int, kept: list[int]
) -> None:
    (tmp_path / "steps.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"step": 3')
    drop_steps_after(tmp_path, checkpoint)
    assert [row["step"] for row in read_steps(tmp_path)] == kept


def test_a_manifest_that_a_power_failure_cut_counts_as_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (5, 10):
        save(tmp_path, "_actor", step)
        mark_complete(tmp_path, step)
    (tmp_path / "global_step10.json").write_text("")
    assert prepare_resume(tmp_path) == 5
    assert "global_step10.json: is cut or damaged" in caplog.text
