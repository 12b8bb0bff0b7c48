"""`march warmup`: checked first, trained by OpenRLHF's own trainer, resumed after a kill."""

import itertools
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline import cpu
from pipeline.lineage.publish import _model
from pipeline.models.cache import read_origin
from pipeline.record.tracking import StepLog, read_steps
from pipeline.settings.recipe import load_recipe
from pipeline.warmup.prepare import DEMONSTRATIONS_FILE, prepare
from pipeline.warmup.run import CHECKPOINTS, WarmupState, _next, last_checkpoint
from pipeline.warmup.worker import logged, sft_arguments
from tests.march_cli import MARCH, march, refused
from tests.small_models import small_model

SETTINGS = {
    "data.source": "wiki",
    "data.max_steps": "1",
    "audit.prompts": "compact",
    "audit.kinds": "[number, name, date]",
    "warmup.num_demonstrations": "24",
    "warmup.batch_size": "4",
    "warmup.micro_batch_size": "2",
    "warmup.max_tokens": "2048",
    "warmup.save_every": "2",
    "warmup.lr": "0.01",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("models") / "small")


def options(model: Path, **changes: str) -> list[str]:
    given = SETTINGS | {"model": str(model)} | {key.replace("__", "."): one for key, one in changes.items()}
    return [word for key, value in given.items() for word in ("--set", f"{key}={value}")]


def assignments(model: Path, **changes: str) -> list[str]:
    return options(model, **changes)[1::2]


def test_demonstrations_are_rendered_as_a_rollout_renders_them(model: Path, tmp_path: Path) -> None:
    recipe = load_recipe("tiny", assignments(model))
    prepared = prepare(recipe, tmp_path)
    assert prepared.num_written == 24 and sum(prepared.by_role.values()) == 24
    lines = [json.loads(line) for line in (tmp_path / DEMONSTRATIONS_FILE).read_text().splitlines()]
    for line in lines:
        assert line["input"].startswith("<|im_start|>system\n") and line["output"].endswith("<|im_end|>")
        assert line["input"].endswith("<|im_start|>assistant\n")
    again = prepare(recipe, tmp_path)
    assert again == prepared
    other = prepare(load_recipe("tiny", assignments(model, seed="1")), tmp_path)
    assert other.key != prepared.key and other.sha256 != prepared.sha256


def test_what_is_too_long_is_left_out_and_counted(model: Path, tmp_path: Path) -> None:
    prepared = prepare(load_recipe("tiny", assignments(model, warmup__max_tokens="900")), tmp_path)
    assert prepared.num_overlong > 0 and prepared.longest_tokens <= 900
    with pytest.raises(ValueError, match=r"fewer than one batch of 4; raise it, or give more"):
        prepare(load_recipe("tiny", assignments(model, warmup__max_tokens="64")), tmp_path)


