"""Real trainings on CPU with several data-parallel ranks, and in OpenRLHF's asynchronous mode.

Both at the paper's temperature and with the off-policy correction, so that the sampler's log-probabilities
are held against the actor's on every trained token of both roles.
"""

from pathlib import Path

import pytest

from pipeline.record.tracking import read_steps
from tests.march_training import Run, answers, assert_asked_in_order, assert_nothing_lost_or_repeated

pytestmark = [pytest.mark.timeout(3000), pytest.mark.training]

BATCH = 8
SMALL = {
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 2,
    "ppo.micro_batch_size": 2,
    "ppo.kl_coef": 0,  # no reference to start
    "rollout.temperature": 0.6,
    "audit.checker.temperature": 0.6,
    "ppo.correction.level": "token",
}
TOO_LONG = 100  # characters of an answer; some of the policy's are longer, and so their audits fail


@pytest.mark.slow
def test_two_ranks_train_each_answer_once_though_some_have_no_reward(tmp_path: Path) -> None:
    folder, steps = tmp_path / "run", 3
    ranks = {"cluster.actor_ranks": 2, "cluster.critic_ranks": 2, "checkpoint.every": steps}
    failing = {"audit.max_response_chars": TOO_LONG, "guards.max_unscored_rate": 0.95}
    run = Run(folder, {**SMALL, **ranks, **failing, "data.max_steps": steps})
    error = run.end()
    assert run.process.returncode == 0, error + (folder / "train.log").read_text()[-3000:]
    masked = [row["solver/num_masked"] for row in read_steps(folder)]
    assert 0 < sum(masked) < steps * BATCH
    for row, answered in zip(read_steps(folder), answers(folder), strict=True):
        for role in ("solver", "checker"):
            assert row[f"{role}/num_trained"] + row[f"{role}/num_masked"] == BATCH
            assert row[f"{role}/sampler_gap"] < 0.03
        assert row["solver/num_trained"] == sum(a.verdict.reward is not None for a in answered)
        assert row["sync/logprob_gap"] < 1e-4
        assert row["ppo/actor_grad_norm"] > 0 or row["ppo/actor_lr"] == 0
        assert row["ppo/critic_grad_norm"] > 0 or row["ppo/critic_lr"] == 0
    assert len({row["sync/weights_version"] for row in read_steps(folder)}) == steps
    assert_asked_in_order(folder, steps=steps, batch=BATCH)


@pytest.mark.parametrize(
    "is_killed",
    [
        pytest.param(False, marks=pytest.mark.slow, id="plain"),
        pytest.param(True, marks=pytest.mark.long, id="killed"),
    ],
)
def test_asynchronous_rows_are_one_version_old_and_survive_a_kill(tmp_path: Path, is_killed: bool) -> None:
    folder, steps = tmp_path / "run", 5
    settings = {**SMALL, "rollout.max_staleness": 1, "data.max_steps": steps, "checkpoint.every": 2}
    if is_killed:
        assert Run(folder, settings, hold=("update", 3)).kill_when_held() == 3
    run = Run(folder, settings)
    error = run.end()
    assert run.process.returncode == 0, error + (folder / "train.log").read_text()[-3000:]
    assert_nothing_lost_or_repeated(folder, steps=steps, batch=BATCH)
    rows = read_steps(folder)
    assert {row["rollout/staleness"] for row in rows} <= {0.0, 1.0}
    assert max(row["rollout/staleness"] for row in rows) == 1.0  # the engines did run ahead
    for row, answered in zip(rows, answers(folder), strict=True):
        assert row["rollout/stale_rate"] == 0 and row["checker/num_trained"] > 0
        assert row["sync/logprob_gap"] < 0.02
        versions = {turn.weights_version for answer in answered for turn in answer.turns}
        versions |= {answer.verdict.weights_version for answer in answered if answer.verdict.claims}
        assert len(versions) == 1  # no answer, no audit straddles a sync
