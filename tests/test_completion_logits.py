"""A warm-up's logits at the completions alone: loss and gradient are those of OpenRLHF's own trainer."""

from typing import Any

import pytest
import torch

from pipeline import cpu
from pipeline.settings.recipe import TINY_POLICY

cpu.install()

from openrlhf.models import Actor  # noqa: E402
from openrlhf.models.loss import SFTLoss  # noqa: E402

from pipeline.warmup import completion_logits  # noqa: E402
from pipeline.warmup.completion_logits import CompletionLogitsActor, by_length, with_masks  # noqa: E402

LENGTHS = ((40, 3), (5, 2), (20, 6), (9, 1))  # prompt and completion of each demonstration


class Strategy:
    """What the iteration asks of OpenRLHF's strategy outside a distributed job."""

    ring_attn_group = None
    dp_group = None


def window() -> list[tuple[torch.Tensor, ...]]:
    """Two micro-batches as the SFT trainer's loader gives them."""
    generator = torch.Generator().manual_seed(0)
    batches = []
    for pair in (LENGTHS[:2], LENGTHS[2:]):
        longest = max(sum(lengths) for lengths in pair)
        attention = torch.zeros(2, longest, dtype=torch.long)
        loss = torch.zeros(2, longest)
        for row, (prompt, completion) in enumerate(pair):
            attention[row, : prompt + completion] = 1
            loss[row, prompt - 1 : prompt + completion - 1] = 1
        tokens = torch.randint(5, 100, attention.shape, generator=generator) * attention
        batches.append((tokens, attention, loss))
    return batches


def trained(actor: Any, iterate: Any) -> tuple[float, torch.Tensor, list[int]]:
    """The loss of an update, its gradient, and the positions that the head was applied to."""
    seen: list[int] = []
    hook = actor.model.lm_head.register_forward_hook(lambda head, given, made: seen.append(made.shape[1]))
    actor.zero_grad()
    total = 0.0
    for (tokens, attention, mask), info in iterate(
        window(), Strategy(), 2, lambda batch: batch[2].squeeze(1)[:, :-1]
    ):
        log_probs, _ = actor(
            tokens, attention_mask=attention, return_output=True, return_logprobs=True, ring_attn_group=None
        )
        loss = SFTLoss()(log_probs, mask[:, :-1], **info)
        loss.backward()
        total += float(loss.detach())
    hook.remove()
    return total, torch.cat([parameter.grad.flatten() for parameter in actor.parameters()]), seen


@pytest.fixture
def actor() -> Any:
    made = Actor(str(TINY_POLICY), attn_implementation="sdpa")
    made.eval()
    return made


def test_an_update_is_the_same_and_the_head_is_applied_to_completions(
    actor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = completion_logits.upstream
    monkeypatch.setattr(upstream, "iter_grad_accum_global_norm", upstream.iter_grad_accum_global_norm)
    plain_loss, plain_gradient, plain_seen = trained(actor, completion_logits._iter_windows)
    completion_logits.install(actor)
    assert type(actor) is CompletionLogitsActor and upstream.iter_grad_accum_global_norm is with_masks
    loss, gradient, seen = trained(actor, with_masks)
    assert plain_seen == [43, 26] and seen == [3, 7]
    assert loss == pytest.approx(plain_loss, rel=1e-5)
    assert torch.allclose(gradient, plain_gradient, rtol=1e-4, atol=1e-5 * float(plain_gradient.abs().max()))


def test_rows_keep_what_they_are_whatever_micro_batch_they_are_in() -> None:
    def rows(batches: list[Any]) -> set[tuple[tuple[int, ...], ...]]:
        found = set()
        for tokens, attention, loss in batches:
            for row in range(len(tokens)):
                length = int(attention[row].sum())
                found.add(tuple(tuple(part[row, :length].tolist()) for part in (tokens, attention, loss)))
        return found

    cut = by_length(window())
    assert rows(cut) == rows(window())
    assert [batch[0].shape for batch in cut] == [(2, 10), (2, 43)]


def test_outside_of_an_update_the_actor_is_as_it_was(actor: Any) -> None:
    completion_logits.with_response_logits(actor)
    tokens, attention, _ = window()[0]
    expected = actor(tokens, attention_mask=attention, return_output=True, return_logprobs=True)[0]
    actor.__class__ = CompletionLogitsActor
    found = actor(tokens, attention_mask=attention, return_output=True, return_logprobs=True)[0]
    assert torch.equal(found, expected)
