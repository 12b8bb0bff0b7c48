"""Two data-parallel ranks train what one trains: the same loss, the same gradient, the same weights.

Real OpenRLHF actors under DeepSpeed and gloo, without Ray and engines. Micro-batches go to ranks as OpenRLHF
sends them, the Solver's rows to the first half of the ranks and the Checker's to the second.
"""

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.settings.ppo import PpoSettings
from pipeline.settings.recipe import load_recipe
from pipeline.training.trainer_settings import SETTINGS_VARIABLE, TrainerSettings
from tests.experience_rows import Experience, Maker, answer
from tests.openrlhf_parser import arguments_of, checked_by_openrlhf
from tests.supervised import environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]  # the first one compiles for DeepSpeed

ROOT = Path(__file__).parent.parent
OVERRIDES = ["rollout.batch_size=4", "rollout.micro_batch_size=2", "ppo.micro_batch_size=1"]
RAGGED = (
    (0.0, 3, 7),
    (-1.0, 9, 2),
    (None, 5, 5),  # UNSCORED
    (-1.0, 6, None),  # a scored answer without a Checker turn
)
NO_CHECKER_TURN = ((0.0, 3, None), (-1.0, 9, None), (None, 5, None), (-1.0, 6, None))


def even(tokens: torch.Tensor) -> torch.Tensor:
    """An old policy that finds every token as likely as the others."""
    return torch.full(tokens[:, 1:].shape, -2.0)


def micro_batches(shapes: Sequence[tuple[float | None, int, int | None]]) -> list[Experience]:
    maker = Maker(PpoSettings(gamma=1.0, kl_coef=0.0), policy=even, reference=even)
    answers = [answer(reward, solver=solver, checker=checker) for reward, solver, checker in shapes]
    return maker.make_experience_batch(answers)


def trained(ranks: int, batches: list[Experience], folder: Path) -> dict[str, dict[str, Any]]:
    """Trains one step in as many processes."""
    folder.mkdir()
    recipe = load_recipe(
        "tiny", [*OVERRIDES, f"cluster.actor_ranks={ranks}", f"cluster.critic_ranks={ranks}"]
    )
    with pytest.MonkeyPatch.context() as patches:
        args = checked_by_openrlhf(arguments_of(recipe), patches)
    args.ckpt.path = str(folder)
    torch.save({"args": args, "batches": batches}, folder / "step.pt")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = TrainerSettings(
        run_dir=folder,
        tracking_uri="",
        mlflow_run_id="",
        namespace="",
        registry="",
        seed=1,
        rows_by_role=recipe.rows_by_role,
        ppo=recipe.ppo,
        loss_divisor=recipe.loss_divisor,
        rollouts=recipe.tracking.rollouts,
        guards=recipe.guards,
        canary=None,
        max_staleness=0,
        probe_tolerance=None,
    )
    variables = {"PYTHONPATH": str(ROOT), SETTINGS_VARIABLE: settings.model_dump_json()}
    command = [sys.executable, str(ROOT / "tests" / "rank_process.py")]
    running = [
        subprocess.Popen(
            [*command, str(rank), str(ranks), str(port), str(folder)],
            env=environment(**variables),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        errors = [process.communicate()[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * ranks, "\n".join(errors)[-3000:]
    result: dict[str, dict[str, Any]] = torch.load(folder / "result.pt", weights_only=False)
    return result


@pytest.mark.parametrize("shapes", [RAGGED, NO_CHECKER_TURN], ids=["ragged", "a_rank_of_fillers"])
def test_two_ranks_train_what_one_trains(
    shapes: Sequence[tuple[float | None, int, int | None]], tmp_path: Path
) -> None:
    batches = micro_batches(shapes)
    one, two = (trained(ranks, batches, tmp_path / str(ranks)) for ranks in (1, 2))
    for model in ("policy", "critic"):
        weights = [result[model].pop("weights") for result in (one, two)]
        assert all(value != 0 for value in one[model].values())
        assert two[model] == pytest.approx(one[model], rel=1e-4)
        assert torch.allclose(*weights, rtol=1e-3, atol=1e-6)
