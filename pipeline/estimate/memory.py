"""GPU memory by role and by phase, in bytes on one GPU, and bytes of checkpoints.

Mixed-precision Adam holds 16 bytes a parameter: 2 of weights, 2 of gradients and 12 of optimizer (master
weights and two moments in 32 bits), and ZeRO's stages 1, 2, 3 share out optimizer, gradients, weights over
the ranks (Rajbhandari et al. 2020, sections 3.1 and 5). Activations are counted as autograd keeps them in
Hugging Face's Llama block with flash attention, after the method of Korthikanti et al. 2022, section 4; with
checkpointing only each layer's input stays and one layer is unfolded at a time. Logits count for themselves:
of packed rows OpenRLHF takes those of all tokens, prompts too, in 32 bits, and at long contexts they outweigh
all else; of others they are taken at the responses (`pipeline.training.response_logits`). Actor and reference
score a step's rows before it trains, without gradients, in micro-batches of `rollout.micro_batch_size` rows.
"""

from dataclasses import dataclass, fields

from pipeline.estimate.dimensions import Dimensions
from pipeline.settings.cluster import ClusterSettings, Colocation
from pipeline.settings.recipe import Recipe

GIB = 1024**3
_WEIGHT, _GRADIENT, _ADAM = 2, 2, 12  # bytes a parameter
_BUCKET, _LIVE = 500_000_000, 1_000_000_000  # DeepSpeed's reduce_bucket_size and stage3_max_live_parameters
_LOGIT_TRAINED = 4 + 4 + 2  # bytes: the logit and its gradient in 32 bits, the gradient in 16
_LOGIT_SCORED = 4 + 2  # bytes: the logit in 32 bits, and in 16 while it is converted


@dataclass(frozen=True)
class RoleMemory:
    """Bytes that one role holds on each of its GPUs."""

    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    buffers: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    key_values: float = 0.0

    @property
    def total(self) -> float:
        return float(sum(getattr(self, field.name) for field in fields(self)))

    @property
    def states(self) -> float:
        """What `cluster.trainer_sleep` moves away: gradients and optimizer."""
        return self.gradients + self.optimizer

    @property
    def working(self) -> float:
        """What a backward pass needs beside weights and states."""
        return self.buffers + self.activations + self.logits


@dataclass(frozen=True)
class Load:
    gpu: str
    phase: str
    used: float
    limit: float

    @property
    def fits(self) -> bool:
        return self.used <= self.limit


@dataclass(frozen=True)
class Memory:
    roles: dict[str, RoleMemory]  # actor, critic, reference, engine
    loads: tuple[Load, ...]
    scored: float  # logits of a forward pass of actor or reference, which goes before the training
    cached_tokens: float  # of one engine
    host_per_node: float  # bytes of host memory, offloaded or asleep


def memory(recipe: Recipe, dimensions: Dimensions) -> Memory:
    """Returns the memory of a recipe's roles for the longest rows that it allows."""
    cluster = recipe.cluster
    tokens = recipe.max_model_len * recipe.ppo.micro_batch_size / cluster.ring_attention
    longest = min(max(recipe.max_turn_tokens[role] for role in recipe.train_roles), recipe.max_model_len)
    with_logits = 1.0 if cluster.packing else longest / recipe.max_model_len
    roles = {"actor": _trained(cluster, dimensions, tokens, logit_tokens=tokens * with_logits, critic=False)}
    scored_tokens = recipe.max_model_len * recipe.rollout.micro_batch_size / cluster.ring_attention
    scored = _LOGIT_SCORED * dimensions.vocab_size * scored_tokens * with_logits
    if recipe.has_critic:
        roles["critic"] = _trained(cluster, dimensions, tokens, logit_tokens=0, critic=True)
    if recipe.has_reference:
        roles["reference"] = _reference(cluster, dimensions)
    roles["engine"] = _engine(cluster, dimensions, recipe.estimate.engine_overhead_gib * GIB)
    key_values = roles["engine"].key_values
    return Memory(
        roles=roles,
        loads=_loads(cluster, roles, scored=scored, process=recipe.estimate.process_gib * GIB),
        scored=scored,
        cached_tokens=cluster.engine_tensor_parallel * key_values / dimensions.key_value_bytes,
        host_per_node=_host(cluster, roles, dimensions),
    )


