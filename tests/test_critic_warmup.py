"""The critic's warm-up: its rows are never the policy's, and its steps are not on the policy's learning rate.

OpenRLHF's own trainer, replay buffer and actor run here; only losses and engines are left out.
"""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline import cpu
from pipeline.rows import num_steps
from pipeline.settings.ppo import PpoSettings
from pipeline.settings.recipe import load_recipe
from tests.experience_rows import Experience, Maker, answer
from tests.openrlhf_parser import arguments_of

cpu.install()

from openrlhf.trainer import ppo_trainer  # noqa: E402
from openrlhf.trainer.ppo_utils import NaiveReplayBuffer  # noqa: E402
from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer  # noqa: E402

from pipeline.training import policy, trainer  # noqa: E402
from pipeline.training.policy import MarchPolicyActor, PlainPolicyModelActor  # noqa: E402
from pipeline.training.trainer import MarchSteps  # noqa: E402
from pipeline.training.trainer_settings import Batching  # noqa: E402

ROWS_A_STEP = 4  # two answers, Solver and Checker


class Model(MarchPolicyActor):
    """Actor or critic: OpenRLHF's buffer, and its `fit` over an update that only counts its rows."""

    def __init__(self) -> None:
        self.updates: list[int] = []
        self.actor = torch.nn.Linear(1, 1)
        buffer = NaiveReplayBuffer(1, 0, False)
        self.trainer = SimpleNamespace(replay_buffer=buffer, ppo_train=self.update)

    def update(self, kl_ctl: float) -> dict[str, float]:
        self.updates.append(len(self.trainer.replay_buffer.items))
        return {}


class Group:
    """OpenRLHF's `RayActorGroup` of one actor, in this process."""

    def __init__(self) -> None:
        self.model = Model()

    def async_run_method(self, method_name: str, **arguments: Any) -> list[Any]:
        return [getattr(self.model, method_name)(**arguments)]

    def async_run_method_batch(self, method_name: str, experience: list[Experience]) -> list[Any]:
        return [getattr(self.model, method_name)(batch) for batch in experience]


class Steps(MarchSteps):
    def __init__(self, warmup: int) -> None:
        """Trains two models that only count."""
        self.settings = SimpleNamespace(
            ppo=PpoSettings(critic_warmup_steps=warmup),
            max_staleness=0,
            guards=SimpleNamespace(max_unscored_rate=0.0),
        )
        self.actor_model_group, self.critic_model_group = Group(), Group()
        self.args = SimpleNamespace(
            critic=SimpleNamespace(freezing_steps=warmup - 1),
            ds=SimpleNamespace(enable_sleep=False),
            train=SimpleNamespace(dynamic_batch_enable=False),
        )
        self.experience_maker, self.weights_version, self.vllm_engines = Maker(), 0, None
        self.kl_ctl = SimpleNamespace(value=0.0)
        self.tokenizer = SimpleNamespace(decode=lambda tokens, skip_special_tokens: [""])
        self.watch = SimpleNamespace(begin=lambda samples, step: None)


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ppo_trainer, trainer):
        monkeypatch.setattr(module, "ray", SimpleNamespace(get=lambda values: values))


@pytest.mark.parametrize(("warmup", "updates"), [(0, 4), (1, 3), (3, 1)])
def test_the_policy_trains_each_later_step_on_its_own_rows_and_never_those_of_the_warm_up(
    warmup: int, updates: int
) -> None:
    steps, step = Steps(warmup), 0
    for _ in range(4):
        _, step = steps.train_step([answer(-1.0), answer(0.0)], step)
    assert steps.actor_model_group.model.updates == [ROWS_A_STEP] * updates
    assert steps.critic_model_group.model.updates == [ROWS_A_STEP] * 4


def test_trap_upstream_keeps_the_rows_of_the_warm_up_for_the_policys_first_update() -> None:
    steps, step = Steps(2), 0
    for _ in range(3):
        _, step = super(MarchSteps, steps).train_step([answer(-1.0), answer(0.0)], step)
    assert steps.actor_model_group.model.updates == [3 * ROWS_A_STEP]


def test_the_policys_learning_rate_begins_after_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe("tiny", ["ppo.critic_warmup_steps=10", "ppo.epochs=2", "ppo.actor.warmup_steps=6"])
    horizons = []

    def loaded(self: Any, strategy: Any, pretrain: str, max_steps: int, vllm_engines: Any) -> None:
        horizons.append(max_steps)
        self.trainer = ActorPPOTrainer.__new__(ActorPPOTrainer)
        self.trainer.replay_buffer = NaiveReplayBuffer(
            1, dynamic_batch=strategy.args.train.dynamic_batch_enable
        )

    monkeypatch.setattr(PlainPolicyModelActor, "init_model_from_pretrained", loaded)
    batching = Batching(num_shares=1, scoring_tokens=1, update_tokens=1)
    settings = SimpleNamespace(ppo=recipe.ppo, batching=batching, loss_divisor=None, threads=None)
    monkeypatch.setattr(policy.TrainerSettings, "from_environment", lambda: settings)
    monkeypatch.setattr(policy, "with_response_logits", lambda actor: None)
    strategy = SimpleNamespace(args=SimpleNamespace(train=SimpleNamespace()))
    Model().init_model_from_pretrained(strategy, "", 80)  # 40 steps, two passes each
    arguments = arguments_of(recipe)
    assert horizons == [60]
    assert float(arguments[arguments.index("--actor.lr_warmup_ratio") + 1]) == pytest.approx(5.5 / 60)
    assert recipe.ppo.critic.warmup_steps == 0


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            ["ppo.critic_warmup_steps=5", "ppo.estimator=reinforce"],
            "ppo: critic_warmup_steps: 5 with estimator reinforce, which has no critic",
        ),
        (["ppo.critic_warmup_steps=40"], "ppo.critic_warmup_steps: 40 of the run's 40 steps"),
    ],
)
def test_a_warm_up_that_trains_nothing_is_refused(overrides: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_recipe("tiny", overrides)
    assert says in str(caught.value)


def test_a_warm_up_as_long_as_the_prepared_rows_is_refused_before_anything_starts() -> None:
    recipe = load_recipe("2wikimultihopqa_tiny", ["ppo.critic_warmup_steps=3"])
    assert num_steps(recipe, num_rows=16) == 4
    with pytest.raises(ValueError, match=r"3 of the run's 3 steps, so the policy would never be trained"):
        num_steps(recipe, num_rows=12)
