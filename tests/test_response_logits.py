"""Logits at the responses alone: log-probabilities, entropies and gradients are those of OpenRLHF's actor."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model

from pipeline import cpu
from pipeline.settings.recipe import TINY_POLICY

cpu.install()

from openrlhf.models import Actor  # noqa: E402

from pipeline.training.response_logits import ResponseLogitsActor, with_response_logits  # noqa: E402

LENGTHS = ((5, 3), (20, 1), (9, 6))  # prompt and response of each row


def batch() -> dict[str, torch.Tensor]:
    longest = max(sum(lengths) for lengths in LENGTHS)
    attention = torch.zeros(len(LENGTHS), longest, dtype=torch.long)
    actions = torch.zeros(len(LENGTHS), longest - 1, dtype=torch.long)
    for row, (prompt, response) in enumerate(LENGTHS):
        attention[row, : prompt + response] = 1
        actions[row, prompt - 1 : prompt + response - 1] = 1
    tokens = torch.randint(5, 100, attention.shape, generator=torch.Generator().manual_seed(0)) * attention
    return {"sequences": tokens, "action_mask": actions, "attention_mask": attention}


@pytest.fixture
def actor() -> Iterator[Any]:
    made = Actor(str(TINY_POLICY), attn_implementation="sdpa", temperature=0.7)
    made.eval()
    with torch.compiler.set_stance("force_eager"):  # as in a training on CPU
        yield made


def positions_of(actor: Any) -> list[int]:
    """Counts the positions that the head is applied to from now on."""
    seen: list[int] = []
    actor.model.lm_head.register_forward_hook(lambda head, given, made: seen.append(made.shape[1]))
    return seen


def test_log_probabilities_and_gradient_are_the_same_and_the_head_is_applied_to_responses(actor: Any) -> None:
    seen, results = positions_of(actor), []
    for exchange in (lambda actor: None, with_response_logits):
        exchange(actor)
        actor.zero_grad()
        log_probs, output = actor(**batch(), return_output=True, return_entropy=True)
        mask = batch()["action_mask"]
        weights = torch.linspace(-1, 1, mask.shape[1])
        ((log_probs * weights).sum() + (output.entropy * mask).sum()).backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in actor.parameters()])
        results.append((log_probs.detach(), (output.entropy * mask).detach(), gradient))
    assert type(actor) is ResponseLogitsActor
    assert seen == [21, 7]  # all tokens; the longest response and the last position, which predicts nothing
    for plain, ours in zip(*results, strict=True):
        assert plain.shape == ours.shape
        assert torch.allclose(ours, plain, rtol=1e-4, atol=1e-5 * float(plain.abs().max()))


def test_rows_without_an_action_and_calls_without_a_mask_go_through(actor: Any) -> None:
    with_response_logits(actor)
    given = batch()
    plain = actor(given["sequences"], attention_mask=given["attention_mask"], return_output=True)
    assert plain["logits"].shape[1] == given["sequences"].shape[1]
    given["action_mask"] = torch.zeros_like(given["action_mask"])
    assert actor(**given).count_nonzero() == 0


def test_an_adapted_model_keeps_them_too(actor: Any) -> None:
    config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules="all-linear")
    actor.model = get_peft_model(actor.model, config)
    expected = actor(**batch())
    with_response_logits(actor)
    assert type(actor) is ResponseLogitsActor
    assert torch.allclose(actor(**batch()), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["packing_samples", "is_vlm"])
def test_packed_rows_and_pictures_are_left_to_openrlhf(actor: Any, name: str) -> None:
    setattr(actor, name, True)
    with_response_logits(actor)
    assert type(actor) is Actor
