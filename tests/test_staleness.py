"""Answers of older weights: how old they can be, that they are counted, and that none too old is trained."""

import queue
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline import cpu
from reward.types import Role
from tests.experience_rows import Experience, Maker, answer, rows_of

cpu.install()

from pipeline.record.metrics import sampler_gap  # noqa: E402
from pipeline.record.rollout_record import RolloutRecord  # noqa: E402
from pipeline.training import trainer_async  # noqa: E402
from pipeline.training.step_answers import mask_stale, staleness  # noqa: E402


def aged(reward: float | None, **versions: tuple[int, ...]) -> Experience:
    sample = answer(reward)
    by_role = {Role(role): of_role for role, of_role in versions.items()}
    sample.rollout = sample.rollout.model_copy(update={"weights_versions": by_role})
    return sample


@pytest.mark.parametrize(
    ("versions", "age"),
    [({}, 0), ({"solver": (7,)}, 0), ({"solver": (7,), "checker": (5, 6)}, 2), ({"solver": (6, 7)}, 1)],
)
def test_an_answer_is_as_old_as_its_oldest_turn(versions: dict[str, tuple[int, ...]], age: int) -> None:
    assert staleness(aged(0.0, **versions), version=7) == age


def test_answers_too_old_keep_their_rows_and_train_nothing() -> None:
    samples = [aged(-1.0, solver=(5,)), aged(0.0, solver=(4,)), aged(None, solver=(4,)), aged(-1.0)]
    assert mask_stale(samples, version=6, limit=1) == 1  # the third one had no reward anyway
    maker = Maker()
    rows = rows_of(maker.make_experience_batch(samples))
    assert [bool(row.action_mask.any()) for row in rows] == [True, False, False, True] * 2
    assert len(rows) == 8 and maker.metrics["checker/num_masked"] == 2
    for row in rows:
        assert torch.isfinite(row.advantages).all() and torch.isfinite(row.returns).all()


def test_the_gap_of_sampler_and_actor_is_over_trained_tokens_only() -> None:
    batch = SimpleNamespace(
        rollout_log_probs=torch.tensor([[-1.0, -2.0, 0.0], [0.0, 0.0, 0.0]]),
        action_log_probs=torch.tensor([[-1.5, -1.9, -9.0], [-9.0, -9.0, -9.0]]),
        action_mask=torch.tensor([[1, 1, 0], [0, 0, 0]]),
    )
    assert sampler_gap([batch]) == pytest.approx(0.3)


class Engines:
    """Stands for the rollout engines: a batch of answers is the version of their weights."""

    def __init__(self, num_batches: int) -> None:
        self.version, self.num_left = 0, num_batches

    def generate_samples(self) -> tuple[list[int], None, int, bool]:
        self.num_left -= 1
        return [self.version], None, 1, self.num_left == 0


class Lock:
    """OpenRLHF's `VLLMLock` in one process."""

    def __init__(self) -> None:
        lock = threading.Lock()
        self.acquire, self.release = (
            SimpleNamespace(remote=lock.acquire),
            SimpleNamespace(remote=lock.release),
        )


class Generator(trainer_async.PlainGenerator):  # type: ignore[misc]
    def __init__(self, engines: Engines, **shared: Any) -> None:
        vars(self).update(shared)
        self.samples_generator, self.generate_kwargs = engines, {}
        self.prompts_dataloader = Prompts()
        self.eval_dataloader, self._partial_rollout = None, False


class Prompts(list[int]):
    def state_dict(self) -> dict[str, int]:
        return {}


class Trainer(trainer_async.PlainTrainingActor):  # type: ignore[misc]
    def __init__(self, engines: Engines, **shared: Any) -> None:
        vars(self).update(shared)
        self.engines, self.ages = engines, list[int]()
        self.wandb_logger = self.tensorboard_logger = None

    def train_step(self, rollout_samples: list[int], global_step: int) -> tuple[dict[str, Any], int]:
        time.sleep(0.002)  # the engines are faster
        self.ages.append(self.engines.version - rollout_samples[0])
        self.vllm_lock.acquire.remote()
        self.engines.version += 1
        self.vllm_lock.release.remote()
        return {}, global_step + 1

    def save_logs_and_checkpoints(self, *args: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize("size", [1, 2, 3])
def test_openrlhfs_queue_bounds_the_staleness_by_its_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_async.upstream, "ray", SimpleNamespace(get=lambda value: value))
    slots: queue.Queue[int] = queue.Queue()
    for _ in range(size):
        slots.put(0)
    args = SimpleNamespace(
        train=SimpleNamespace(num_episodes=1), algo=SimpleNamespace(dynamic_filtering_enable=False)
    )
    shared = {"args": args, "vllm_lock": Lock(), "rollout_queue": queue.Queue(), "rollout_slots": slots}
    engines = Engines(num_batches=20)
    trainer = Trainer(engines, **shared)
    answering = threading.Thread(target=Generator(engines, **shared).fit, args=(0, 0))
    answering.start()
    trainer.fit()
    answering.join()
    assert len(trainer.ages) == 20  # nothing lost
    assert max(trainer.ages) <= size


def test_a_record_names_the_versions_of_every_role() -> None:
    record = aged(0.0, solver=(3,), checker=(3, 4)).rollout
    again = RolloutRecord.model_validate_json(record.model_dump_json())
    assert again.weights_versions == {Role.SOLVER: (3,), Role.CHECKER: (3, 4)}
