"""A recipe as OpenRLHF's command line: pure, so that `--dry-run` prints exactly what a run passes.

Every argument here is one of OpenRLHF 0.11.2's own (`tests/test_recipes.py` parses them with its
parser).
"""

from pathlib import Path

from pipeline.launch.held_out_rows import held_out_file
from pipeline.rows import num_steps
from pipeline.settings.cluster import Colocation, LoraSettings
from pipeline.settings.ppo import CorrectionSettings, OptimizerSettings
from pipeline.settings.recipe import Recipe

AGENT_FILE = Path(__file__).parents[1] / "training" / "agent.py"


def openrlhf_arguments(recipe: Recipe, folder: Path, *, rows: Path, num_rows: int, cuda: bool) -> list[str]:
    """Returns the arguments of `openrlhf.cli.train_ppo_ray` for a run.

    Args:
        recipe: the run.
        folder: of the run: for checkpoints, the final model and the held-out rows.
        rows: the JSONL that `pipeline.data.prepare` wrote.
        num_rows: its rows.
        cuda: whether this machine has an NVIDIA GPU; without one the weights travel over gloo.
    """
    max_steps = num_steps(recipe, num_rows)
    pairs = (
        _placement(recipe)
        | _rollout(recipe, cuda=cuda)
        | _update(recipe, max_optimizer_steps=max_steps * recipe.ppo.epochs)
        | {
            "train.agent_func_path": AGENT_FILE,
            "train.seed": recipe.seed,
            "data.prompt_dataset": rows,
            "data.input_key": "input",
            "data.label_key": "label",
            "data.max_samples": max_steps * recipe.rollout.batch_size,
            "ckpt.path": folder / "checkpoints",
            "ckpt.output_dir": folder / "model",
            "ckpt.save_steps": recipe.checkpoint.every,
            "ckpt.max_num": recipe.checkpoint.keep,
            "ckpt.best_metric_key": "none",
        }
    )
    if held_out := held_out_file(recipe, folder):  # when they are answered our trainer says
        pairs["eval.dataset"] = held_out
    arguments = [part for key, value in pairs.items() for part in (f"--{key}", str(value))]
    arguments += lora_arguments(recipe.cluster.lora) + _correction(recipe.ppo.correction)
    return arguments + _flags(recipe, cuda=cuda)


