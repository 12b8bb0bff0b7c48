"""What made a model: collected from a run's folder, kept in the store, shown, and turned into commands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from orchestration.cli import main
from orchestration.retrain.records import ParentWeights
from orchestration.retrain.training import LINEAGE_FILE, _record
from pipeline.artifacts.address import Artifact
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_garbage
from pipeline.lineage.publish import collect, publish_run, read_lineage
from pipeline.lineage.record import look_around, note_surroundings, read_surroundings
from pipeline.lineage.show import NOT_RECORDED, commands, render_html, tree_of, write_recipe
from pipeline.record.run import RunState
from pipeline.settings.recipe import load_recipe
from reward.offline.files import weights_sha256
from reward.roles.prompts import load_prompts
from reward.types import RagQuery
from tests.finished_run import write_finished_run
from tests.march_cli import march, refused
from tests.promotion_evidence import evidence, write_evidence


@pytest.fixture
def run(tmp_path: Path, picnic: RagQuery) -> Path:
    return write_finished_run(tmp_path, picnic)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(StoreSettings(location=str(tmp_path / "store")))


def test_a_run_says_what_made_it(run: Path) -> None:
    found = collect(run)
    assert (found.seed, found.num_steps, found.metrics) == (7, 2, {"reward": -0.1})
    assert found.recipe_digest == load_recipe_of(run).digest
    assert found.data is not None
    assert found.data.num_rows == 1
    assert found.data.rows_sha256
    assert found.prompt_digests["roles"] == load_prompts("compact").digest
    assert found.model is not None
    assert found.model.weights_sha256 == weights_sha256(run / "model")
    assert found.parent.weights_sha256
    assert found.surroundings[0].packages["pydantic"]


def load_recipe_of(run: Path) -> object:
    return RunState.model_validate_json((run / "run.json").read_text()).recipe


def test_a_published_run_keeps_all_that_made_it(run: Path, store: ArtifactStore) -> None:
    digest = publish_run(store, run)
    assert publish_run(store, run) == digest
    found = read_lineage(store, digest)
    assert found.model
    assert found.model.artifact
    assert found.data
    assert found.data.artifact
    garbage = find_garbage(store, references=[digest])
    assert not garbage.manifests
    assert garbage.num_kept >= 5  # lineage, model, data, and their files


def test_a_run_that_is_not_finished_is_not_published(run: Path, store: ArtifactStore) -> None:
    (run / "result.json").unlink()
    assert collect(run).model is None
    with pytest.raises(ValueError, match="not finished"):
        publish_run(store, run)


def test_what_was_not_written_down_is_said_to_be_unknown(run: Path) -> None:
    (run / "surroundings.jsonl").unlink()
    nodes = {node.label: node.value for node in tree_of(collect(run)).below}
    assert nodes["surroundings"] == nodes["evaluations"] == NOT_RECORDED
    assert "not recorded" in commands(collect(run), Path("x"))[0]


def test_the_preset_of_a_recipe_is_shown(run: Path) -> None:
    assert ("preset", "paper") in [(node.label, node.value) for node in tree_of(collect(run)).below]


def test_surroundings_are_noted_once_and_again_where_they_change(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_surroundings(run)
    monkeypatch.setenv("MARCH_IMAGE_DIGEST", "sha256:abc")
    note_surroundings(run)
    assert [one.image_digest for one in read_surroundings(run)] == [None, "sha256:abc"]


def test_changes_beside_the_commit_are_seen(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("1")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True)
    clean = look_around(tmp_path)
    (tmp_path / "file").write_text("2")
    dirty = look_around(tmp_path)
    assert (clean.git_dirty, dirty.git_dirty) == (False, True)
    assert clean.git_commit == dirty.git_commit
    assert dirty.git_diff_sha256
    assert look_around(tmp_path / "no" / "checkout").git_commit is None


def test_the_recipe_that_is_written_out_is_the_recipe(run: Path, tmp_path: Path) -> None:
    path = write_recipe(collect(run), tmp_path / "again")
    assert load_recipe(str(path)) == load_recipe_of(run)
    assert yaml.safe_load(path.read_text())["seed"] == 7


def test_reproducing_names_commit_locks_data_and_training(run: Path, store: ArtifactStore) -> None:
    found = read_lineage(store, publish_run(store, run))
    lines = "\n".join(commands(found, Path("again")))
    assert found.data
    assert f"march artifacts get {found.data.artifact} again/data" in lines
    assert "march train again/recipe.yaml --run-dir again/run --set data.path=again/data" in lines
    commit = found.surroundings[0].git_commit
    assert commit is None or f"git checkout {commit}" in lines


def test_reproducing_measures_with_the_settings_of_then(
    run: Path, store: ArtifactStore, tmp_path: Path
) -> None:
    given = {
        "num_generations": 1,
        "limit": 20,
        "generation": {"temperature": 1.0, "max_tokens": 128, "top_k": None},
    }
    found = evidence(lambda _: 1.0, num_items=10, weights=weights_sha256(run / "model"), settings=given)
    folder = write_evidence(tmp_path / "measured", found)
    lines = commands(read_lineage(store, publish_run(store, run, evaluations=[folder])), Path("again"))
    [line] = [line for line in lines if line.startswith("march evaluate")]
    for words in ("--generations 1 ", "--limit 20 ", "--set generation.max_tokens=128 "):
        assert words in line
    assert "--set generation.top_k=null " in line, "the default is another"
    assert "--set generation.temperature=1.0 " in line and "--set judging.temperature=0.6 " in line
    assert "engine" not in line and "weights" not in line


def test_the_page_shows_everything_as_text(run: Path) -> None:
    evil = "<script>alert(1)</script>"
    found = collect(run).model_copy(update={"run": evil, "prompt_digests": {evil: evil}})
    page = render_html(tree_of(found))
    assert evil not in page
    assert page.count("&lt;script&gt;") >= 2


def test_references_are_folders_pointers_and_digests(
    run: Path, store: ArtifactStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_ARTIFACTS", store.backend.address)
    digest = publish_run(store, run)
    store.move("champion", digest, expected=None)
    address = Artifact(store, digest).address
    for ref in (str(run), digest, digest[:12], "champion", address, "artifact:champion"):
        assert march("model", "lineage", ref) == 0
        assert "my-run" in capsys.readouterr().out
    other = store.publish(kind="other").digest
    assert "is of kind other" in refused(capsys, "model", "lineage", other)


def test_the_commands_publish_show_and_reproduce(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))

    def march(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code
        return capsys.readouterr().out

    digest = march("model", "lineage", str(run), "--publish", "--no-link").strip()
    assert "my-run" in march("model", "lineage", digest)
    march("model", "lineage", digest[:9], "--html", str(tmp_path / "page.html"))
    assert "my-run" in (tmp_path / "page.html").read_text()
    assert "march train" in march("model", "reproduce", digest, "--out", str(tmp_path / "again"))
    assert (tmp_path / "again" / "recipe.yaml").is_file()

    (run / "steps.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    second = march("model", "lineage", str(run), "--publish", "--no-link", "--parent", digest).strip()
    lines = march("model", "reproduce", second, "--out", "again").splitlines()
    store = open_store(StoreSettings(location=str(tmp_path / "store")))
    model = read_lineage(store, digest).model
    assert model is not None
    assert f"march artifacts get {model.artifact} again/parent --store {store.backend.address}" in lines
    [train] = [line for line in lines if line.startswith("march train")]
    assert train.endswith("--set model=again/parent")


def test_nothing_that_a_lineage_says_commands_the_terminal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "steps.jsonl").write_text(json.dumps({"step": 1, "\x1b]0;evil\x07[red]": 0.5}) + "\n")
    assert march("model", "lineage", str(run)) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]" in shown


def test_what_a_record_says_becomes_no_command_and_replaces_no_recipe(run: Path, tmp_path: Path) -> None:
    found = collect(run)
    around = found.surroundings[0].model_copy(update={"git_commit": "abc; touch /tmp/x"})
    parent = found.parent.model_copy(update={"name": "m\ntouch /tmp/x", "weights_sha256": "a" * 64})
    lines = commands(found.model_copy(update={"surroundings": (around,), "parent": parent}), Path("again"))
    assert "git checkout 'abc; touch /tmp/x'" in lines
    assert not any(line.startswith("touch") for line in "\n".join(lines).splitlines())
    write_recipe(found, tmp_path)
    write_recipe(found, tmp_path)
    (tmp_path / "recipe.yaml").write_text("mine")
    with pytest.raises(ValueError, match="is there already, with another recipe; give another --out"):
        write_recipe(found, tmp_path)


def test_an_evaluation_of_other_weights_is_none_of_the_runs(
    run: Path, store: ArtifactStore, tmp_path: Path
) -> None:
    other = write_evidence(tmp_path / "other", evidence(lambda _: 1.0, num_items=10, weights="a" * 64))
    with pytest.raises(ValueError, match="other: evaluates other weights"):
        publish_run(store, run, evaluations=[other])


def test_a_retrainings_lineage_has_the_retrainings_name(run: Path, tmp_path: Path) -> None:
    parent = ParentWeights(sha256=None, uri="start")
    kept = _record(run, tmp_path / "record", parent, "shop-train-1")
    assert json.loads((kept / LINEAGE_FILE).read_text())["run"] == "shop-train-1"