def test_demonstrations_of_your_own(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    line = {"messages": [{"role": "user", "content": "hi"}], "completion": "hello", "role": "checker"}
    path.write_text(f"{json.dumps(line)}\n" * 4)
    settings = assignments(model, warmup__demonstrations=str(path), data__source="tiny")
    prepared = prepare(load_recipe("tiny", settings), tmp_path)
    assert (prepared.num_written, prepared.by_role) == (4, {"checker": 4})
    path.write_text('{"messages": [], "completion": "x"}\n')
    with pytest.raises(ValueError, match=r"own.jsonl:1: messages"):
        prepare(load_recipe("tiny", settings), tmp_path)


def test_rows_without_known_answers_are_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    error = refused(capsys, "warmup", "tiny", "--run-dir", run_dir, *options(model, data__source="tiny"))
    assert not run_dir.exists()
    assert "data.source: tiny has no demonstrations; set it to wiki, or give your own" in error
    error = refused(capsys, "warmup", "tiny", "--set", "warmup.batch_size=3")
    assert "batch_size: 3 is no multiple of micro_batch_size 4" in error


def test_a_dry_run_writes_demonstrations_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert march("warmup", "tiny", "--dry-run", "--run-dir", tmp_path, *options(model)) == 0
    assert "24 demonstrations (" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {DEMONSTRATIONS_FILE, ".lock"}


def state_of(model: Path, folder: Path, **changes: str) -> WarmupState:
    recipe = load_recipe("tiny", assignments(model, **changes))
    prepared = prepare(recipe, folder)
    return WarmupState(
        recipe=recipe, key=prepared.key, prepared=prepared, tracking_uri="sqlite://", mlflow_run_id="r"
    )


def test_a_folder_of_another_warm_up_keeps_its_demonstrations(model: Path, tmp_path: Path) -> None:
    state = state_of(model, tmp_path)
    (tmp_path / "run.json").write_text(state.model_dump_json())
    before = (tmp_path / DEMONSTRATIONS_FILE).read_bytes()
    for more in (["--dry-run"], []):
        given = options(model, warmup__num_demonstrations="28")
        assert march("warmup", "tiny", "--run-dir", tmp_path, *more, *given) == 2
        assert (tmp_path / DEMONSTRATIONS_FILE).read_bytes() == before


def test_other_weights_under_the_same_name_are_another_start(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    first = state_of(copy, tmp_path / "run").key
    (copy / "model.safetensors").write_bytes(b"another")
    assert state_of(copy, tmp_path / "run").key != first


def test_the_next_command_is_of_the_same_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = _next("own recipe.yaml", ["model=m", "warmup.epochs=2", "audit.kinds=[date]"], tmp_path / "run")
    assert said.endswith("march train 'own recipe.yaml' --set 'audit.kinds=[date]' --set model=run/model")


def test_a_template_that_refuses_a_role_is_one_line(model: Path, tmp_path: Path) -> None:
    strict = tmp_path / "strict"
    shutil.copytree(model, strict)
    refusal = "{{ raise_exception('System role not supported') }}"
    (strict / "chat_template.jinja").write_text(
        f"{{% if messages[0].role == 'system' %}}{refusal}{{% endif %}}"
    )
    with pytest.raises(ValueError, match="its chat template refuses the roles system, user"):
        prepare(load_recipe("tiny", assignments(strict)), tmp_path)


def test_openrlhf_is_told_what_the_recipe_says(model: Path, tmp_path: Path) -> None:
    state = state_of(model, tmp_path, warmup__lora="{rank: 4, alpha: 8}", warmup__epochs="3")
    words = sft_arguments(state, tmp_path, cuda=False)
    told = dict(itertools.pairwise(words))
    assert (told["--train.batch_size"], told["--train.micro_batch_size"]) == ("4", "2")
    assert (told["--adam.lr"], told["--ds.lora.rank"], told["--ds.lora.alpha"]) == ("0.01", "4", "8")
    assert told["--data.input_template"] == "" and "--ckpt.load_enable" in words
    assert state.num_steps == 18


def test_a_warm_up_does_not_change_what_a_training_is(model: Path) -> None:
    recipe = load_recipe("tiny", assignments(model))
    assert recipe.digest == load_recipe("tiny", assignments(model, warmup__epochs="3")).digest


class Trainer:
    """OpenRLHF's `SFTTrainer`: an update moves the scheduler on, and then the step is logged."""

    def __init__(self) -> None:
        self.model, self.rates = None, [0.2, 0.1, 0.0]
        self.scheduler = SimpleNamespace(get_last_lr=lambda: self.rates)

    def fit(self) -> None:
        for step in (1, 2):
            self.rates = self.rates[1:]
            said = {"loss_mean": 1.0, "lr": self.rates[0], "grad_norm": 0.5}
            self.save_logs_and_checkpoints(None, step, None, said)

    def save_logs_and_checkpoints(self, *args: object) -> None:
        pass


def test_a_step_has_the_learning_rate_that_it_was_taken_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu.install()  # before OpenRLHF is imported
    monkeypatch.setattr("pipeline.warmup.completion_logits.install", lambda model: None)
    logged(Trainer, StepLog(tmp_path))().fit()
    first, second = read_steps(tmp_path)
    assert (first["warmup/lr"], second["warmup/lr"]) == (0.2, 0.1)
    assert 0 <= first["time/step_s"] < 5, "making the model is no step"


@pytest.mark.slow
@pytest.mark.training
def test_a_warm_up_with_adapters_is_killed_resumed_and_ends_in_a_whole_model(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.torch import load_file

    folder = tmp_path / "run"
    lora = {"warmup__lora": "{rank: 4, alpha: 8}"}
    command = [*MARCH, "warmup", "tiny", "--run-dir", str(folder), *options(model, **lora)]
    with subprocess.Popen(command) as running:
        until = time.monotonic() + 240
        while last_checkpoint(folder) < 2:
            assert running.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 130
    assert (folder / CHECKPOINTS).is_dir() and not (folder / "model").exists()
    changed = options(model, warmup__lr="0.5", **lora)
    assert "of other settings, weights or demonstrations" in refused_last(capsys, folder, changed)
    subprocess.run(command, check=True)
    steps = read_steps(folder)
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1]["warmup/loss"] < steps[0]["warmup/loss"]
    rates = [step["warmup/lr"] for step in steps]
    assert rates[0] == 0 and max(rates) == 0.01 and 0 < rates[-1] < 0.01  # by the first step's warm-up
    before, after = (load_file(place / "model.safetensors") for place in (model, folder / "model"))
    assert before.keys() == after.keys() and any(not before[k].equal(after[k]) for k in before)
    origin = read_origin(folder / "model")
    assert origin is not None and (origin.source, origin.end_token) == ("warmup", "<|im_end|>")
    assert _model("m", folder / "model").origin == origin and not (folder / CHECKPOINTS).exists()
    assert march("warmup", "tiny", "--run-dir", folder, *options(model, **lora)) == 0
    assert "this warm-up is finished" in capsys.readouterr().out


def refused_last(capsys: pytest.CaptureFixture[str], folder: Path, changed: list[str]) -> str:
    assert march("warmup", "tiny", "--run-dir", folder, *changed) == 2
    return capsys.readouterr().err.splitlines()[-1]
