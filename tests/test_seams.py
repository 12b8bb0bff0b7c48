"""The seams of OpenRLHF that we hold on to: an upgrade that moves one fails here and not in a night run."""

import inspect
from dataclasses import fields

import pytest

from pipeline import cpu

cpu.install()

import openrlhf.cli.train_ppo_ray as command_line  # noqa: E402
from openrlhf.trainer.ppo_trainer import PPOTrainer  # noqa: E402
from openrlhf.trainer.ppo_utils import experience, experience_maker, samples_generator  # noqa: E402
from openrlhf.trainer.ray import vllm_engine  # noqa: E402
from openrlhf.utils import agent  # noqa: E402


def test_the_versions_are_the_pinned_ones() -> None:
    from importlib.metadata import version

    assert version("openrlhf") == "0.11.2"
    assert version("ray") == "2.55.0"
    assert version("transformers") == "5.15.0"


def test_the_command_line_imports_the_trainer_inside_train() -> None:
    source = inspect.getsource(command_line.train)
    assert "from openrlhf.trainer.ppo_trainer import PPOTrainer" in source
    assert "ppo_trainer.get_max_steps" in source


def test_the_trainer_is_a_ray_actor_over_a_plain_class_that_builds_what_we_replace() -> None:
    plain = PPOTrainer.__ray_metadata__.modified_class
    source = inspect.getsource(inspect.getmodule(plain))
    for attribute in ("self.samples_generator = ", "self.experience_maker = ", "self.max_steps = "):
        assert attribute in source or attribute.replace("self.max_steps = ", "self.max_steps =") in source


@pytest.mark.parametrize(
    ("owner", "method", "parameters"),
    [
        (agent.AgentExecutorBase, "execute", ["prompt", "label", "sampling_params", "max_length"]),
        (samples_generator.SamplesGenerator, "_process_response_into_experience", ["response"]),
        (experience_maker.RemoteExperienceMaker, "make_experience_batch", ["rollout_samples"]),
        (experience_maker.RemoteExperienceMaker, "make_experience", ["samples_list"]),
        (experience_maker.RemoteExperienceMaker, "compute_advantages_and_returns", ["experiences"]),
        (experience_maker.RemoteExperienceMaker, "split_rollout_samples", ["rollout_samples"]),
    ],
)
def test_overridden_methods_keep_their_parameters(owner: type, method: str, parameters: list[str]) -> None:
    names = list(inspect.signature(getattr(owner, method)).parameters)
    assert names[1 : 1 + len(parameters)] == parameters


def test_the_fields_of_an_experience_that_we_fill() -> None:
    names = {field.name for field in fields(experience.Experience)}
    assert {"sequences", "action_mask", "rewards", "values", "kl", "advantages", "returns"} <= names
    assert {"truncated", "info", "labels"} <= names
    source = inspect.getsource(samples_generator.SamplesGenerator._process_response_into_experience)
    assert 'labels=[response["label"]]' in source


def test_the_command_line_imports_the_policy_actor_by_name() -> None:
    source = inspect.getsource(command_line)
    assert "from openrlhf.trainer.ray.ppo_actor import PolicyModelActor" in source


def test_trap_model_actors_choose_their_port_long_before_they_listen_on_it() -> None:
    from openrlhf.trainer.ray.launcher import BaseDistributedActor, BaseModelActor

    from pipeline.training.critic import MarchCriticActor
    from pipeline.training.policy import MarchPolicyActor
    from pipeline.training.rendezvous import HoldsItsPort, MarchReferenceActor

    assert "self._get_free_port()" in inspect.getsource(BaseDistributedActor.__init__)
    assert "with socket.socket() as sock" in inspect.getsource(BaseDistributedActor._get_free_port)
    assert "strategy.setup_distributed()" in inspect.getsource(BaseModelActor._setup_distributed)
    source = inspect.getsource(command_line)
    assert "from openrlhf.trainer.ray.launcher import (" in source and "ReferenceModelActor," in source
    assert "from openrlhf.trainer.ray.ppo_critic import CriticModelActor" in source
    for actor in (MarchPolicyActor, MarchCriticActor, MarchReferenceActor):
        assert actor._get_free_port is HoldsItsPort._get_free_port and issubclass(actor, BaseModelActor)


