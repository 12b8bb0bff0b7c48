"""One data-parallel rank of OpenRLHF's policy and critic, without Ray:

    python tests/rank_process.py RANK WORLD_SIZE PORT FOLDER

It trains one step on its share of `FOLDER/step.pt` (OpenRLHF's arguments and micro-batches, split over ranks
as OpenRLHF splits them), with OpenRLHF's own actors where the step says `plain`; rank 0 writes
`FOLDER/result.pt`. It imports nothing of the tests, since a package that OpenRLHF installs has their name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pipeline import cpu

os.environ.update(cpu.ENVIRONMENT)
cpu.install()

import torch  # noqa: E402
from openrlhf.utils import get_strategy  # noqa: E402

from pipeline.training.critic import MarchCriticActor, PlainCriticModelActor  # noqa: E402
from pipeline.training.policy import MarchPolicyActor, PlainPolicyModelActor  # noqa: E402

MAX_STEPS = 10  # the horizon of the learning rates
WANTED = (
    *("policy_loss", "actor_grad_norm", "actor_lr", "ppo_clip_ratio", "ppo_kl", "is_filter_ratio"),
    *("critic_loss", "critic_grad_norm", "critic_lr"),
)


def figures(status: dict[str, Any], model: torch.nn.Module) -> dict[str, Any]:
    """What must not depend on ranks and micro-batches: the update's figures, and the weights after it.

    OpenRLHF's own means of losses by tokens do depend on them, and so does its critic's gradient norm.
    """
    weights = torch.cat([parameter.detach().float().flatten() for parameter in model.parameters()])
    return {name: float(status[name]) for name in WANTED if name in status} | {"weights": weights}


def main(rank: int, world_size: int, port: int, folder: Path) -> None:
    step = torch.load(folder / "step.pt", weights_only=False)
    args, batches = step["args"], step["batches"]
    place = (world_size, rank, "127.0.0.1", port)
    kinds = (
        (PlainPolicyModelActor, PlainCriticModelActor)
        if step["plain"]
        else (MarchPolicyActor, MarchCriticActor)
    )
    policy, critic = (kind(*place) for kind in kinds)
    policy.init_model_from_pretrained(get_strategy(args), args.actor.model_name_or_path, max_steps=MAX_STEPS)
    has_critic = batches[0].values is not None
    if has_critic:
        critic.init_model_from_pretrained(
            get_strategy(args), args.critic.model_name_or_path, max_steps=MAX_STEPS
        )
    share = len(batches) // world_size
    for batch in batches[rank * share : (rank + 1) * share]:
        policy.append(batch)
        if has_critic:
            critic.append(batch)
    result = {"policy": figures(policy.fit(kl_ctl=0.0), policy.actor.model.module)}
    if has_critic:
        result["critic"] = figures(critic.fit(), critic.critic.module)
    if rank == 0:
        torch.save(result, folder / "result.pt")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]))
