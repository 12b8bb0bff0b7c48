"""`march train --dry-run`: the command to copy, and tables that hold at 80 columns and in a pipe."""

import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import check_host_memory, estimate, host_bytes
from pipeline.launch.dry_run import command, show_plan
from pipeline.settings.recipe import load_recipe
from pipeline.settings.tree import RECIPES
from tests.march_cli import refused
from tests.openrlhf_parser import parse_with_openrlhf

ROOT = Path(__file__).parent.parent
SECTIONS = (
    "GPUs by role",
    "GPU memory by role",
    "GPU memory together",
    "Tokens of a PPO step",
    "Time",
    "Checkpoints",
)


def printed(name: str, *, width: int, terminal: bool = False, overrides: tuple[str, ...] = ()) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, no_color=True, legacy_windows=False)
    show_plan(load_recipe(name, list(overrides)), Path("/runs/x"), console=console)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*8b*.yaml")))
def test_every_gpu_recipe_is_shown_whole(name: str, width: int) -> None:
    command_line, *rest = printed(name, width=width).splitlines()
    assert command_line.startswith("python -m openrlhf.cli.train_ppo_ray --")
    assert max(map(len, rest)) <= width
    text = "\n".join(rest)
    assert all(section in text for section in SECTIONS)
    for word in (
        "not run on a GPU",
        "fits",
        "hours",
        "GPU hours",
        "estimate.mfu",
        "estimate.solver_tokens",
        "kept",
    ):
        assert word in " ".join(text.split()), word
    assert "…" not in text  # nothing is cut


def test_a_pipe_gets_no_lines_and_no_escapes_and_a_terminal_gets_tables() -> None:
    piped, shown = printed("llama31_8b_stem", width=80), printed("llama31_8b_stem", width=80, terminal=True)
    assert piped.isascii() and "\x1b" not in piped
    assert "─" in shown
    assert "llama31-8b-stem (preset paper): " in piped


def test_the_command_is_the_one_that_a_run_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe("llama31_8b_stem")
    parts = shlex.split(command(recipe, Path("/runs/x"), num_rows=4_721))
    assert parts[:3] == ["python", "-m", "openrlhf.cli.train_ppo_ray"]
    parsed = parse_with_openrlhf(parts[3:], monkeypatch)
    assert parsed.data.max_samples == 147 * 32
    assert parsed.data.prompt_dataset == str(Path("runs/data/stem/train.jsonl").resolve())
    assert (parsed.ckpt.path, parsed.vllm.sync_backend) == ("/runs/x/checkpoints", "nccl")


def test_a_run_without_gpus_is_told_in_one_line_in_place_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.launch.dry_run.has_gpu", lambda: False)
    command_line, *rest = printed("tiny", width=120).splitlines()
    assert command_line.startswith("python -m openrlhf.cli.train_ppo_ray --")
    assert rest[-1] == (
        "40 steps on 2,560 rows; runs on this machine's CPUs and takes about 8 GiB of its memory."
    )
    assert "GPUs by role" not in rest and not any("hours" in line for line in rest)
    too_long = printed("tiny", width=120, overrides=("rollout.max_prompt_tokens=9000",))
    assert "exceed the model's 4,096; vLLM will not start" in too_long
    monkeypatch.setattr("pipeline.launch.dry_run.has_gpu", lambda: True)
    assert "GPUs by role" in printed("tiny", width=120)


def test_rows_that_are_not_there_are_to_be_prepared_first() -> None:
    with pytest.raises(FileNotFoundError, match=r"runs/data/2wiki has no manifest\.json") as missing:
        printed("2wikimultihopqa_tiny", width=80)
    assert "march prepare" in str(missing.value)


def test_a_small_model_runs_on_cpus_and_its_memory_is_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.launch.dry_run.has_gpu", lambda: False)
    assert "runs on this machine's CPUs and takes about 8 GiB" in " ".join(printed("tiny", width=80).split())
    assert "GPU memory by role" in printed("llama31_8b_stem", width=80), "eight billion want a GPU"


def test_memory_on_cpus_grows_with_the_micro_batch_and_falls_with_adapters() -> None:
    def needed(*overrides: str) -> float:
        return host_bytes(estimate(load_recipe("tiny", list(overrides)))) / GIB

    assert needed("ppo.micro_batch_size=64") > needed() > 6.5
    assert needed("cluster.lora={rank: 4, alpha: 8}") <= needed()


def test_what_does_not_fit_is_said() -> None:
    text = printed("llama31_8b_stem", width=80, overrides=("cluster.ring_attention=1",))
    assert "does not fit" in text and "warning: shared by all, training" in text


def test_a_dry_run_imports_nothing_of_the_training_stack() -> None:
    code = (
        "import sys; from orchestration.cli import main\n"
        "try: main(['train', 'llama31_8b_stem', '--dry-run'])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'torch', 'ray', 'vllm', 'openrlhf', 'deepspeed', 'mlflow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)


def test_a_machine_with_too_little_memory_is_told_before_the_training() -> None:
    recipe = load_recipe("tiny")
    check_host_memory(recipe, have=8 * GIB)
    with pytest.raises(ValueError, match="needs about 8 GiB without a GPU and this machine has 4"):
        check_host_memory(recipe, have=4 * GIB)
    check_host_memory(load_recipe("llama31_8b_stem"), have=4 * GIB)  # it needs GPUs, and says so elsewhere


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["training", "dry run"])
def test_a_file_is_no_folder_of_a_run(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").touch()
    for run_dir in (tmp_path / "rows.jsonl", tmp_path / "rows.jsonl" / "run"):
        error = refused(capsys, "train", "tiny", "--run-dir", run_dir, *more)
        assert error == f"march: --run-dir: {tmp_path / 'rows.jsonl'} is a file; name a folder\n"
