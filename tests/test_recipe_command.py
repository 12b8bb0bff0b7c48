"""`march recipe` and `march init`: what holds and who says so; a job of one's own that runs as it is."""

from __future__ import annotations

import errno
import json
import shlex
from pathlib import Path

import pytest
import yaml

from pipeline.settings.origins import settings_with_origins
from pipeline.settings.recipe import load_recipe
from pipeline.settings.tree import RECIPES
from tests.march_cli import march, refused


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, object]]:
    assert march("recipe", "show", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_each_setting_says_where_its_value_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, own = tmp_path / "base.yaml", tmp_path / "own.yaml"
    base.write_text(
        "extends: smollm2\nname: base\nppo: {kl_coef: 0.5, micro_batch_size: 2}\nrollout: {batch_size: 4}"
    )
    own.write_text("extends: base.yaml\nname: own\nppo: {kl_coef: 0.25}\n")
    found = shown(capsys, str(own), "--set", "rollout.batch_size=2", "--set", "audit.voters=5")
    expected = {
        "name": ("own", str(own)),
        "ppo.kl_coef": (0.25, str(own)),
        "ppo.micro_batch_size": (2, str(base)),
        "rollout.batch_size": (2, "--set"),
        "audit.voters": (5, "--set"),  # over the preset's
        "rollout.samples_per_query": (8, "recipe smollm2"),
        "ppo.estimator": ("rloo", "preset march"),
        "ppo.eps_clip": (0.2, "default"),
    }
    assert {key: (found[key]["value"], found[key]["from"]) for key in expected} == expected


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.yaml")))
def test_what_is_shown_is_the_recipe_that_trains(name: str) -> None:
    tree: dict[str, object] = {}
    for one in settings_with_origins(name):
        *groups, leaf = one.key.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})  # type: ignore[assignment]
        place[leaf] = one.value
    assert tree == load_recipe(name).model_dump(mode="json")


def test_a_group_that_is_set_to_one_value_has_its_origin(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("extends: tiny\nreward: {sampler: null}\n")
    origins = {one.key: one.origin for one in settings_with_origins(str(own))}
    assert origins["reward.sampler"] == str(own) and origins["reward.host"] == "default"


def test_the_table_leaves_defaults_out_and_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert march("recipe", "show", "tiny") == 0
    said = capsys.readouterr().out
    assert "preset paper" in said and "recipe tiny" in said and "more have their defaults" in said
    assert "eps_clip" not in said
    assert march("recipe", "show", "tiny", "--all") == 0
    assert "eps_clip" in capsys.readouterr().out


def test_the_list_names_every_shipped_recipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert march("recipe", "list") == 0
    said = capsys.readouterr().out
    assert all(path.stem in said for path in RECIPES.glob("*.yaml"))


@pytest.mark.parametrize("base", ["tiny", "smollm2"])
def test_init_makes_a_job_that_its_dry_run_takes(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/smollm2-warmup/model").mkdir(parents=True)
    assert march("init", "shop", "--from", base) == 0
    assert "march retrain shop/job.yaml" in capsys.readouterr().out
    job = yaml.safe_load((tmp_path / "shop/job.yaml").read_text())
    assert job["name"] == "shop" == job["registry"]["model"] and job["recipe"]["name"] == "recipe.yaml"
    recipe = yaml.safe_load((tmp_path / "shop/recipe.yaml").read_text())
    assert recipe == {"extends": base, "name": "shop"}
    monkeypatch.chdir("/")  # the recipe is found beside the job
    arguments = ["--set", f"work={tmp_path}/work", "--set", f"registry.uri=sqlite:///{tmp_path}/m.db"]
    if base == "tiny":
        assert march("retrain", tmp_path / "shop/job.yaml", "--dry-run", *arguments) == 0
        assert "promote" in capsys.readouterr().out


def test_init_never_writes_over_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/job.yaml").write_text("mine")
    assert "not empty" in refused(capsys, "init", "shop")
    assert "there are: smollm2, tiny" in refused(capsys, "init", "new", "--from", "nothing")
    assert "cannot name a job" in refused(capsys, "init", "A Shop")
    assert (tmp_path / "shop/job.yaml").read_text() == "mine" and not (tmp_path / "new").exists()


def test_init_leaves_no_half_of_a_job_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(source: Path, target: Path) -> None:
        target.write_bytes(b"")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    with monkeypatch.context() as patched:
        patched.setattr("shutil.copy", fill)
        assert "No space left on device" in refused(capsys, "init", tmp_path / "shop")
    assert march("init", tmp_path / "shop") == 0, "not refused as a folder that is not empty"


def test_what_init_prints_can_be_pasted_though_the_folder_has_a_space(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "my jobs" / "shop"
    assert march("init", folder) == 0
    lines = capsys.readouterr().out.splitlines()
    runs = [shlex.split(line.partition(":")[2]) for line in lines if "march retrain" in line]
    assert runs == [["march", "retrain", f"{folder}/job.yaml", *more] for more in (["--dry-run"], [])]
    comment = (folder / "recipe.yaml").read_text().split("`")[1]
    assert shlex.split(comment) == ["march", "recipe", "show", f"{folder}/recipe.yaml", "--all"]
