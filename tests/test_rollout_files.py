"""Rollouts as Parquet: what is written is read, whole or not at all, and once a step."""

import hashlib
import json
import os
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile, read_table, write_table

from pipeline.record import tracking
from pipeline.record.rollout_files import (
    drop_rollouts_after,
    read_columns,
    read_rollouts,
    rollout_schema,
    rollouts_file,
    write_rollouts,
)
from pipeline.record.rollout_rows import SCHEMA_VERSION, rollout_rows
from pipeline.record.tracking import drop_steps_after, read_steps
from reward.types import Outcome, Role
from tests.rollout_runs import EVIL, step_log, trained_answer, write_run

OUTCOMES = list(Outcome)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    answers = [trained_answer(one, query_id=one, faithful=one is OUTCOMES[0]) for one in OUTCOMES]
    rows = rollout_rows(answers, step=7)
    path = rollouts_file(tmp_path, 7)
    write_rollouts(path, rows, step=7)
    assert path.name == "step-000007.parquet"
    found = read_rollouts(path)
    assert [row.verdict for row in found] == [answer.record.verdict for answer in answers]
    assert [row.oracle for row in found] == [answer.record.oracle for answer in answers]
    assert [list(row.turns) for row in found] == [answer.turns for answer in answers]
    assert [(row.step, row.place) for row in found] == [(7, 1), (7, 2), (7, 3), (7, 4)]
    (checker,) = [turn for turn in found[0].turns if turn.role is Role.CHECKER]
    assert checker.weights_version == 3 and checker.trained
    assert [row.place for row in read_rollouts(path, places={2, 4})] == [2, 4]


@settings(max_examples=30)
@given(st.text(max_size=40))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = rollouts_file(tmp_path_factory.mktemp("run"), 1)
    rows = rollout_rows([trained_answer(response=text)], step=1)
    write_rollouts(path, rows, step=1)
    assert read_rollouts(path) == rows


def test_an_answer_without_a_reward_stays_without_one(tmp_path: Path) -> None:
    rows = rollout_rows([trained_answer(Outcome.UNSCORED)], step=1)
    write_rollouts(rollouts_file(tmp_path, 1), rows, step=1)
    cells = read_table(rollouts_file(tmp_path, 1)).to_pylist()[0]
    assert cells["verdict"]["reward"] is None
    assert [(turn["trained"], turn["reward"]) for turn in cells["turns"]] == [(False, None)]


def test_documents_stand_once_a_file_and_are_read_with_every_answer(tmp_path: Path) -> None:
    answers = [trained_answer() for _ in range(4)]
    path = rollouts_file(tmp_path, 1)
    write_rollouts(path, rollout_rows(answers, step=1), step=1)
    cells = read_columns(path, ["documents", "document_ids"])
    assert [row["documents"] is None for row in cells] == [False, True, True, True]
    assert all(row["document_ids"] == ["july", "may"] for row in cells)
    found = read_rollouts(path, places={3})
    assert found[0].documents is not None and found[0].documents[1].text.startswith("The May picnic")


def test_the_columns_are_those_of_this_version() -> None:
    """A change of any column changes this digest: raise SCHEMA_VERSION where readers must know of it."""
    digest = hashlib.sha256(str(rollout_schema().remove_metadata()).encode()).hexdigest()
    assert (SCHEMA_VERSION, digest[:16]) == (2, "8e7e10f7d851918f")


def test_a_reader_without_this_code_finds_columns_and_version(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [[trained_answer()] * 3])
    with ParquetFile(rollouts_file(run, 1)) as file:
        about = json.loads(file.schema_arrow.metadata[b"march"])
        outcomes = file.read(columns=["verdict.outcome"]).to_pylist()
    assert about == {"schema_version": 2, "step": 1, "num_answers": 3}
    assert outcomes == [{"verdict": {"outcome": "REFUTED"}}] * 3


