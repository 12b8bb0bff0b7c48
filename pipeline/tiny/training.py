"""Supervised training of the tiny policy on one core: losses on completions only, little padding.

Repeatable: the demonstrations come from the stage's seed, the order of work is fixed, and nothing depends
on the clock. The language-model head runs only where a completion token is predicted, a quarter of the
positions.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm  # type: ignore[import-untyped]
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from pipeline.tiny.demonstrations import demonstrate
from pipeline.tiny.recipe import Stage
from pipeline.worlds.world import Demonstration
from reward.roles.prompts import PromptSet

MAX_GRADIENT_NORM = 1.0
_POOLED_BATCHES = 4  # drawn together and sorted by length, so that little is padded


@dataclass(frozen=True)
class Batch:
    """Padded on the right, where a causal model needs no attention mask."""

    ids: Tensor  # (B, T) int64
    is_completion: Tensor  # (B, T) bool: tokens to learn, the end token included


def train(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, prompts: PromptSet, stage: Stage
) -> None:
    """Trains `model` in place through one stage; shows rates, the remaining time and the loss."""
    torch.manual_seed(stage.seed)
    optimisers = make_optimisers(model, stage)
    schedules = [LambdaLR(one, lambda done: rate_factor(done + 1, stage)) for one in optimisers]
    model.train()
    num_tokens, average = 0, 0.0
    with tqdm(total=stage.num_steps, desc=stage.name, unit="step", mininterval=1.0) as bar:
        for step, batch in enumerate(batches(tokenizer, prompts, stage)):
            loss = completion_loss(model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
            for optimiser, schedule in zip(optimisers, schedules, strict=True):
                optimiser.step()
                schedule.step()
            model.zero_grad(set_to_none=True)
            num_tokens += batch.ids.numel()
            average = loss.item() if step == 0 else 0.95 * average + 0.05 * loss.item()
            rate = num_tokens / max(bar.format_dict["elapsed"], 1e-9)
            bar.set_postfix(loss=f"{average:.3f}", tokens_per_s=f"{rate:.0f}", refresh=False)
            bar.update()
    model.eval()


def completion_loss(model: LlamaForCausalLM, batch: Batch) -> Tensor:
    """Mean cross-entropy over the completions' tokens; logits only where one is predicted."""
    hidden = model.model(input_ids=batch.ids[:, :-1], use_cache=False).last_hidden_state  # (B, T - 1, D)
    chosen = batch.is_completion[:, 1:]
    logits = model.lm_head(hidden[chosen])  # (C, V)
    return F.cross_entropy(logits, batch.ids[:, 1:][chosen])


def rate_factor(step: int, stage: Stage) -> float:
    """Rate over its peak: a linear warm-up, a plateau until `decay_from`, a linear fall to a twentieth."""
    progress = step / stage.num_steps
    fall = 1.0 if progress < stage.decay_from else max(0.05, (1 - progress) / (1 - stage.decay_from))
    return min(1.0, step / stage.warmup_steps) * fall


def make_optimisers(model: LlamaForCausalLM, stage: Stage) -> list[torch.optim.Optimizer]:
    """Muon (https://kellerjordan.github.io/posts/muon/) on the layers' matrices beside AdamW, or AdamW."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.dim() == 2]
    in_matrices = {id(weight) for weight in matrices}
    rest = [weight for weight in model.parameters() if id(weight) not in in_matrices]
    if stage.optimiser == "muon":
        return [
            torch.optim.Muon(matrices, lr=stage.matrix_lr, momentum=0.95, weight_decay=0.0),
            torch.optim.AdamW(rest, lr=stage.lr, betas=(0.9, 0.95), weight_decay=0.0),
        ]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]
    return [torch.optim.AdamW(groups, lr=stage.lr, betas=(0.9, 0.98))]


def batches(tokenizer: PreTrainedTokenizerFast, prompts: PromptSet, stage: Stage) -> Iterator[Batch]:
    """Yields `stage.num_steps` batches of `stage.batch_size` demonstrations, the same for the same seed."""
    rng = random.Random(stage.seed)
    for first in range(0, stage.num_steps, _POOLED_BATCHES):
        progress = first / stage.num_steps
        pool = [
            encode(tokenizer, demonstrate(rng, stage, progress, prompts))
            for _ in range(stage.batch_size * _POOLED_BATCHES)
        ]
        pool.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        starts = list(range(0, len(pool), stage.batch_size))
        rng.shuffle(starts)
        for start in starts[: stage.num_steps - first]:
            yield collate(pool[start : start + stage.batch_size], tokenizer.pad_token_id)


def encode(tokenizer: PreTrainedTokenizerFast, demonstration: Demonstration) -> tuple[list[int], list[int]]:
    """Returns the ids of the prompt and of the completion, the latter with the end token."""
    prompt = tokenizer.apply_chat_template(
        demonstration.messages, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    completion = tokenizer.encode(demonstration.completion, add_special_tokens=False)
    return prompt, [*completion, tokenizer.eos_token_id]


def collate(pairs: list[tuple[list[int], list[int]]], pad_token_id: int) -> Batch:
    """Pads prompts with their completions to one length."""
    length = max(len(prompt) + len(completion) for prompt, completion in pairs)
    ids = torch.full((len(pairs), length), pad_token_id)
    is_completion = torch.zeros(len(pairs), length, dtype=torch.bool)
    for row, (prompt, completion) in enumerate(pairs):
        end = len(prompt) + len(completion)
        ids[row, :end] = torch.tensor(prompt + completion)
        is_completion[row, len(prompt) : end] = True
    return Batch(ids=ids, is_completion=is_completion)
