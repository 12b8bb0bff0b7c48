"""A training on CPU that is killed, all its processes at once, in every phase of a step where work could be
lost or done twice (`tests.held_phases`): the long form. The short one is `survivor` in test_training.py, and
the asynchronous run in test_training_ranks.py.
"""

from pathlib import Path

import pytest

from pipeline.record.tracking import read_steps
from tests.march_training import Run, assert_nothing_lost_or_repeated

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400), pytest.mark.training]

STEPS, BATCH = 8, 8
SMALL = {
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 4,
    "ppo.micro_batch_size": 4,
    "ppo.kl_coef": 0,  # no reference to start in each life
    "checkpoint.every": 2,  # so that some kills cost a finished step
}
KILLS = {"rollout": 1, "audit": 2, "update": 3, "sync": 4, "half_saved": 5, "saved": 5}


def test_a_run_killed_in_every_phase_trains_each_query_once(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    for phase, steps in KILLS.items():
        assert Run(folder, SMALL, hold=(phase, steps)).kill_when_held() >= steps
    last = Run(folder, SMALL)
    error = last.end()
    assert last.process.returncode == 0, error
    assert_nothing_lost_or_repeated(folder, steps=STEPS, batch=BATCH)
    assert all(row["sync/logprob_gap"] < 0.02 for row in read_steps(folder))