def test_trap_a_micro_batch_without_action_tokens_divides_by_zero_upstream() -> None:
    import torch
    from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer

    from pipeline.training.policy import weigh_nothing

    source = inspect.getsource(ActorPPOTrainer.ppo_train)
    assert "merged_status[k] = value / denom" in source
    metrics = {"ppo_kl": torch.tensor(float("nan")), "actor_lr": 1e-6}
    fixed = weigh_nothing({"metrics": metrics, "weights": {}, "num_samples": 2.0, "num_action_tokens": 0.0})
    assert fixed["metrics"]["ppo_kl"] * fixed["num_action_tokens"] / fixed["num_action_tokens"] == 0
    trained = {"metrics": metrics, "weights": {}, "num_samples": 2.0, "num_action_tokens": 7.0}
    assert weigh_nothing(trained) is trained


def test_engines_are_called_with_token_ids() -> None:
    plain = vllm_engine.RolloutRayActor.__ray_metadata__.modified_class
    assert list(inspect.signature(plain.generate).parameters)[1:3] == ["prompt_token_ids", "sampling_params"]


def test_trap_dynamic_batches_drop_injected_rows_and_gradients_so_ours_are_made_by_our_buffer() -> None:
    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
    from openrlhf.trainer.ppo_utils.replay_buffer import NaiveReplayBuffer
    from openrlhf.trainer.ray import ppo_actor, ppo_critic
    from openrlhf.utils.deepspeed.deepspeed import DeepspeedStrategy

    from pipeline.settings.recipe import Recipe

    upstream = inspect.getsource(NaiveReplayBuffer.setup_dynamic_batch)
    assert "args.rollout.batch_size * args.rollout.n_samples_per_prompt // args.train.batch_size" in upstream
    assert "dynamic_batch" not in str(Recipe.model_json_schema())
    # What OpenRLHF asks of a buffer with dynamic batches, and what it tells DeepSpeed.
    for trainer in (ppo_actor.ActorPPOTrainer, ppo_critic.CriticPPOTrainer):
        assert "self.replay_buffer.setup_dynamic_batch(self.strategy)" in inspect.getsource(trainer.ppo_train)
        step = inspect.getsource(trainer.training_step)
        assert "if self.replay_buffer.dynamic_optimizer_step[step]:" in step
    assert 'ds_config["gradient_accumulation_steps"] = 1' in inspect.getsource(
        DeepspeedStrategy.get_ds_train_config
    )
    # With one micro-batch a step each of them is a boundary, at which gradients are set and not added.
    epilogue = inspect.getsource(DeepSpeedZeroOptimizer.independent_gradient_partition_epilogue)
    at_boundary = epilogue[epilogue.index("if self.is_gradient_accumulation_boundary():") :]
    assert "self.averaged_gradients[i] = self.get_flat_partition(" in at_boundary
    assert "args.ds.packing_samples = True" in inspect.getsource(command_line)  # with its own flag


def test_the_asynchronous_trainer_looks_its_two_actors_up_when_it_starts_them() -> None:
    from openrlhf.trainer import ppo_trainer_async

    from pipeline.training.trainer_async import MarchAsyncTrainer, MarchGenerator, PlainAsyncTrainer

    assert "from openrlhf.trainer.ppo_trainer_async import PPOTrainerAsync" in inspect.getsource(
        command_line.train
    )
    plain = PlainAsyncTrainer
    source = inspect.getsource(plain.__init__)
    assert "GenerateSamplesActor.remote(" in source and "TrainingActor.remote(" in source
    assert plain.__init__.__globals__ is vars(ppo_trainer_async)
    assert issubclass(MarchAsyncTrainer, plain)
    generator = inspect.getsource(MarchGenerator.__bases__[0].__init__)
    assert "self.samples_generator = SamplesGenerator(" in generator and "self.max_steps = " in generator


def source_of(code: object) -> str:
    return inspect.getsource(code) if inspect.isfunction(code) else ""


def test_our_steps_stand_between_openrlhfs_trainers_and_their_base() -> None:
    from openrlhf.trainer.ppo_trainer import BasePPOTrainer

    from pipeline.training.trainer import MarchSteps, MarchTrainer
    from pipeline.training.trainer_async import MarchTrainingActor, PlainTrainingActor

    # Ray's own class over a written one has copies of all methods; ours would come after them.
    steps = ("train_step", "save_logs_and_checkpoints", "broadcast_to_vllm")
    assert set(steps) <= set(vars(PPOTrainer.__ray_metadata__.modified_class))
    assert [getattr(MarchTrainer, step) for step in steps] == [getattr(MarchSteps, step) for step in steps]
    for step in steps[:2]:
        assert getattr(MarchTrainingActor, step) is getattr(MarchSteps, step)
    # What calls `super()` must not be inherited: Ray would send a copy that means another class.
    calls_super = {name for name, code in vars(PlainTrainingActor).items() if "super()" in source_of(code)}
    assert calls_super == {"__init__", "broadcast_to_vllm"} <= set(vars(MarchTrainingActor))
    order = MarchTrainingActor.__mro__
    assert order.index(PlainTrainingActor) < order.index(MarchSteps) < order.index(BasePPOTrainer)
    # The lock of the engines is held around our sync.
    source = inspect.getsource(PlainTrainingActor.broadcast_to_vllm)
    held = [source.index(call) for call in ("acquire", "super().broadcast_to_vllm()", "release")]
    assert held == sorted(held)


