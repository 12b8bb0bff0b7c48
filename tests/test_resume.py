"""An audit that was interrupted goes on where it stood, and one that is done stays as it is."""

from pathlib import Path

import pytest

from reward.config import LocalSamplerConfig
from reward.offline.run import make_plan
from tests.audit_jobs import files, ragtruth_job, run


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    first, _, _ = run(job)
    before = files(tmp_path)
    second, changed, watch = run(job)
    assert (second, changed, watch.started) == (first, False, None)
    assert files(tmp_path) == before


@pytest.mark.parametrize("cut", [0, 1, 700, 5_000, 40_000, -1, -2, -300])
def test_an_interrupted_run_resumes_where_it_was_cut(cut: int, tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    run(job)
    whole = job.output.read_bytes()
    job.summary_path.unlink()
    job.output.write_bytes(whole[:cut])
    num_standing = whole[:cut].count(b"\n")
    _, changed, watch = run(job)
    assert changed
    assert watch.started == (54, num_standing)
    assert len(watch.audited) == 54 - num_standing
    assert job.output.read_bytes() == whole
    assert run(job)[1] is False


def test_a_lost_summary_is_made_again_without_an_audit(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    first, _, _ = run(job)
    job.summary_path.unlink()
    again, changed, watch = run(job)
    assert (changed, watch.audited, again.rows_per_s) == (True, [], None)
    assert again.figures == first.figures


def test_more_rows_go_on_where_fewer_ended(tmp_path: Path) -> None:
    run(ragtruth_job(tmp_path, limit=10))
    _, _, watch = run(ragtruth_job(tmp_path))
    assert watch.started == (54, 10)
    with pytest.raises(ValueError, match=r"out\.jsonl:11: row .* beyond --limit.*--overwrite"):
        run(ragtruth_job(tmp_path, limit=10))


def test_verdicts_of_other_weights_under_the_same_path_are_not_taken(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    sampler = LocalSamplerConfig(model=str(model))
    job = ragtruth_job(tmp_path).model_copy(update={"sampler": sampler})
    digests = []
    for content in ("before", "after", "after"):
        (model / "model.safetensors").write_text(content)
        digests.append(make_plan(job).settings_sha256)
    assert digests[0] != digests[1] == digests[2]
