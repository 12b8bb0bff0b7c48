"""Placement, sharding, LoRA: mapped to OpenRLHF's arguments, refused where it would go wrong in silence."""

import pytest

from pipeline.settings.cluster import ClusterSettings, Colocation
from pipeline.settings.recipe import load_recipe
from tests.openrlhf_parser import arguments_of, checked_by_openrlhf, parse_with_openrlhf

HYBRID = "llama31_8b_stem"


@pytest.mark.parametrize(
    ("recipe", "overrides", "says"),
    [
        (
            HYBRID,
            ["cluster.num_engines=4"],
            "num_engines: 4 x engine_tensor_parallel 1 = 4 GPUs, but actor_ra",
        ),
        (HYBRID, ["cluster.critic_ranks=4"], "cluster.critic_ranks: 4 differs from actor_ranks 8"),
        (HYBRID, ["cluster.colocate=none"], "engine_sleep: true with colocate: none"),
        (
            HYBRID,
            ["cluster.colocate=none", "cluster.engine_sleep=false"],
            "trainer_sleep: true with colocate",
        ),
        (HYBRID, ["cluster.adam_offload=true"], "trainer_sleep: has no effect with adam_offload"),
        (HYBRID, ["cluster.zero_stage=0"], "trainer_sleep: DeepSpeed offloads nothing at zero_stage 0"),
        (HYBRID, ["cluster.lora={rank: 8}"], "lora: at zero_stage: 3"),
        (HYBRID, ["cluster.attention=sdpa"], "packing: true with attention: sdpa"),
        (HYBRID, ["cluster.packing=false"], "ring_attention: 4 needs packing: true"),
        (HYBRID, ["cluster.ring_attention=3"], "ring_attention: 3 does not divide actor_ranks (8)"),
        (HYBRID, ["cluster.num_nodes=2"], "num_nodes: 2 with ray_address: local"),
        (
            HYBRID,
            ["cluster.engine_tensor_parallel=3"],
            "engine_tensor_parallel: 3 does not divide gpus_per_no",
        ),
        (HYBRID, ["cluster.gpus_per_node=4"], "cluster: its roles take 8 GPUs, but 1 node(s) x 4 are 4"),
        (HYBRID, ["cluster.gpus_per_node=3"], "actor_ranks: 8 fills no whole nodes of 3 GPUs"),
        (HYBRID, ["rollout.micro_batch_size=32"], "rollout.micro_batch_size: 32 makes 1 micro-batches"),
        ("tiny", ["cluster.gpus_per_node=3"], "cluster: its roles take 4 GPUs"),
        ("tiny", ["cluster.colocate=some"], "cluster.colocate"),
        ("tiny", ["rollout.max_staleness=1"], "rollout.max_staleness: 1: without ppo.correction answers of"),
        (
            "tiny",
            ["rollout.max_staleness=2", "ppo.correction.level=token", "cluster.colocate=all"],
            "rollout.max_staleness: 2 with cluster.colocate: all, where engines and trainer take turns",
        ),
        ("tiny", ["ppo.correction={level: seq, mode: clip}"], "ppo.correction: mode: clip with level seq"),
        ("tiny", ["ppo.correction={low: 5, high: 2}"], "ppo.correction: low: 5 is not below high 2"),
    ],
)
def test_what_would_hang_or_be_ignored_is_one_clear_line(
    recipe: str, overrides: list[str], says: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_recipe(recipe, overrides)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value) and "{'name'" not in str(caught.value)


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        (
            HYBRID,
            ["preset=march", "ppo.gamma=1.0", "cluster.critic_ranks=4"],
        ),  # no critic is placed
        (HYBRID, ["cluster.num_engines=4", "cluster.engine_tensor_parallel=2"]),
        ("tiny", ["cluster.colocate=all"]),
        ("tiny", ["cluster.colocate=actor_ref", "cluster.gpus_per_node=3"]),
    ],
)
def test_what_fits_together_is_accepted(recipe: str, overrides: list[str]) -> None:
    load_recipe(recipe, overrides)