def test_answers_and_audits_of_a_batch_are_under_the_lock_of_the_engines() -> None:
    from pipeline.training.trainer_async import PlainGenerator

    source = inspect.getsource(PlainGenerator.fit)
    steps = ("self.vllm_lock.acquire", "self.samples_generator.generate_samples(", "rollout_queue.put(")
    places = [source.rindex(step) for step in steps]
    assert places == sorted(places)
    assert '"data_loader_state_dict": self.prompts_dataloader.state_dict()' in source  # of this very batch


def test_engines_take_our_logprobs_mode_and_are_looked_up_when_they_start() -> None:
    from pipeline.training.engine_actor import LOGPROBS_MODE, MarchRolloutActor

    source = inspect.getsource(vllm_engine.create_vllm_engines)
    assert "RolloutRayActor.options(" in source
    assert f'"{LOGPROBS_MODE}" if args.algo.advantage.is_correction_level' in inspect.getsource(command_line)
    assert 'actor_kwargs["logprobs_mode"] = logprobs_mode' in source
    plain = vllm_engine.RolloutRayActor.__ray_metadata__.modified_class
    assert inspect.iscoroutinefunction(plain.__init__) and issubclass(MarchRolloutActor, plain)
    assert "vllm.AsyncEngineArgs(*args, **self.kwargs)" in inspect.getsource(plain.__init__)


def test_the_correction_holds_the_sampler_against_the_actor_of_now() -> None:
    from openrlhf.models.loss import PolicyLoss

    source = inspect.getsource(PolicyLoss.forward)
    assert "is_log_ratio = (old_log_probs - rollout_log_probs).detach()" in source
    call = inspect.getsource(samples_generator.SamplesGenerator._dispatch_prompts_to_vllm)
    assert 'logprobs=1 if self.args.algo.advantage.is_correction_level != "off"' in call


def test_trap_upstream_sends_adapters_under_names_that_no_engine_knows() -> None:
    from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer

    source = inspect.getsource(ActorPPOTrainer.broadcast_to_vllm)
    assert "model = self.actor.model.module" in source and "merge" not in source
    assert "requires_grad or not getattr(self.actor, " in source
    for read in ("param.data", "param.shape", "param.dtype", "enabled=self.strategy.args.ds.zero_stage == 3"):
        assert read in source  # what `pipeline.training.lora.MergedWeight` offers, below stage 3


def test_trap_sleep_is_switched_off_in_silence_without_sharing() -> None:
    source = inspect.getsource(command_line)
    assert "args.vllm.enable_sleep = False" in source
    assert 'args.ds.attn_implementation = "flash_attention_2"' in source  # packing exchanges it


def test_trap_the_horizon_knows_only_prompts_so_ours_counts_steps() -> None:
    from openrlhf.trainer.ppo_trainer import prepare_datasets

    assert "len(prompts_dataset)" in inspect.getsource(prepare_datasets)


def test_trap_ragged_counts_are_refused_by_the_recipe() -> None:
    from openrlhf.trainer.ray.launcher import RayActorGroup

    from pipeline.settings.recipe import load_recipe

    assert "chunk_size += 1" in inspect.getsource(RayActorGroup.async_run_method_batch)
    with pytest.raises(ValueError, match="evenly over 3 rank"):
        load_recipe("tiny", ["cluster.actor_ranks=3"])


def test_the_actor_takes_the_divisor_of_its_loss_as_an_argument() -> None:
    from openrlhf.models.loss import aggregate_loss
    from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
    from openrlhf.utils.deepspeed.deepspeed import DeepspeedStrategy

    from pipeline.training.policy import MarchActorTrainer

    wanted = ["self", "experience", "kl_ctl", "step", "loss_batch_info"]
    for trainer in (ActorPPOTrainer, MarchActorTrainer):
        assert list(inspect.signature(trainer.training_step).parameters) == wanted
    call = "self.training_step(experience, kl_ctl, step, loss_batch_info)"
    assert call in inspect.getsource(ActorPPOTrainer.ppo_train)
    assert "(loss * loss_mask).sum() / batch_num_tokens * dp_size" in inspect.getsource(aggregate_loss)
    assert "self.accumulated_gradient" in inspect.getsource(DeepspeedStrategy)


