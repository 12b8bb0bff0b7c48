"""LoRA on the tiny policy: engines and saved model get the adapted weights, the frozen ones never move."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from pipeline import cpu
from pipeline.settings.recipe import TINY_POLICY, load_recipe
from pipeline.training.lora import UnadaptedPolicy, merged_actor, save_merged
from pipeline.training.trainer_settings import TrainerSettings

cpu.install()

from openrlhf.models import Actor  # noqa: E402

from pipeline.training.policy import MarchPolicyActor  # noqa: E402


@pytest.fixture
def actor() -> Any:
    """An actor whose engine holds the tiny policy with adapters that have been trained."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.bfloat16)
    config = LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules="all-linear")
    adapted = get_peft_model(model, config)
    for name, parameter in adapted.named_parameters():
        parameter.data = (
            parameter.data.bfloat16()
        )  # parameters alone, as DeepSpeed does: rotary buffers stay exact
        if "lora_B" in name:
            parameter.data.normal_(std=0.02)
    return SimpleNamespace(model=SimpleNamespace(module=adapted), is_vlm=False)


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: parameter.data.clone() for name, parameter in model.named_parameters()}


def test_engines_get_the_plain_names_and_the_sum_of_weights_and_adapters(actor: Any) -> None:
    before = weights(actor.model.module)
    start = weights(AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.bfloat16))
    sent = dict(merged_actor(actor).model.module.named_parameters())
    assert set(sent) == set(start)
    for name, parameter in sent.items():
        assert parameter.requires_grad or name in (
            "model.embed_tokens.weight",
            *[n for n in start if "norm" in n],
        )
        assert (parameter.data.shape, parameter.data.dtype) == (parameter.shape, parameter.dtype)
        assert parameter.dtype == torch.bfloat16
        assert torch.equal(parameter.data, start[name]) == ("proj" not in name)
    after = weights(actor.model.module)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_what_is_sent_computes_what_the_adapted_policy_computes(actor: Any) -> None:
    tokens = torch.arange(5, 45).unsqueeze(0)
    adapted = actor.model.module.float()  # so that the rounding of bfloat16 hides nothing
    sent = dict(merged_actor(actor).model.module.named_parameters())
    plain = AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.float32)
    for name, parameter in plain.named_parameters():
        parameter.data.copy_(sent[name].data)
    with torch.no_grad():
        wanted, got = adapted(tokens).logits, plain(tokens).logits
        with adapted.disable_adapter():
            unadapted = adapted(tokens).logits
    assert torch.allclose(got, wanted, atol=1e-3)
    assert not torch.allclose(unadapted, wanted, atol=0.1)


def test_the_saved_model_needs_no_peft_and_is_what_was_sent_and_training_goes_on(
    actor: Any, tmp_path: Path
) -> None:
    before = weights(actor.model.module)
    sent = {name: p.data.clone() for name, p in merged_actor(actor).model.module.named_parameters()}
    save_merged(actor, AutoTokenizer.from_pretrained(TINY_POLICY), str(tmp_path))
    saved = weights(AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16))
    assert set(saved) == set(sent) and AutoTokenizer.from_pretrained(tmp_path)
    assert all(torch.equal(saved[name], sent[name]) for name in saved)
    after = weights(actor.model.module)
    assert set(after) == set(before) and all(torch.equal(before[name], after[name]) for name in before)


class Engine(torch.nn.Module):
    """DeepSpeed's, as far as it is called: around a model."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def test_without_its_adapters_the_policy_is_the_reference(
    actor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainerSettings, "from_environment", lambda: SimpleNamespace(threads=None))
    plain = Actor(str(TINY_POLICY), attn_implementation="sdpa")
    policy = MarchPolicyActor.__new__(MarchPolicyActor)
    policy.strategy = SimpleNamespace(ring_attn_group=None)
    policy.actor = Actor(str(TINY_POLICY), attn_implementation="sdpa")
    policy.actor.model = Engine(actor.model.module.float())
    tokens = torch.arange(5, 45).unsqueeze(0)
    rows = [tokens, torch.ones_like(tokens[:, 1:]), torch.ones_like(tokens)]
    with torch.no_grad():
        expected = plain(*rows)
    assert torch.allclose(policy.forward_unadapted(*rows), expected, atol=1e-2)  # weights were rounded
    assert not torch.allclose(policy.forward(*rows), expected, atol=0.1)  # the adapters are on again


def test_the_reference_is_asked_of_the_policys_ranks() -> None:
    asked: list[tuple[str, list[str]]] = []
    group = SimpleNamespace(
        async_run_method_batch=lambda method_name, **rows: asked.append((method_name, list(rows))) or [],
        async_run_method=lambda method_name: asked.append((method_name, [])) or [],
    )
    reference = UnadaptedPolicy(group)
    reference.async_run_method_batch(method_name="forward", sequences=[], action_mask=[])
    reference.async_run_method(method_name="empty_cache")
    assert asked == [("forward_unadapted", ["sequences", "action_mask"]), ("empty_cache", [])]


def test_with_lora_no_second_model_takes_a_gpu_and_the_kl_guard_may_stay() -> None:
    plain, adapted = load_recipe("tiny"), load_recipe("tiny", ["cluster.lora={rank: 8}", "guards.kl.limit=1"])
    assert (plain.has_reference, adapted.has_reference) == (True, False)
    assert adapted.num_gpus == plain.num_gpus - 1