@pytest.mark.parametrize(
    ("colocate", "critic", "reference", "gpus"),
    [
        (Colocation.NONE, True, True, 4 + 4 + 4 + 2),
        (Colocation.NONE, False, False, 4 + 4),
        (Colocation.ACTOR_REF, True, True, 4 + 4 + 2),
        (Colocation.ALL, True, True, 4),
    ],
)
def test_gpus_are_counted_as_ray_will_place_them(
    colocate: Colocation, critic: bool, reference: bool, gpus: int
) -> None:
    cluster = ClusterSettings(
        colocate=colocate, num_engines=2, engine_tensor_parallel=2, actor_ranks=4, critic_ranks=2
    )
    assert cluster.num_gpus(critic=critic, reference=reference) == gpus


def test_settings_reach_openrlhfs_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe("llama31_8b_stem_4x8", ["cluster.trainer_sleep=false", "cluster.adam_offload=true"])
    parsed = parse_with_openrlhf(arguments_of(recipe, cuda=True), monkeypatch)
    assert (parsed.actor.num_nodes, parsed.actor.num_gpus_per_node) == (4, 8)
    assert (parsed.ref.num_nodes, parsed.ref.num_gpus_per_node) == (4, 8)
    assert (parsed.critic.num_nodes, parsed.critic.num_gpus_per_node) == (4, 8)
    assert parsed.train.colocate_all and not parsed.train.colocate_actor_ref
    assert parsed.vllm.enable_sleep and not parsed.ds.enable_sleep and parsed.ds.adam_offload
    assert parsed.actor.gradient_checkpointing_enable and parsed.ds.packing_samples
    assert (parsed.vllm.num_engines, parsed.ds.ring_attn_size, parsed.ds.zero_stage) == (32, 4, 3)
    assert not parsed.vllm.enforce_eager and not parsed.ref.offload


def test_the_asynchronous_mode_and_its_correction_reach_openrlhf(monkeypatch: pytest.MonkeyPatch) -> None:
    correction = "{level: token, mode: clip, low: 0.2, high: 2.0}"
    recipe = load_recipe("tiny", ["rollout.max_staleness=2", f"ppo.correction={correction}"])
    parsed = checked_by_openrlhf(arguments_of(recipe), monkeypatch)
    assert (parsed.train.async_enable, parsed.train.async_queue_size) == (True, 2)
    assert parsed.train.partial_rollout_enable is False  # answers would straddle weight syncs
    advantage = parsed.algo.advantage
    assert (advantage.is_correction_level, advantage.is_correction_mode) == ("token", "clip")
    assert advantage.is_correction_gating == "ratio"
    assert advantage.is_correction_threshold == [0.2, 2.0]
    plain = checked_by_openrlhf(arguments_of(load_recipe("tiny")), monkeypatch)
    assert not plain.train.async_enable and plain.algo.advantage.is_correction_level == "off"


def test_adapters_are_on_all_linear_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    lora = parse_with_openrlhf(arguments_of(load_recipe("llama31_8b_stem_lora_1gpu")), monkeypatch).ds.lora
    assert (lora.rank, lora.alpha, lora.dropout, lora.target_modules) == (32, 64, 0.0, "all-linear")


def test_without_lora_or_sharing_no_such_argument_is_passed() -> None:
    arguments = arguments_of(load_recipe("tiny"))
    assert not [part for part in arguments if "lora" in part or "colocate" in part or "sleep" in part]


def test_a_run_on_several_nodes_needs_a_reward_server_that_they_reach() -> None:
    from pipeline.train import train

    with pytest.raises(
        ValueError, match=r"reward.host: 127.0.0.1 is this machine alone, but engines on 4 no"
    ):
        train("llama31_8b_stem_4x8")