def test_a_kill_while_a_file_is_written_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rollouts_file(tmp_path, 1)
    rows = rollout_rows([trained_answer()] * 2, step=1)
    write_rollouts(path, rows, step=1)

    def killed(table: object, where: Path, **_: object) -> None:
        where.write_bytes(b"PAR1 half")
        raise KeyboardInterrupt

    monkeypatch.setattr("pyarrow.parquet.write_table", killed)
    with pytest.raises(KeyboardInterrupt):
        write_rollouts(path, rows[:1], step=1)
    assert len(read_rollouts(path)) == 2
    drop_rollouts_after(tmp_path, 1)
    assert os.listdir(path.parent) == [path.name]


def test_a_step_that_is_trained_again_replaces_its_file(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = [[trained_answer(query_id=f"{step}-{i}") for i in range(4)] for step in (1, 2, 3)]
    write_run(run, first)
    drop_steps_after(run, 1)
    assert sorted(os.listdir(run / "rollouts")) == ["step-000001.parquet"]
    log = step_log(run)
    again = [trained_answer(query_id=f"again-{i}") for i in range(4)]
    log.write(2, {}, again)
    assert [step["step"] for step in read_steps(run)] == [1, 2]
    assert [row.query_id for row in read_rollouts(rollouts_file(run, 2))] == [f"again-{i}" for i in range(4)]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = rollouts_file(tmp_path, 1)
    with pytest.raises(FileNotFoundError, match=r"step-000001\.parquet: no such file"):
        read_rollouts(path)
    path.parent.mkdir()
    path.write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"step-000001\.parquet: not a whole Parquet file .*; copy the file"):
        read_rollouts(path)
    write_table(pyarrow.table({"a": [1]}), path)
    with pytest.raises(ValueError, match=r"step-000001\.parquet: holds no rollouts"):
        read_rollouts(path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = rollouts_file(tmp_path, 1)
    rows = rollout_rows([trained_answer(response=EVIL * 50)] * 4, step=1)
    write_rollouts(path, rows, step=1)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"step-000001\.parquet: not a whole Parquet file"):
        read_rollouts(path)


def test_a_file_of_a_later_version_or_with_an_impossible_row_is_named(tmp_path: Path) -> None:
    path = rollouts_file(tmp_path, 1)
    path.parent.mkdir()
    (row,) = rollout_rows([trained_answer()], step=1)
    rows = [row.model_dump(mode="json")]
    later = rollout_schema().with_metadata({"march": json.dumps({"schema_version": SCHEMA_VERSION + 1})})
    write_table(pyarrow.Table.from_pylist(rows, schema=later), path)
    with pytest.raises(ValueError, match=r"step-000001\.parquet: schema_version: 3, .* update march"):
        read_rollouts(path)
    rows[0]["verdict"] |= {"outcome": "UNSCORED", "reward": 0.0}  # a failure must not be read as a reward
    now = rollout_schema().with_metadata({"march": json.dumps({"schema_version": SCHEMA_VERSION})})
    write_table(pyarrow.Table.from_pylist(rows, schema=now), path)
    with pytest.raises(ValueError, match=r"step-000001\.parquet: row 1: verdict: .*UNSCORED has none"):
        read_rollouts(path)


@pytest.mark.parametrize(
    ("kind", "folder", "refused"),
    [
        ("nfs4", "runs", True),
        ("nfs4", "more runs", True),  # the table of mounts writes a space as \040
        ("ext4", "runs", False),
        ("fuse.sshfs", "runs", True),
        ("overlay", "runs", False),
    ],
)
def test_sqlite_on_a_network_file_system_is_refused(
    kind: str, folder: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, table = tmp_path / folder, tmp_path / "mounts"
    shown = str(place).replace(" ", r"\040")
    table.write_text(f"/dev/vda / ext4 rw 0 0\nhost:/x {shown} {kind} rw 0 0\ntmpfs {place}-2 nfs rw 0 0\n")
    monkeypatch.setattr(tracking, "_MOUNTS", table)
    uri = f"sqlite:///{place / 'deeper' / 'mlflow.db'}"
    if refused:
        with pytest.raises(ValueError, match=rf"tracking.uri: .*mlflow.db .*\({kind} at .*sqlite:///FILE on"):
            tracking.refuse_shared_sqlite(uri)
    else:
        tracking.refuse_shared_sqlite(uri)
    tracking.refuse_shared_sqlite("http://mlflow:5000")
    tracking.refuse_shared_sqlite("postgresql://db/mlflow")
