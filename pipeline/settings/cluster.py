"""What runs where: GPUs by role, sharding, offloading and LoRA, with the rules that keep a run from waiting
for ever, from running out of memory late, or from training something else than the recipe says.

`pipeline.launch.openrlhf_args` maps these settings to OpenRLHF's arguments, `pipeline.estimate` says what
they cost. OpenRLHF's own dynamic batches are left out on purpose: they drop the Checker's rows
(`tests/test_seams.py`); micro-batches by tokens are made by `pipeline.training.buffer`.
"""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from reward.config import Settings


class Colocation(StrEnum):
    """Which models share GPUs."""

    NONE = "none"
    ACTOR_REF = "actor_ref"  # actor and reference; both run only while the engines wait
    ALL = "all"  # OpenRLHF's hybrid engine: all models and the rollout engines


class LoraSettings(Settings):
    """Low-rank adapters on all linear layers, in place of all weights (Hu et al. 2021)."""

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1, description="The adapter's output is scaled by alpha / rank.")


class ClusterSettings(Settings):
    ray_address: str = Field(
        default="local",
        description='"local" starts Ray on this machine and stops it at the end; "auto" joins a cluster.',
    )
    num_nodes: int = Field(default=1, ge=1)
    gpus_per_node: int = Field(default=8, ge=1)
    gpu_memory_gib: float = Field(default=80.0, gt=0, description="Of one GPU; for the estimate only.")
    colocate: Colocation = Colocation.NONE
    num_engines: int = Field(default=1, ge=1)
    engine_tensor_parallel: int = Field(default=1, ge=1)
    engine_memory_fraction: float = Field(default=0.5, gt=0, le=1)
    engine_sleep: bool = Field(
        default=False, description="Engines leave the GPU between rollouts; with colocate: all."
    )
    actor_ranks: int = Field(default=1, ge=1, description="GPUs of the actor, and of the reference.")
    critic_ranks: int = Field(default=1, ge=1)
    zero_stage: int = Field(default=2, ge=0, le=3)
    trainer_sleep: bool = Field(
        default=False,
        description="Optimizer states leave the GPU when their model does not train; with colocate: all.",
    )
    adam_offload: bool = Field(default=False, description="Adam runs on the CPU; slow, but saves most.")
    gradient_checkpointing: bool = Field(
        default=False, description="Activations are computed twice and hardly stored."
    )
    attention: str = Field(default="sdpa", description="flash_attention_2 needs flash-attn and a GPU.")
    packing: bool = Field(default=False, description="No padding in micro-batches; needs flash attention.")
    ring_attention: int = Field(
        default=1, ge=1, description="GPUs that share one sequence; needs packing and ring-flash-attn."
    )
    lora: LoraSettings | None = Field(default=None, description="All weights are trained when left out.")
    cpu_threads: Literal["auto"] | PositiveInt = Field(
        default="auto",
        description="Of each process, without a GPU. auto: OMP_NUM_THREADS where it is set, else the cores, "
        "shared out again in each phase of a step.",
    )
    cpu_dtype: Literal["auto", "bfloat16", "float32"] = Field(
        default="auto",
        description="What matrices are multiplied in, without a GPU; trained weights have 32 bits. auto: "
        "bfloat16 where the CPU is faster in it, which is measured.",
    )

    @model_validator(mode="after")
    def _ray_can_place_it(self) -> Self:
        if self.num_nodes > 1 and self.ray_address == "local":
            raise ValueError(
                f"num_nodes: {self.num_nodes} with ray_address: local, which is one machine, so Ray would "
                "wait for ever; start Ray on every node and set ray_address: auto"
            )
        for name, ranks in (("actor_ranks", self.actor_ranks), ("critic_ranks", self.critic_ranks)):
            if ranks > self.gpus_per_node and ranks % self.gpus_per_node:
                raise ValueError(
                    f"{name}: {ranks} fills no whole nodes of {self.gpus_per_node} GPUs; use a multiple"
                )
        if self.gpus_per_node % self.engine_tensor_parallel:
            raise ValueError(
                f"engine_tensor_parallel: {self.engine_tensor_parallel} does not divide gpus_per_node "
                f"({self.gpus_per_node}), so an engine would lie across nodes; use a divisor"
            )
        return self

    @model_validator(mode="after")
    def _shared_gpus_fit_together(self) -> Self:
        engine_gpus = self.num_engines * self.engine_tensor_parallel
        if self.colocate is Colocation.ALL and engine_gpus != self.actor_ranks:
            raise ValueError(
                f"num_engines: {self.num_engines} x engine_tensor_parallel {self.engine_tensor_parallel} = "
                f"{engine_gpus} GPUs, but actor_ranks: {self.actor_ranks}; with colocate: all they share "
                "the same GPUs, so make them equal"
            )
        for name, asleep in (("engine_sleep", self.engine_sleep), ("trainer_sleep", self.trainer_sleep)):
            if asleep and self.colocate is not Colocation.ALL:
                raise ValueError(
                    f"{name}: true with colocate: {self.colocate}, where nobody uses the memory that it "
                    "frees; set colocate: all or leave it out"
                )
        if self.trainer_sleep and self.adam_offload:
            raise ValueError("trainer_sleep: has no effect with adam_offload; leave one of them out")
        return self

    @model_validator(mode="after")
    def _sharding_supports_it(self) -> Self:
        for name, wanted in (("trainer_sleep", self.trainer_sleep), ("adam_offload", self.adam_offload)):
            if wanted and self.zero_stage == 0:
                raise ValueError(f"{name}: DeepSpeed offloads nothing at zero_stage 0; use 1, 2 or 3")
        if self.lora and self.zero_stage == 3:
            raise ValueError(
                "lora: at zero_stage: 3 adapters and weights lie on different GPUs and cannot be added up "
                "for the engines; set zero_stage: 2"
            )
        return self

    @model_validator(mode="after")
    def _attention_supports_it(self) -> Self:
        if self.packing and "flash_attention" not in self.attention:
            raise ValueError(
                f"packing: true with attention: {self.attention}, which OpenRLHF would silently exchange; "
                "set attention: flash_attention_2"
            )
        if self.ring_attention > 1 and not self.packing:
            raise ValueError(f"ring_attention: {self.ring_attention} needs packing: true")
        for name, ranks in (("actor_ranks", self.actor_ranks), ("critic_ranks", self.critic_ranks)):
            if ranks % self.ring_attention:
                raise ValueError(
                    f"ring_attention: {self.ring_attention} does not divide {name} ({ranks}); use a divisor"
                )
        return self

    def num_gpus(self, *, critic: bool, reference: bool) -> int:
        """GPUs that a run takes, with or without those two models."""
        if self.colocate is Colocation.ALL:
            return self.actor_ranks
        shared = self.colocate is Colocation.ACTOR_REF
        return (
            self.num_engines * self.engine_tensor_parallel
            + self.actor_ranks * (2 if reference and not shared else 1)
            + (self.critic_ranks if critic else 0)
        )


def unreachable_from_nodes(host: str, *, num_nodes: int) -> str | None:
    """Why rollout engines on other nodes cannot reach the reward servers, if they cannot.

    No rule of the recipe itself, since only the machine that starts the run knows its address.
    """
    if num_nodes == 1 or not (host == "localhost" or host.startswith("127.")):
        return None
    return (
        f"reward.host: {host} is this machine alone, but engines on {num_nodes} nodes ask the reward servers "
        "there; set it to this machine's address in the cluster"
    )