def _placement(recipe: Recipe) -> dict[str, object]:
    cluster = recipe.cluster
    placed = {"actor": cluster.actor_ranks, "ref": cluster.actor_ranks, "critic": cluster.critic_ranks}
    arguments: dict[str, object] = {}
    for name, ranks in placed.items():
        each = min(ranks, cluster.gpus_per_node)
        arguments |= {f"{name}.num_nodes": ranks // each, f"{name}.num_gpus_per_node": each}
    return arguments | {
        "vllm.num_engines": cluster.num_engines,
        "vllm.tensor_parallel_size": cluster.engine_tensor_parallel,
        "vllm.gpu_memory_utilization": cluster.engine_memory_fraction,
        "ds.zero_stage": cluster.zero_stage,
        "ds.param_dtype": "bf16",
        "ds.attn_implementation": cluster.attention,
        "ds.ring_attn_size": cluster.ring_attention,
        "actor.model_name_or_path": recipe.model_path,
        **({"critic.model_name_or_path": recipe.model_path} if recipe.has_critic else {}),
    }


def lora_arguments(lora: LoraSettings | None) -> list[str]:
    """LoRA's arguments, of every trainer; OpenRLHF takes all linear layers where none is named.

    A dropout would not be in the old log-probabilities, so PPO's ratio would be noisy from the start.
    """
    if lora is None:
        return []
    arguments = ["--ds.lora.rank", str(lora.rank), "--ds.lora.alpha", str(lora.alpha)]
    return [*arguments, "--ds.lora.dropout", "0.0"]


def _correction(correction: CorrectionSettings) -> list[str]:
    """The off-policy correction's arguments; nothing when it is off, as in OpenRLHF itself."""
    if correction.level == "off":
        return []
    prefix = "--algo.advantage.is_correction"
    arguments = [f"{prefix}_level", correction.level, f"{prefix}_mode", correction.mode]
    return [*arguments, f"{prefix}_threshold", str(correction.low), str(correction.high)]


def _flags(recipe: Recipe, *, cuda: bool) -> list[str]:
    cluster = recipe.cluster
    flags = {
        "data.apply_chat_template": True,
        "ckpt.load_enable": True,
        "ckpt.save_hf": recipe.checkpoint.models,
        "train.async_enable": recipe.rollout.max_staleness > 0,
        "train.colocate_all": cluster.colocate is Colocation.ALL,
        "train.colocate_actor_ref": cluster.colocate is Colocation.ACTOR_REF,
        "vllm.enable_prefix_caching": True,
        "vllm.enable_sleep": cluster.engine_sleep,
        "vllm.enforce_eager": not cuda,
        "ds.enable_sleep": cluster.trainer_sleep,
        "ds.adam_offload": cluster.adam_offload,
        "ds.packing_samples": cluster.packing,
        "actor.gradient_checkpointing_enable": cluster.gradient_checkpointing,  # the critic's, too
    }
    return [f"--{flag}" for flag, on in flags.items() if on]


def _rollout(recipe: Recipe, *, cuda: bool) -> dict[str, object]:
    rollout = recipe.rollout
    # OpenRLHF's queue of this many batches is what bounds the staleness (`tests/test_staleness.py`).
    queue = {"train.async_queue_size": rollout.max_staleness} if rollout.max_staleness else {}
    return queue | {
        "vllm.sync_backend": "nccl" if cuda else "gloo",
        "data.max_len": recipe.max_model_len,
        "rollout.max_new_tokens": rollout.max_response_tokens,
        "rollout.batch_size": rollout.batch_size,
        "rollout.n_samples_per_prompt": rollout.samples_per_query,
        "rollout.micro_batch_size": rollout.micro_batch_size,
        "rollout.temperature": rollout.temperature,
        "rollout.top_p": rollout.top_p,
    }


def _update(recipe: Recipe, *, max_optimizer_steps: int) -> dict[str, object]:
    ppo = recipe.ppo
    arguments: dict[str, object] = {
        "train.batch_size": recipe.rows_per_step,
        "train.micro_batch_size": ppo.micro_batch_size,
        "train.num_episodes": 1,
        "train.max_epochs": ppo.epochs,
        "algo.advantage.estimator": ppo.estimator.value,
        "algo.advantage.gamma": ppo.gamma,
        "algo.advantage.lambd": ppo.lambd,
        # Above 0 OpenRLHF loads a reference model; the weight itself is our trainer's.
        "algo.kl.init_coef": ppo.kl_coef if recipe.has_reference else 0.0,
        "actor.eps_clip": ppo.eps_clip,
        "critic.value_clip": ppo.value_clip,
    }
    if ppo.truncated_reward is not None:
        arguments["reward.stop_properly_penalty_coef"] = ppo.truncated_reward
    for name, optimizer in (("actor", ppo.actor), ("critic", ppo.critic)):
        arguments |= {
            f"{name}.adam.lr": optimizer.lr,
            f"{name}.max_norm": optimizer.max_norm,
            f"{name}.lr_scheduler": ppo.lr_scheduler,
            f"{name}.lr_warmup_ratio": _warmup_ratio(optimizer, max_optimizer_steps),
        }
    return arguments


def _warmup_ratio(optimizer: OptimizerSettings, max_steps: int) -> float:
    """OpenRLHF takes ceil(steps * ratio); half a step less gives `warmup_steps` whatever the rounding."""
    return 0.0 if optimizer.warmup_steps == 0 else (optimizer.warmup_steps - 0.5) / max_steps