def num_trained(cluster: ClusterSettings, dimensions: Dimensions, *, critic: bool) -> int:
    if cluster.lora:
        return dimensions.num_adapter_parameters(cluster.lora.rank)
    return dimensions.num_critic_parameters if critic else dimensions.num_parameters


def num_frozen(cluster: ClusterSettings, dimensions: Dimensions, *, critic: bool) -> int:
    """Parameters that only LoRA leaves as they are."""
    whole = dimensions.num_critic_parameters if critic else dimensions.num_parameters
    return whole if cluster.lora else 0


def _trained(
    cluster: ClusterSettings, dimensions: Dimensions, tokens: float, *, logit_tokens: float, critic: bool
) -> RoleMemory:
    stage, ranks = cluster.zero_stage, cluster.critic_ranks if critic else cluster.actor_ranks
    trained = num_trained(cluster, dimensions, critic=critic)
    whole = trained + num_frozen(cluster, dimensions, critic=critic)
    optimizer = _ADAM * trained / (ranks if stage >= 1 else 1)
    live = min(_LIVE, whole) * _WEIGHT if stage == 3 and ranks > 1 else 0
    return RoleMemory(
        weights=_WEIGHT * whole / (ranks if stage == 3 else 1),
        gradients=_GRADIENT * trained / (ranks if stage >= 2 else 1),
        optimizer=0.0 if cluster.adam_offload else optimizer,
        buffers=min(_BUCKET, trained) * _GRADIENT + live,
        activations=activation_bytes(dimensions, checkpointing=cluster.gradient_checkpointing) * tokens,
        logits=_LOGIT_TRAINED * dimensions.vocab_size * logit_tokens,
    )


def _reference(cluster: ClusterSettings, dimensions: Dimensions) -> RoleMemory:
    weights = _WEIGHT * dimensions.num_parameters
    if cluster.zero_stage < 3:  # OpenRLHF shards the reference at stage 3 only
        return RoleMemory(weights=weights)
    live = min(_LIVE, dimensions.num_parameters) * _WEIGHT if cluster.actor_ranks > 1 else 0
    return RoleMemory(weights=weights / cluster.actor_ranks, buffers=live)


def _engine(cluster: ClusterSettings, dimensions: Dimensions, overhead: float) -> RoleMemory:
    """vLLM takes its fraction of the GPU whatever it needs: what is left holds keys and values."""
    reserved = cluster.engine_memory_fraction * cluster.gpu_memory_gib * GIB
    weights = _WEIGHT * dimensions.num_parameters / cluster.engine_tensor_parallel
    return RoleMemory(weights=weights, buffers=overhead, key_values=max(reserved - weights - overhead, 0.0))


def activation_bytes(dimensions: Dimensions, *, checkpointing: bool) -> float:
    """Bytes a token that autograd keeps: of all layers, or with checkpointing of their inputs and one layer.

    A layer keeps, in bfloat16, queries, keys, values, the attention's output and four tensors of the gated
    MLP; and around each of its two norms two tensors in 32 bits and one in 16.
    """
    attention = 2 * (2 * dimensions.query_size + 2 * dimensions.key_size)
    gated = 2 * 4 * dimensions.intermediate_size
    norms = 2 * (4 + 4 + 2) * dimensions.hidden_size
    layer = attention + gated + norms
    if not checkpointing:
        return dimensions.num_hidden_layers * layer
    return dimensions.num_hidden_layers * 2 * dimensions.hidden_size + layer


def _loads(
    cluster: ClusterSettings, roles: dict[str, RoleMemory], *, scored: float, process: float
) -> tuple[Load, ...]:
    limit = cluster.gpu_memory_gib * GIB
    actor, engine = roles["actor"], roles["engine"]
    critic, reference = roles.get("critic", RoleMemory()), roles.get("reference", RoleMemory())
    if cluster.colocate is Colocation.ALL:
        used = _shared_loads(cluster, actor, critic, reference, engine, scored=scored)
        processes = len(roles) * process
        return tuple(Load("shared by all", phase, one + processes, limit) for phase, one in used.items())
    loads = [Load("engine", "rollout", engine.total + process, limit)]
    scoring = actor.total - actor.activations - actor.logits + scored
    if cluster.colocate is Colocation.ACTOR_REF and "reference" in roles:
        beside = reference.total + 2 * process
        loads.append(Load("actor + reference", "scoring", scoring + beside, limit))
        loads.append(Load("actor + reference", "training", actor.total + beside, limit))
    else:
        loads.append(Load("actor", "scoring", scoring + process, limit))
        loads.append(Load("actor", "training", actor.total + process, limit))
        if "reference" in roles:
            loads.append(Load("reference", "scoring", reference.total + scored + process, limit))
    if "critic" in roles:
        loads.append(Load("critic", "training", critic.total + process, limit))
    return tuple(loads)


