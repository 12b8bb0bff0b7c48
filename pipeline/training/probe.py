"""Whether what is sampled is what is trained: log-probabilities of engine and actor on the same tokens.

Sampled tokens, because there both sides round alike: on the same weights in bfloat16 the mean over responses
is below 0.001, while single unlikely prompt tokens differ by 0.3 (docs/log.md). They are sampled at the
rollout's temperature and without `top_p`, which the actor's log-probabilities do not know.
"""

from __future__ import annotations

import json
from typing import Any

import ray
import torch
from openrlhf.datasets import PromptDataset
from torch.nn.utils.rnn import pad_sequence

_SAMPLES, _TOKENS = 4, 64


def log_probability_gap(engine: Any, actor_group: Any, prompt: list[int], *, temperature: float) -> float:
    """Returns mean |log p_engine - log p_actor| over freshly sampled responses, in nats.

    Args:
        engine: handle of a rollout engine (`pipeline.training.engine_actor`).
        actor_group: OpenRLHF's group of the policy's ranks, which score at the rollout's temperature.
        prompt: (P,) token ids.
        temperature: the rollout's.
    """
    from vllm import SamplingParams

    params = SamplingParams(n=_SAMPLES, max_tokens=_TOKENS, temperature=temperature, logprobs=0)
    outputs = ray.get(engine.generate.remote(prompt, params)).outputs
    responses = [torch.tensor(output.token_ids) for output in outputs]
    by_engine = [
        torch.tensor([at[token].logprob for at, token in zip(o.logprobs, o.token_ids, strict=True)])
        for o in outputs
    ]
    sequences = _padded([torch.cat([torch.tensor(prompt), response]) for response in responses])  # (N, T)
    attention = _padded([torch.ones(len(prompt) + len(r), dtype=torch.long) for r in responses])
    actions = attention[:, 1:].clone()  # (N, T - 1)
    actions[:, : len(prompt) - 1] = 0
    scored = ray.get(actor_group.async_run_method("forward", sequences, actions, attention))[0]
    return float((torch.cat(by_engine) - scored.float()[actions.bool()]).abs().mean())


def first_prompt(strategy: Any, tokenizer: Any) -> list[int]:
    """Returns the token ids of the first row's prompt, made as OpenRLHF makes them."""
    data = strategy.args.data
    with open(data.prompt_dataset) as rows:
        row = json.loads(rows.readline())
    (prompt,) = PromptDataset([row], tokenizer, strategy, input_template=data.input_template).prompts
    return [int(token) for token in tokenizer(text=prompt, add_special_tokens=False)["input_ids"]]


def _padded(rows: list[torch.Tensor]) -> torch.Tensor:
    return pad_sequence(rows, batch_first=True)
