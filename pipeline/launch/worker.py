"""What runs inside a training worker: Ray, the reward servers beside it, and OpenRLHF's command line with our
trainer.

OpenRLHF's command line imports `PPOTrainer`, `PPOTrainerAsync` and the actors of policy, critic and reference
from their modules when it runs, and looks `RolloutRayActor` up when it starts engines, so putting ours there
first is enough; nothing of OpenRLHF is copied or changed on disk.
"""

import os
import runpy
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline import cpu
from pipeline.launch import ray_worker
from pipeline.launch.build_locks import drop_stale_locks, extensions_folder
from pipeline.launch.cpu_speed import for_cpus, threads_of
from pipeline.launch.openrlhf_args import openrlhf_arguments
from pipeline.launch.ray_start import demand_token, start_ray
from pipeline.launch.reward_servers import held_ports, registry_name, reward_servers, server_configs
from pipeline.record.run import RunState
from pipeline.rows import num_steps
from pipeline.training.trainer_settings import SETTINGS_VARIABLE, Batching, TrainerSettings
from reward import telemetry
from reward.samplers.start import demand_libraries

_KEYS = ("MARCH_REWARD_TOKEN", "MARCH_SIGNING_KEY")


def run_openrlhf(state: RunState, folder: Path) -> None:
    """Trains to the end and saves the model under `folder / "model"`."""
    demand_token(state.recipe)
    telemetry.is_asked_for()  # a wrong setting ends the run here and not in some actor
    cpu.install()
    drop_stale_locks(extensions_folder())
    import ray
    import torch

    cuda = torch.cuda.is_available()
    if not cuda:
        demand_libraries()
    # Of this run alone, unless set: what opens its reward server, and what proves its answers to be its own.
    keys = {name: os.environ.get(name) or secrets.token_urlsafe(32) for name in _KEYS}
    with held_ports(state.recipe.reward) as ports:
        environment = _environment(state, folder, ports=ports, keys=keys, cuda=cuda)
        os.environ.update(environment)
        if not cuda:
            print(
                "march: no GPU, so trained weights have 32 bits (OpenRLHF's --ds.param_dtype has no such "
                f"choice), and matrices are multiplied in {environment[cpu.DTYPE_VARIABLE]}"
            )
        shown, secret = ray_worker.parted(environment)
        run = state.mlflow_run_id
        address = start_ray(state.recipe, shown | ray_worker.key_of(run), cuda=cuda)
        configs = server_configs(state, address=address, ports=ports)
        with ray_worker.handed_over(run, secret), reward_servers(configs, folder):
            _run_command_line(state, folder, cuda=cuda)
    ray.shutdown()


def _environment(
    state: RunState, folder: Path, *, ports: Sequence[int], keys: dict[str, str], cuda: bool
) -> dict[str, str]:
    recipe = state.recipe
    settings = TrainerSettings(
        recipe=recipe,
        run_dir=folder,
        registry=registry_name(state),
        num_steps=num_steps(recipe, state.num_rows),
        reward_urls=tuple(f"http://{recipe.reward.host}:{port}" for port in ports),
        batching=Batching.of(recipe),
        threads=None if cuda else threads_of(recipe),
    )
    variables = ray_worker.passed_on() | ({} if cuda else cpu.ENVIRONMENT | for_cpus(recipe))
    return variables | {
        SETTINGS_VARIABLE: settings.model_dump_json(),
        **keys,
        # DeepSpeed compiles with the ninja beside this Python, whether or not the environment is active.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def _run_command_line(state: RunState, folder: Path, *, cuda: bool) -> None:
    import openrlhf.trainer.ppo_trainer
    import openrlhf.trainer.ppo_trainer_async
    import openrlhf.trainer.ray.launcher
    import openrlhf.trainer.ray.ppo_actor
    import openrlhf.trainer.ray.ppo_critic
    import openrlhf.trainer.ray.vllm_engine
    import ray

    from pipeline.training.critic import MarchCriticActor
    from pipeline.training.engine_actor import ENGINE_SLOTS, MarchRolloutActor
    from pipeline.training.policy import MarchPolicyActor
    from pipeline.training.rendezvous import MarchReferenceActor
    from pipeline.training.trainer import MarchTrainer
    from pipeline.training.trainer_async import MarchAsyncTrainer

    arguments = openrlhf_arguments(state.recipe, folder, rows=state.rows, num_rows=state.num_rows, cuda=cuda)
    openrlhf.trainer.ppo_trainer.PPOTrainer = ray.remote(MarchTrainer)
    openrlhf.trainer.ppo_trainer_async.PPOTrainerAsync = ray.remote(MarchAsyncTrainer)
    openrlhf.trainer.ray.vllm_engine.RolloutRayActor = ray.remote(max_concurrency=ENGINE_SLOTS)(
        MarchRolloutActor
    )
    openrlhf.trainer.ray.ppo_actor.PolicyModelActor = ray.remote(num_gpus=1)(MarchPolicyActor)
    openrlhf.trainer.ray.ppo_critic.CriticModelActor = ray.remote(num_gpus=1)(MarchCriticActor)
    openrlhf.trainer.ray.launcher.ReferenceModelActor = ray.remote(num_gpus=1)(MarchReferenceActor)
    sys.argv = ["openrlhf.cli.train_ppo_ray", *arguments]
    runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
