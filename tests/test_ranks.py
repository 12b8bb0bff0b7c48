"""Two data-parallel ranks train what one trains, and micro-batches by tokens what OpenRLHF's own actors train
of all rows as they are laid out: the same loss, the same gradient, the same weights.

Real OpenRLHF actors under DeepSpeed and gloo, without Ray and engines. Micro-batches go to ranks as OpenRLHF
sends them, the Solver's rows to the first half of the ranks and the Checker's to the second.
"""

import math
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.settings.ppo import AdvantageEstimator, CorrectionSettings, PpoSettings
from pipeline.settings.recipe import load_recipe
from pipeline.training.trainer_settings import SETTINGS_VARIABLE, Batching, TrainerSettings
from tests.experience_rows import Experience, Maker, answer
from tests.openrlhf_parser import arguments_of, checked_by_openrlhf
from tests.supervised import environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]  # the first one compiles for DeepSpeed

ROOT = Path(__file__).parent.parent
OVERRIDES = ["rollout.batch_size=4", "rollout.micro_batch_size=2", "ppo.micro_batch_size=1"]
Shapes = Sequence[tuple[float | None, int, int | None]]
RAGGED: Shapes = (
    (0.0, 3, 7),
    (-1.0, 9, 2),
    (None, 5, 5),  # UNSCORED
    (-1.0, 6, None),  # a scored answer without a Checker turn
)
NO_CHECKER_TURN = ((0.0, 3, None), (-1.0, 9, None), (None, 5, None), (-1.0, 6, None))


def even(tokens: torch.Tensor) -> torch.Tensor:
    """An old policy that finds every token as likely as the others."""
    return torch.full(tokens[:, 1:].shape, -7.0)


def laid_out(shapes: Shapes, *, num_shares: int) -> tuple[Maker, list[Experience]]:
    """Rows and who made them."""
    ppo = PpoSettings(gamma=1.0, kl_coef=0.0)
    maker = Maker(ppo, policy=even, reference=even, num_shares=num_shares)
    answers = [answer(reward, solver=solver, checker=checker) for reward, solver, checker in shapes]
    return maker, maker.lay_out(answers)


