"""Estimates against numbers computed by hand for dense models of eight billion parameters."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.data.prepare import Manifest
from pipeline.estimate.dimensions import dimensions_of
from pipeline.estimate.memory import GIB, activation_bytes, memory, storage
from pipeline.estimate.plan import estimate
from pipeline.estimate.time import forward_flops, training_factor
from pipeline.estimate.workload import workload
from pipeline.settings.recipe import TINY_POLICY, Recipe, load_recipe
from pipeline.settings.tree import RECIPES
from reward.roles.prompts import load_prompts
from reward.types import Role

LLAMA = dimensions_of("meta-llama/Llama-3.1-8B-Instruct")
QWEN = dimensions_of("Qwen/Qwen3-8B")


def recipe(*overrides: str, name: str = "llama31_8b_stem") -> Recipe:
    return load_recipe(name, list(overrides))


def test_parameters_are_those_that_are_published() -> None:
    # 32 x (4096x4096 q + 2 x 4096x1024 k, v + 4096x4096 o + 3 x 4096x14336 + 2 x 4096) + 4096
    assert LLAMA.num_body_parameters == 32 * (41_943_040 + 176_160_768 + 8_192) + 4_096 == 6_979_588_096
    assert LLAMA.num_parameters == 6_979_588_096 + 2 * 128_256 * 4_096 == 8_030_261_248
    assert QWEN.num_parameters == 8_190_735_360
    assert LLAMA.num_critic_parameters == 6_979_588_096 + 128_256 * 4_096 + 4_096
    assert LLAMA.num_adapter_parameters(16) == 41_943_040  # what PEFT prints for all linear layers


def test_parameters_of_a_local_model_are_those_of_its_weights() -> None:
    from safetensors import safe_open

    with safe_open(TINY_POLICY / "model.safetensors", framework="np") as weights:
        sizes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    counted = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in sizes)
    assert dimensions_of(str(TINY_POLICY)).num_parameters == counted


def test_a_tokens_keys_and_values() -> None:
    assert LLAMA.key_value_bytes == 2 * 2 * 32 * 8 * 128 == 131_072  # 128 KiB
    assert QWEN.key_value_bytes == 147_456


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (None, "an estimate knows only meta-llama"),
        ({"num_experts": 8}, "mixture of experts"),
        ({"text_config": {}}, "no hidden_size"),
    ],
)
def test_a_model_that_cannot_be_estimated_says_why(tmp_path: Path, config: Any, says: str) -> None:
    if config:
        (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=says):
        dimensions_of(str(tmp_path))


@pytest.mark.parametrize(
    ("model", "fetched"),
    [("nomodel", "nomodel --from PLACE"), ("me/mine", "me/mine"), ("/cache/smollm2", "smollm2")],
)
def test_a_model_of_no_known_size_says_how_it_is_brought(model: str, fetched: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^model: '{model}' is no folder .*`march base-model fetch {fetched}`"
    ):
        estimate(recipe(f"model={model}"))


def test_sixteen_bytes_a_parameter_without_sharding() -> None:
    alone = recipe(
        *("cluster.zero_stage=0", "cluster.trainer_sleep=false", "cluster.ring_attention=1"),
    )
    actor = memory(alone, LLAMA).roles["actor"]
    assert actor.weights + actor.states == 16 * 8_030_261_248
    assert actor.states == 14 * 8_030_261_248


@pytest.mark.parametrize(
    ("stage", "weights", "gradients", "optimizer"), [(1, 2, 2, 1.5), (2, 2, 0.25, 1.5), (3, 0.25, 0.25, 1.5)]
)
def test_each_stage_of_zero_shares_one_more_thing_out(
    stage: int, weights: float, gradients: float, optimizer: float
) -> None:
    actor = memory(recipe(f"cluster.zero_stage={stage}"), LLAMA).roles["actor"]
    assert actor.weights == weights * LLAMA.num_parameters  # bytes a parameter on one of eight GPUs
    assert actor.gradients == gradients * LLAMA.num_parameters
    assert actor.optimizer == optimizer * LLAMA.num_parameters


def test_activations_and_logits_of_the_longest_row_on_a_ring_of_four() -> None:
    actor = memory(recipe(), LLAMA).roles["actor"]
    tokens = 32_759 / 4
    # attention 2 x (2x4096 + 2x1024), gated MLP 2 x 4 x 14336, norms 2 x 10 x 4096; 32 inputs of 2 x 4096
    assert activation_bytes(LLAMA, checkpointing=True) == 20_480 + 114_688 + 81_920 + 32 * 8_192
    assert activation_bytes(LLAMA, checkpointing=False) == 32 * (20_480 + 114_688 + 81_920)
    assert actor.activations == 479_232 * tokens
    assert actor.logits == 10 * 128_256 * tokens
    assert actor.logits / GIB == pytest.approx(9.78, abs=0.01)
    assert memory(recipe(), LLAMA).roles["critic"].logits == 0


def test_scoring_holds_the_logits_of_its_own_micro_batch() -> None:
    """OpenRLHF turns them to 32 bits: six bytes a logit for a moment."""

    def scoring(size: int, *more: str) -> dict[str, float]:
        found = memory(recipe(f"rollout.micro_batch_size={size}", *more), LLAMA)
        return {load.gpu: load.used for load in found.loads if load.phase == "scoring"}

    tokens = 32_759 / 4
    awake = ["cluster.engine_sleep=false", "cluster.trainer_sleep=false", "cluster.num_nodes=4"]
    awake += ["cluster.ray_address=auto"]
    for more in ([], ["cluster.colocate=none", *awake], ["cluster.colocate=actor_ref", *awake]):
        one, four = scoring(1, *more), scoring(4, *more)
        assert one and all(
            four[gpu] - used == pytest.approx(18 * 128_256 * tokens) for gpu, used in one.items()
        )


def test_an_engines_cache_is_what_its_fraction_leaves() -> None:
    space = memory(recipe("estimate.engine_overhead_gib=3"), LLAMA)
    left = 40 * GIB - 2 * 8_030_261_248 - 3 * GIB
    assert space.roles["engine"].key_values == left
    assert space.cached_tokens == left / 131_072
    halves = memory(recipe("cluster.num_engines=4", "cluster.engine_tensor_parallel=2"), LLAMA)
    assert halves.cached_tokens == 2 * (37 * GIB - 8_030_261_248) / 131_072


def test_sleep_is_what_makes_the_hybrid_engine_fit() -> None:
    assert all(load.fits for load in memory(recipe(), LLAMA).loads)
    awake = memory(recipe("cluster.engine_sleep=false", "cluster.trainer_sleep=false"), LLAMA)
    training = next(load for load in awake.loads if load.phase == "training")
    asleep = next(load for load in memory(recipe(), LLAMA).loads if load.phase == "training")
    assert training.used - asleep.used > 40 * GIB  # the engine, and critic beside actor
    assert not all(load.fits for load in awake.loads)
    assert memory(recipe(), LLAMA).host_per_node == pytest.approx(
        8 * 2 * 8_030_261_248 + 14 * (8_030_261_248 + LLAMA.num_critic_parameters)
    )


def test_lora_trains_its_adapters_and_holds_the_rest_once() -> None:
    lora = recipe(name="llama31_8b_stem_lora_1gpu")
    actor = memory(lora, LLAMA).roles["actor"]
    assert actor.states == 14 * 83_886_080  # rank 32
    assert actor.weights == 2 * (8_030_261_248 + 83_886_080)
    assert training_factor(lora) == 3 and training_factor(recipe()) == 4
    saved = storage(lora, LLAMA, num_steps=40).checkpoint
    frozen = 2 * (8_030_261_248 + LLAMA.num_critic_parameters)
    assert saved == 2 * 14 * 83_886_080 + frozen


def test_checkpoints_written_and_kept() -> None:
    held = storage(recipe(), LLAMA, num_steps=147)
    assert held.checkpoint == 12 * (8_030_261_248 + LLAMA.num_critic_parameters)
    assert (held.num_written, held.num_kept) == (7, 3)
    assert held.num_models == 8  # the last one and those to choose from
    assert held.written == 7 * held.checkpoint + 8 * 2 * 8_030_261_248
    assert held.kept == 3 * held.checkpoint + 8 * 2 * 8_030_261_248


def test_flops_are_two_a_parameter_and_token_and_attentions_square() -> None:
    parameters = 6_979_588_096 + 128_256 * 4_096
    assert forward_flops(LLAMA, 1_000) == 2 * parameters * 1_000 + 2 * 32 * 4_096 * 1_000**2
    assert forward_flops(LLAMA, 1_000, head=False) == 2 * 6_979_588_096 * 1_000 + 2 * 32 * 4_096 * 1_000**2


def test_the_update_takes_its_flops_over_the_rate_of_its_gpus() -> None:
    plan = estimate(recipe("estimate.mfu=0.5", "estimate.gpu_tflops=1000"))
    lengths = [
        role.prompt_tokens + role.completion_tokens for role in (plan.workload.solver, plan.workload.checker)
    ]
    actor = 32 * sum(forward_flops(LLAMA, tokens) for tokens in lengths)
    critic = 32 * sum(forward_flops(LLAMA, tokens, head=False) for tokens in lengths)
    assert plan.step.training_s == pytest.approx(4 * (actor + critic) / (8 * 0.5e15))
    assert plan.step.scoring_s == pytest.approx((2 * actor + critic) / (8 * 0.5e15))


def test_tokens_of_a_step_by_role_from_table_1() -> None:
    load = workload(
        recipe("estimate.checker_calls=1", "estimate.proposer_calls=1", "estimate.tokens_per_word=2")
    )
    assert load.num_rows == 4_721 and "Table 1" in load.rows_source
    assert [role.role for role in load.roles] == [Role.SOLVER, Role.PROPOSER, Role.CHECKER]
    assert [role.requests for role in load.roles] == [32, 32, 96]  # three voters
    words = 8.62 + 1_314.86
    assert 2 * words < load.solver.prompt_tokens < 2 * words + 400  # and the template
    documents = load.solver.prompt_tokens - 2 * 8.62
    assert load.checker.prompt_tokens > documents + load.proposer.completion_tokens
    assert load.proposer.prompt_tokens < 2_000  # the Proposer sees no documents
    assert load.solver.completions == 32 * 400


def test_a_manifest_comes_before_table_1(tmp_path: Path) -> None:
    manifest = Manifest(
        source="x",
        num_read=9,
        num_duplicates=0,
        num_overlong=0,
        num_rows=320,
        longest_prompt_tokens=900,
        mean_prompt_tokens=777.0,
        prompt_digest=load_prompts("full").digest,
        tokenizer="meta-llama/Llama-3.1-8B-Instruct",
        max_prompt_tokens=24_567,
        rows_sha256="",
    )
    (tmp_path / "manifest.json").write_text(manifest.model_dump_json())
    plan = estimate(recipe(f"data.path={tmp_path}"))
    assert (plan.workload.num_rows, plan.num_steps, plan.workload.solver.prompt_tokens) == (320, 10, 777.0)
    old = manifest.model_copy(
        update={"longest_prompt_tokens": None, "mean_prompt_tokens": None}
    )  # as written before it was counted
    (tmp_path / "manifest.json").write_text(old.model_dump_json(exclude_none=True))
    assert workload(recipe(f"data.path={tmp_path}")).num_rows == 320


def test_without_manifest_and_table_the_rows_are_asked_for() -> None:
    with pytest.raises(FileNotFoundError, match=r"has no manifest.json.*estimate.table1"):
        estimate(recipe("estimate.table1=null"))


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["cluster.engine_memory_fraction=0.25"], "engine: its cache holds"),
        (["cluster.ring_attention=1"], "shared by all, training: does not fit"),
        (["rollout.micro_batch_size=16"], "shared by all, scoring: does not fit"),
        (["rollout.micro_batch_size=16"], "or lower rollout.micro_batch_size"),
        (["cluster.num_nodes=4", "cluster.ray_address=auto"], "reward.host: 127.0.0.1 is this machine alone"),
        (["rollout.max_prompt_tokens=130000"], "exceed the model's 131,072"),
    ],
)
def test_what_would_not_run_is_a_warning(overrides: list[str], says: str) -> None:
    assert any(says in warning for warning in estimate(recipe(*overrides)).warnings)


def test_the_shipped_gpu_recipes_fit() -> None:
    for path in RECIPES.glob("*8b*.yaml"):
        known_address = ["reward.host=10.0.0.1"]  # of several nodes' first, which no recipe can know
        assert estimate(load_recipe(path.stem, known_address)).warnings == (), path.stem


def test_the_table_of_the_docs_is_what_a_dry_run_prints() -> None:
    page = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| `\w+8b", line)]
    assert {row[0].strip("`") for row in rows} == {path.stem for path in RECIPES.glob("*8b*.yaml")}
    for name, _, gpus, fullest, host, hours, gpu_hours, written in rows:
        plan = estimate(load_recipe(name.strip("`")))
        assert int(gpus) == plan.num_gpus
        assert fullest == f"{max(load.used for load in plan.memory.loads) / GIB:.1f}"
        assert host == f"{plan.memory.host_per_node / GIB:.0f}"
        assert (hours, gpu_hours) == (f"{plan.hours:.1f}", f"{plan.gpu_hours:.0f}")
        assert float(written) == pytest.approx(plan.storage.written / 1e12, abs=0.05)


def test_more_nodes_are_faster_and_not_cheaper() -> None:
    one, four = estimate(recipe()), estimate(recipe(name="llama31_8b_stem_4x8"))
    assert four.hours < one.hours and four.gpu_hours > one.gpu_hours


def test_only_packed_rows_have_logits_of_their_prompts() -> None:
    loose = ["cluster.packing=false", "cluster.ring_attention=1", "cluster.attention=sdpa"]
    packed, others = (
        memory(recipe(*settings), LLAMA).roles["actor"].logits
        for settings in (["cluster.ring_attention=1"], loose)
    )
    assert others == pytest.approx(packed * 8192 / (24_567 + 8192))
