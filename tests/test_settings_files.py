"""The YAML files that commands read: what is wrong with one is told in one line that names it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestration.promotion.policy import GatePolicy, read_policy
from orchestration.retrain.job import load_job
from orchestration.settings.serve import server_config
from orchestration.terminal.messages import user_error
from pipeline.settings.recipe import load_recipe
from reward.assignments import read_settings
from tests.march_cli import refused
from tests.test_retrain_job import write_job

READERS = {
    "recipe": (lambda file: load_recipe(str(file)), "{file}: ", "docs/recipes.md"),
    "job": (lambda file: load_job(str(file)), "{file}: ", "docs/retraining.md"),
    "server": (server_config, "--config: {file}: ", "ServerConfig in reward/serving/config.py"),
    "policy": (read_policy, "--policy: {file}: ", "docs/promotion.md"),
}


# Ten million values in three hundred bytes.
ALIASES = "a0: &a0 x\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 8))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name: Bücher".encode("latin-1"), "not UTF-8; save it as UTF-8"),
        ("name: a".encode("utf-16"), "not UTF-8; save it as UTF-8"),
        (b"a: [", "not YAML: "),
        (b"", "holds no mapping of keys; see {see}"),
        (b"- a", "holds no mapping of keys; see {see}"),
        (b"name: a\nport: 1\nname: b", "name: given twice, in lines 1 and 3; keep one"),
        (b"name: {a: 1,\n  a: 1}", "a: given twice, in lines 1 and 2; keep one"),
        (b"name: 2024-13-45", "month must be in 1..12"),
        (ALIASES.encode(), "over 100000 values, with what aliases repeat; write less"),
        (b"name: &a [*a]", "over 100000 values, with what aliases repeat; write less"),
    ],
    ids=[
        *("latin-1", "utf-16", "no yaml", "empty", "list", "twice", "twice inside", "no date"),
        *("aliases", "an alias of itself"),
    ],
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


def test_of_a_large_wrong_value_only_the_beginning_is_read() -> None:
    class Value:
        num_shown = 0

        def __repr__(self) -> str:
            Value.num_shown += 1
            return "x"

    with pytest.raises(ValidationError) as caught:
        GatePolicy.model_validate({"weights_required": [Value()] * 1_000})
    said = user_error(caught.value)
    assert said == f"weights_required: Input should be a valid boolean (found [{'x, ' * 10}...])"
    assert Value.num_shown == 10


def test_what_a_merge_key_brings_may_be_given_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, x: 3}\n")
    assert read_settings(file, see="")["c"] == {"x": 3}