def _shared_loads(
    cluster: ClusterSettings,
    actor: RoleMemory,
    critic: RoleMemory,
    reference: RoleMemory,
    engine: RoleMemory,
    *,
    scored: float,
) -> dict[str, float]:
    """Bytes of each phase; OpenRLHF trains critic and actor in turn only with trainer_sleep."""
    resident = actor.weights + critic.weights + reference.weights
    states = 0.0 if cluster.trainer_sleep else actor.states + critic.states
    awake = 0.0 if cluster.engine_sleep else engine.total
    passes = (actor.states + actor.working, critic.states + critic.working)
    at_once = max(passes) if cluster.trainer_sleep else sum(passes)
    return {
        "rollout": resident + states + engine.total,
        "scoring": resident + states + awake + actor.buffers + scored,
        "training": resident + awake + at_once,
    }


def _host(cluster: ClusterSettings, roles: dict[str, RoleMemory], dimensions: Dimensions) -> float:
    """Host memory of a full node: offloaded states and weights, and engines asleep (vLLM's level 1)."""
    trained = [(roles["actor"], cluster.actor_ranks, False)]
    trained += [(roles["critic"], cluster.critic_ranks, True)] if "critic" in roles else []
    held = 0.0
    for role, ranks, critic in trained:
        here = min(ranks, cluster.gpus_per_node)
        if cluster.trainer_sleep:
            held += here * role.states
        if cluster.adam_offload:  # the optimizer, and the gradients in 32 bits that it reads
            held += here * (_ADAM + 4) * num_trained(cluster, dimensions, critic=critic) / ranks
    if cluster.engine_sleep:
        gpus = min(cluster.num_engines * cluster.engine_tensor_parallel, cluster.gpus_per_node)
        held += gpus * roles["engine"].weights
    return held


@dataclass(frozen=True)
class Storage:
    """Bytes of a run's checkpoints and of its model."""

    checkpoint: float  # actor and critic, one step
    num_written: int  # over the run
    num_kept: int
    model: float
    num_models: int  # that of the end, and those beside checkpoints or the best

    @property
    def written(self) -> float:
        """Bytes that leave the machine if every checkpoint is uploaded."""
        return self.num_written * self.checkpoint + self.num_models * self.model

    @property
    def kept(self) -> float:
        """Bytes that lie there at the end."""
        return self.num_kept * self.checkpoint + self.num_models * self.model


def storage(recipe: Recipe, dimensions: Dimensions, *, num_steps: int) -> Storage:
    """Returns what a run of `num_steps` writes and keeps.

    DeepSpeed saves 12 bytes of optimizer a trained parameter and, below stage 3, the weights in 16 bits
    beside them; frozen weights are saved at every stage. The model at the end is its weights in 16 bits.
    """
    num_written = num_steps // recipe.checkpoint.every
    models = (False, True) if recipe.has_critic else (False,)
    return Storage(
        checkpoint=sum(_checkpoint(recipe, dimensions, critic=critic) for critic in models),
        num_written=num_written,
        num_kept=min(num_written, recipe.checkpoint.keep),
        model=_WEIGHT * dimensions.num_parameters,
        num_models=1 + (num_written if recipe.checkpoint.models else recipe.held_out is not None),
    )


def _checkpoint(recipe: Recipe, dimensions: Dimensions, *, critic: bool) -> float:
    cluster = recipe.cluster
    trained = num_trained(cluster, dimensions, critic=critic)
    each = _ADAM + (0 if cluster.zero_stage == 3 else _WEIGHT)
    return each * trained + _WEIGHT * num_frozen(cluster, dimensions, critic=critic)
