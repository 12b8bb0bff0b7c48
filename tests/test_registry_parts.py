"""Parts of the registry that need no MLflow: the smoke test, refusals."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestration.promotion.policy import GatePolicy, SmokePolicy
from orchestration.promotion.records import GateState
from orchestration.registry import trial
from orchestration.registry.smoke import smoke_gate
from orchestration.registry.store import URI_TAG, ModelVersion, Registry
from pipeline.record.tracking import LOCAL, mlflows_problem, start_mlflow_run
from pipeline.redaction import one_line, redact, refuse_password
from tests.chaos_processes import free_port
from tests.march_cli import march, refused
from tests.test_retrain_job import write_job
from tests.vllm_process import TINY_POLICY


@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        ("raise SystemExit('no such weights')", GateState.FAILED, "exit code 1: no such weights"),
        (
            "import sys, json; open(sys.argv[2], 'w').write(json.dumps(['5', ' ']))",
            GateState.FAILED,
            "1 of 2 prompts",
        ),
        (
            "import sys, json; open(sys.argv[2], 'w').write(json.dumps(['5']))",
            GateState.FAILED,
            "0 of 2 prompts",
        ),
        # Of the machine, and not of the weights.
        ("import os; os.kill(os.getpid(), 9)", GateState.ERROR, "exit code -9"),
        ("import time; time.sleep(60)", GateState.ERROR, "no answers within"),
        ("raise RuntimeError('CUDA out of memory')", GateState.ERROR, "exit code 1: RuntimeError: CUDA out"),
    ],
)
def test_weights_that_do_not_load_or_answer_are_refused(
    code: str, state: GateState, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "smoke_double.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    policy = SmokePolicy(timeout_s=3 if "sleep" in code else 60)
    found = smoke_gate(tmp_path, policy, program="smoke_double")
    assert found.state is state and says in found.reason


def test_where_there_is_no_vllm_nobody_is_refused_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes a refusal: a machine without vLLM called the weights bad, and so refused every candidate."""
    monkeypatch.setattr(trial, "find_spec", lambda name: None)
    version = ModelVersion("1", "uri", "sha256", (), {}, 0)
    with pytest.raises(ValueError, match=r"smoke\.required: vLLM"):
        trial._smoke(version, GatePolicy())


@pytest.mark.slow
def test_the_tiny_policy_loads_and_answers_in_vllm(tmp_path: Path) -> None:
    policy = SmokePolicy(max_tokens=16, timeout_s=500)
    found = smoke_gate(Path(TINY_POLICY), policy)
    assert found.state is GateState.PASSED, found.reason
    (tmp_path / "config.json").write_text("{}")
    assert smoke_gate(tmp_path, policy).state is GateState.FAILED


@pytest.mark.parametrize(
    ("uri", "fix"),
    [
        ("https://ann:hidden@mlflow.example", "MLFLOW_TRACKING_PASSWORD"),
        ("https://hidden@mlflow.example", "MLFLOW_TRACKING_PASSWORD"),
        ("postgresql+psycopg://mlflow:hidden@db/mlflow", "PGPASSFILE"),
    ],
)
def test_a_password_in_an_address_of_mlflow_is_refused_and_not_shown(
    uri: str, fix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    job = write_job(tmp_path)
    evaluation = ("evaluate", "m", "--benchmark", f"tiny={job}", "--out", "o", "--mlflow", uri)
    override = ("--set", f"recipe.overrides=['tracking.uri={uri}']")
    for field, command in (
        ("--mlflow", ("model", "list")),
        ("MLFLOW_TRACKING_URI", ("retrain", job)),
        ("registry.uri", ("retrain", job, "--set", f"registry.uri={uri}")),
        ("tracking.uri", ("retrain", job, "--set", "registry.uri=sqlite:///a.db", *override)),
        ("--mlflow", evaluation),
    ):
        error = refused(capsys, *command)
        assert f"{field}: " in error and fix in error and "hidden" not in error, error
    assert not (tmp_path / "a.db").exists()


def test_a_user_of_a_database_and_a_file_with_an_at_sign_are_no_password() -> None:
    for uri in (
        None,
        "sqlite:////home/a@b:c/mlflow.db",
        "postgresql+psycopg://mlflow@db/mlflow",
        "postgresql+psycopg://mlflow@db/mlflow?sslmode=require",
        "http://h:5",
    ):
        refuse_password("--mlflow", uri)


@pytest.mark.parametrize("password", ["Sup3r#hidden", "a?hidden", "a/hidden", "p@hidden"])
def test_a_password_of_any_signs_is_refused_and_not_shown(password: str) -> None:
    """Drivers of databases read one up to the last "@"."""
    uri = f"postgresql://mlflow:{password}@db/mlflow"
    with pytest.raises(ValueError, match="--mlflow: postgresql://db/mlflow was given") as caught:
        refuse_password("--mlflow", uri)
    assert "hidden" not in str(caught.value) + redact(uri) + one_line(f"cannot reach {uri} now")


@pytest.mark.parametrize("user", ["", "mlflow@"])
def test_a_password_in_the_query_of_a_databases_address_is_refused(user: str) -> None:
    uri = f"postgresql://{user}db/mlflow?sslmode=require&password=hidden"
    with pytest.raises(ValueError, match=r"--mlflow: postgresql://db/mlflow\?sslmode=require was") as caught:
        refuse_password("--mlflow", uri)
    assert "PGPASSWORD" in str(caught.value) and "hidden" not in str(caught.value)


def test_without_an_address_it_is_the_file_of_a_local_retraining_or_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    assert "--mlflow: missing, and there is no runs/mlflow.db" in refused(capsys, "model", "list")
    (tmp_path / "runs").mkdir()
    (tmp_path / LOCAL).touch()
    assert Registry(None).uri == f"sqlite:///{tmp_path / LOCAL}"


def test_a_mistyped_file_of_a_registry_is_refused_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "empty").mkdir()
    for uri in ("sqlite:///typo.db", "sqlite:///missing/typo.db", "sqlite:////proc/typo.db"):
        said = f"march: --mlflow {uri}: there is no such file; fix the address\n"
        assert refused(capsys, "model", "list", "--mlflow", uri) == said
        assert "empty: holds no" in refused(capsys, "model", "register", "shop", "empty", "--mlflow", uri)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///typo.db")
    assert "MLFLOW_TRACKING_URI sqlite:///typo.db: there is no" in refused(capsys, "model", "list")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_database_that_cannot_be_made_is_one_line_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    uri = "sqlite:////proc/mlflow.db"
    error = refused(capsys, "model", "register", "tiny", TINY_POLICY, "--mlflow", uri)
    assert error.startswith("march: /proc/mlflow.db: ") and "; fix the path" in error