def trained(
    ranks: int,
    batches: list[Experience],
    folder: Path,
    *,
    plain: bool = False,
    tokens: int = 20,
    zero_stage: int = 2,
    settings: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Trains one step in as many processes, by micro-batches of so many tokens, or by rows if `plain`."""
    folder.mkdir()
    recipe = load_recipe(
        "tiny",
        [
            *OVERRIDES,
            f"cluster.actor_ranks={ranks}",
            f"cluster.critic_ranks={ranks}",
            f"cluster.zero_stage={zero_stage}",
            # OpenRLHF's own logging divides by the tokens of a micro-batch: of one with a trained row in it.
            *(["ppo.micro_batch_size=4"] if plain else []),
            *settings,
        ],
    )
    with pytest.MonkeyPatch.context() as patches:
        args = checked_by_openrlhf(arguments_of(recipe), patches)
    args.ckpt.path = str(folder)
    torch.save({"args": args, "batches": batches, "plain": plain}, folder / "step.pt")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    of_trainer = TrainerSettings(
        recipe=recipe,
        run_dir=folder,
        registry="",
        num_steps=1,
        reward_urls=("",),
        batching=Batching(num_shares=ranks, scoring_tokens=tokens, update_tokens=tokens),
    )
    variables = {"PYTHONPATH": str(ROOT), SETTINGS_VARIABLE: of_trainer.model_dump_json()}
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
def test_two_ranks_train_what_one_trains(shapes: Shapes, tmp_path: Path) -> None:
    maker, rows = laid_out(shapes, num_shares=2)
    parts = maker.to_train(rows)
    one, two = (trained(ranks, parts, tmp_path / str(ranks)) for ranks in (1, 2))
    assert_equal(one, two)


def assert_equal(one: dict[str, dict[str, Any]], two: dict[str, dict[str, Any]]) -> None:
    for model in ("policy", "critic"):
        weights = [result[model].pop("weights") for result in (one, two)]
        assert all(value != 0 for value in one[model].values())
        assert two[model] == pytest.approx(one[model], rel=1e-4)
        assert torch.allclose(*weights, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("tokens", "zero_stage"), [(1, 0), (1, 2), (1000, 2), (1, 3)])
def test_micro_batches_by_tokens_train_what_openrlhf_trains_of_all_rows(
    tokens: int, zero_stage: int, tmp_path: Path
) -> None:
    maker, rows = laid_out(RAGGED, num_shares=1)
    parts = maker.to_train(rows)
    ours = trained(1, parts, tmp_path / "ours", tokens=tokens, zero_stage=zero_stage)
    theirs = trained(1, rows, tmp_path / "theirs", plain=True, zero_stage=zero_stage)
    if zero_stage == 0:  # DeepSpeed measures no norm there, and OpenRLHF says 0
        norms = [ours["policy"].pop("actor_grad_norm"), ours["critic"].pop("critic_grad_norm")]
        assert all(math.isnan(norm) for norm in norms)
        assert theirs["policy"].pop("actor_grad_norm") == theirs["critic"]["critic_grad_norm"] == 0
    for result in (ours, theirs):  # OpenRLHF's means over micro-batches, and its rates after the step
        for name in ("policy_loss", "actor_lr"):
            del result["policy"][name]
        for name in ("critic_grad_norm", "critic_lr"):
            result["critic"].pop(name, None)
    assert_equal(ours, theirs)


def test_learning_rates_are_means_over_the_updates_that_they_were_taken_with(tmp_path: Path) -> None:
    maker, rows = laid_out(RAGGED, num_shares=1)
    settings = [
        *("ppo.epochs=3", "ppo.lr_scheduler=linear", "ppo.actor.warmup_steps=0"),
        *("ppo.critic.warmup_steps=0", "ppo.actor.lr=0.001", "ppo.critic.lr=0.002"),
    ]
    found = trained(1, maker.to_train(rows), tmp_path / "run", tokens=1, settings=settings)
    # The first three of ten updates; after each the rate falls by a tenth of its start.
    assert found["policy"]["actor_lr"] == pytest.approx(0.0009)
    assert found["critic"]["critic_lr"] == pytest.approx(0.0018)


def equal_answers() -> list[Experience]:
    """Three of four are equal, and their engines' log-probabilities out of the correction's bounds."""
    return [
        *(answer(-1.0, solver=3, checker=None, logprob=-9.0) for _ in range(3)),
        answer(0.0, solver=8, checker=None, logprob=-7.1),
    ]


def test_figures_of_equal_rows_are_those_of_all_rows(tmp_path: Path) -> None:
    ppo = PpoSettings(
        estimator=AdvantageEstimator.RLOO,
        gamma=1.0,
        kl_coef=0.0,
        correction=CorrectionSettings(level="token"),
    )
    maker = Maker(ppo, samples=4, policy=even, reference=even, critic=None)
    rows = maker.lay_out(equal_answers())
    once = maker.to_train(rows)
    maker.critic_model_group = even  # with one, equal rows are all trained
    all_rows = maker.to_train(rows)
    assert [len(part.rewards) for part in (*once, *all_rows)] == [2, 4]
    settings = [
        *("ppo.estimator=rloo", "ppo.gamma=1.0", "ppo.kl_coef=0", "ppo.correction.level=token"),
        *("rollout.samples_per_query=4", "rollout.batch_size=1", "ppo.epochs=2", "ppo.actor.lr=0.01"),
        *("ppo.lr_scheduler=constant", "ppo.actor.warmup_steps=0"),
    ]
    ours = trained(1, once, tmp_path / "once", tokens=1, settings=settings)["policy"]
    expected = trained(1, all_rows, tmp_path / "all", tokens=1, settings=settings)["policy"]
    assert torch.allclose(ours.pop("weights"), expected.pop("weights"), rtol=1e-3, atol=1e-5)
    assert ours["is_filter_ratio"] == pytest.approx(9 / 17)  # of tokens
    assert 0 < ours["ppo_clip_ratio"] < 1
    assert ours == pytest.approx(expected, rel=1e-4)
