"""The YAML files that commands read: what is wrong with one is told in one line that names it."""

from pathlib import Path

import pytest

from orchestration.promotion.policy import read_policy
from orchestration.retrain.job import load_job
from orchestration.settings.serve import server_config
from pipeline.settings.recipe import load_recipe
from tests.march_cli import refused
from tests.test_retrain_job import write_job

READERS = {
    "recipe": (lambda file: load_recipe(str(file)), "{file}: ", "docs/recipes.md"),
    "job": (lambda file: load_job(str(file)), "{file}: ", "docs/retraining.md"),
    "server": (server_config, "--config: {file}: ", "ServerConfig in reward/serving/config.py"),
    "policy": (read_policy, "--policy: {file}: ", "docs/promotion.md"),
}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name: Bücher".encode("latin-1"), "not UTF-8; save it as UTF-8"),
        ("name: a".encode("utf-16"), "not UTF-8; save it as UTF-8"),
        (b"a: [", "not YAML: "),
        (b"", "holds no mapping of keys; see {see}"),
        (b"- a", "holds no mapping of keys; see {see}"),
    ],
    ids=["latin-1", "utf-16", "no yaml", "empty", "list"],
)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_cannot_be_read_is_named_with_its_fix(
    reader: str, content: bytes, says: str, tmp_path: Path
) -> None:
    read, where, see = READERS[reader]
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r".") as caught:
        read(file)
    assert str(caught.value).startswith(where.format(file=file) + says.format(see=see))
    assert "\n" not in str(caught.value)


def test_a_policy_that_is_not_there_is_told_by_what_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_job(tmp_path, registry={"model": "m", "policy": "rules.yaml"})
    missing = f"{tmp_path}/rules.yaml: no such file; fix the path"
    assert f"registry.policy: {missing}" in refused(capsys, "retrain", job, "--dry-run")
    with pytest.raises(FileNotFoundError, match=f"--policy: {missing}"):
        read_policy(tmp_path / "rules.yaml")