@pytest.mark.parametrize("is_cut", [False, True], ids=["no database", "cut by a full disk"])
def test_a_damaged_database_is_one_line_with_its_name(
    is_cut: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    LOCAL.parent.mkdir()
    with closing(sqlite3.connect(tmp_path / "whole.db", isolation_level=None)) as whole:
        whole.execute("CREATE TABLE t AS SELECT zeroblob(100000)")
    LOCAL.write_bytes((tmp_path / "whole.db").read_bytes()[:50_000] if is_cut else b"garbage")
    job, said = write_job(tmp_path), f"{LOCAL}: is damaged, or no database; restore it from a backup"
    evaluate = ("evaluate", "models:/tiny/1", "--benchmark", f"tiny={tmp_path}/worlds.json", "--out", "o")
    for command in (("model", "list"), ("retrain", job), ("retrain", job, "--dry-run"), evaluate):
        assert said in refused(capsys, *command)
    assert march("status", job) == 2 and "is damaged, or no database" in capsys.readouterr().out
    uri = f"sqlite:///{LOCAL.absolute()}"
    with pytest.raises(ValueError, match=said):
        start_mlflow_run(tracking_uri=uri, artifact_root=tmp_path, experiment="e", name="n", params={})


def test_a_name_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot name a model"):
        Registry(f"sqlite:///{tmp_path}/mlflow.db", creates=True).versions("a'b")


def test_models_of_others_are_left_out_and_what_they_refer_to_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))
    client, names = MlflowClient(uri), ["shop@old", "it's", 'a "b"\\c', "shop"]
    for name in names:
        client.create_registered_model(name)
        client.create_model_version(name, "s3://b/1", tags={URI_TAG: f"s3://b/{name}"})
    registry = Registry(uri)
    assert registry.models() == ["shop"]
    assert {one.uri for one in registry.all_versions()} == {f"s3://b/{name}" for name in names}
    assert march("model", "list", "--mlflow", uri) == 0
    assert "shop@old: is left out; a model of ours has no quotes" in capsys.readouterr().err


@pytest.mark.parametrize("is_set", [True, False], ids=["variable", "option"])
def test_a_server_that_is_away_is_one_line_with_what_named_it(
    is_set: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    if is_set:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    named, options = ("MLFLOW_TRACKING_URI", []) if is_set else ("--mlflow", ["--mlflow", uri])
    said = "cannot be reached: Connection refused; start its server, or fix the address"
    assert refused(capsys, "model", "list", *options) == f"march: {named} {uri}: {said}\n"
    with pytest.raises(ValueError, match="unless it was done"):
        Registry(uri).delete("shop", "1")


def test_a_long_error_of_mlflow_ends_with_a_whole_word() -> None:
    said = mlflows_problem(ValueError("what the database says " * 40))
    assert len(said) <= 300 and said.endswith(("what ...", "the ...", "database ...", "says ..."))