def test_the_pieces_of_openrlhfs_advantages_that_ours_are_made_of() -> None:
    from openrlhf.trainer.ppo_utils import length_penalty

    maker = experience_maker.RemoteExperienceMaker
    advantages = ["values", "rewards", "action_mask", "gamma", "lambd"]
    assert list(inspect.signature(maker.get_advantages_and_returns).parameters)[1:] == advantages
    assert list(inspect.signature(maker.get_cumulative_returns).parameters)[1:] == advantages[1:-1]
    assert list(inspect.signature(length_penalty.apply_length_penalties).parameters) == [
        "experiences",
        "args",
    ]


def test_the_figures_of_a_step_that_we_give_our_names() -> None:
    from openrlhf.trainer.ray import ppo_actor, ppo_critic

    from pipeline.record.metrics import STATUS_NAMES

    modules = (inspect.getmodule(PPOTrainer.__ray_metadata__.modified_class), ppo_actor, ppo_critic)
    source = "".join(inspect.getsource(module) for module in modules if module)
    assert all(f'"{name}"' in source for name in STATUS_NAMES)


def test_checkpoints_are_saved_inside_the_method_after_which_the_guards_act() -> None:
    plain = PPOTrainer.__ray_metadata__.modified_class
    source = inspect.getsource(plain.save_logs_and_checkpoints)
    assert 'tag = f"global_step{global_step}"' in source and "ray.get(refs)" in source
    assert "self.save_logs_and_checkpoints(global_step, status, client_states)" in inspect.getsource(
        plain.fit
    )


def test_a_run_is_over_when_no_samples_come_and_a_held_out_set_is_answered_once_a_query() -> None:
    source = inspect.getsource(PPOTrainer.__ray_metadata__.modified_class.fit)
    assert (
        "if not rollout_samples:\n                    if is_exhausted:\n                        break"
        in source
    )
    assert "global_step % self.args.eval.steps == 0 and self.eval_dataloader" in source  # never: it is inf
    generator = samples_generator.SamplesGenerator
    assert "**generate_kwargs" in inspect.getsource(generator.generate_eval_samples)
    dispatch = inspect.getsource(generator._dispatch_prompts_to_vllm)
    assert 'generate_kwargs.get("n_samples_per_prompt"' in dispatch


def test_trap_upstream_an_unscored_answer_is_rewarded_where_the_evaluation_averages() -> None:
    from openrlhf.trainer.ppo_trainer import compute_eval_metrics

    assert "torch.tensor(all_rewards)" in inspect.getsource(compute_eval_metrics)


def test_trap_only_fit_clears_the_policys_rows_and_no_warm_up_step_calls_it() -> None:
    from openrlhf.trainer.ppo_trainer import BasePPOTrainer
    from openrlhf.trainer.ray import ppo_actor

    step, update = inspect.getsource(BasePPOTrainer.train_step), inspect.getsource(BasePPOTrainer.ppo_train)
    assert 'self.actor_model_group.async_run_method_batch(method_name="append"' in step
    assert "run_actor = global_steps > self.args.critic.freezing_steps" in update
    assert inspect.getsource(ppo_actor).count("self.trainer.replay_buffer.clear()") == 1


def test_the_actor_hands_unknown_arguments_to_its_model_and_labels_of_all_tokens_to_a_function() -> None:
    from openrlhf.models import actor
    from openrlhf.trainer.ray import ppo_actor

    source = inspect.getsource(actor.Actor.forward)
    assert "position_ids=position_ids, **mm_inputs)" in source
    assert 'log_probs_from_logits(output["logits"], rolled_sequences)' in source
    assert "log_probs[:, -action_mask.shape[1] :] * action_mask.float()" in source
    step = inspect.getsource(ppo_actor.ActorPPOTrainer.training_step)
    assert "output.entropy[:, -experience.action_mask.shape[1] :]" in step  # the one use of the output


@pytest.mark.parametrize(
    ("reasons", "advice"),
    [
        (["proposer_malformed"] * 40 + ["timeout"] * 8, "a new run from a model that `march warmup` taught"),
        (["proposer_malformed"] * 8 + ["timeout"] * 40, "fix the reward server, then run the same command"),
    ],
)
def test_a_step_without_rewards_says_whose_fault_it_is(reasons: list[str], advice: str) -> None:
    from pipeline.training.trainer import TooManyUnscoredError, refuse_unscored

    refuse_unscored(reasons[:32], total=64, limit=0.5)
    with pytest.raises(
        TooManyUnscoredError, match=r"48 of 64 answers .* over guards.max_unscored_rate 0.5"
    ) as refused:
        refuse_unscored(reasons, total=64, limit=0.5)
    assert advice in str(refused.value)
