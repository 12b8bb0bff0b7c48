"""How well a tiny policy plays its three roles, on held-out worlds that no training saw.

The Proposer is asked about what the Solver really wrote at temperature 1, right or wrong; the Checker
about every item of the query. Sampling is unfiltered (no top-k, no top-p), as in the rollouts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from pipeline.tiny.demonstrations import write_claims
from pipeline.tiny.manifest import Figures
from pipeline.tiny.world import World, oracle, read_facts, sample_worlds
from reward.roles.prompts import PromptSet
from reward.samplers import Message

_BATCH_SIZE = 125
_MAX_ANSWER_TOKENS, _MAX_LIST_TOKENS = 64, 112  # the longest demonstrations have 40 and 63
_CHECK_LINE = re.compile(r"^(\d)\. Evidence: .* \[Answer: (\d+)\]$", re.MULTILINE)


def measure(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: PromptSet,
    *,
    num_worlds: int = 500,
    seed: int = 123,
) -> Figures:
    """Measures all three roles; equal arguments give equal figures on one machine."""
    worlds = sample_worlds(num_worlds, seed, "held_out")
    solver = [prompts.solver(world.query) for world in worlds]
    answers = generate(model, tokenizer, solver, temperature=1.0, max_tokens=_MAX_ANSWER_TOKENS, seed=seed)
    greedy = generate(model, tokenizer, solver, temperature=0.0, max_tokens=_MAX_ANSWER_TOKENS, seed=seed)
    proposer = [prompts.proposer(answer) for answer in answers]
    lists = generate(model, tokenizer, proposer, temperature=1.0, max_tokens=_MAX_LIST_TOKENS, seed=seed)
    judged = [oracle(world.query, answer) for world, answer in zip(worlds, answers, strict=True)]
    return Figures(
        num_worlds=num_worlds,
        seed=seed,
        solver_faithful=_mean([figures.faithful for figures in judged]),
        solver_faithful_greedy=_mean(
            [oracle(world.query, answer).faithful for world, answer in zip(worlds, greedy, strict=True)]
        ),
        solver_coverage=_mean([figures.coverage for figures in judged]),
        proposer_exact=_mean(
            [_is_exact(answer, list_) for answer, list_ in zip(answers, lists, strict=True)]
        ),
        checker_accuracy=_checker_accuracy(model, tokenizer, prompts, worlds, temperature=1.0, seed=seed),
        checker_accuracy_greedy=_checker_accuracy(
            model, tokenizer, prompts, worlds, temperature=0.0, seed=seed
        ),
    )


@torch.no_grad()
def generate(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    conversations: Sequence[list[Message]],
    *,
    temperature: float,
    max_tokens: int,
    seed: int,
) -> list[str]:
    """Returns a completion for each conversation, without its end token; temperature 0 is greedy."""
    torch.manual_seed(seed)
    chance = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
    how = chance if temperature > 0 else {"do_sample": False}
    texts: list[str] = []
    for start in range(0, len(conversations), _BATCH_SIZE):
        inputs = tokenizer.apply_chat_template(
            conversations[start : start + _BATCH_SIZE],
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        ids, mask = inputs["input_ids"], inputs["attention_mask"]  # (B, P), padded on the left
        out = model.generate(ids, attention_mask=mask, max_new_tokens=max_tokens, **how)  # (B, P + A)
        texts += (_text(tokenizer, row) for row in out[:, ids.shape[1] :].tolist())
    return texts


def _text(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    """Decodes up to the end token; any other special token stays visible, as the error it is."""
    end = ids.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in ids else len(ids)
    return str(tokenizer.decode(ids[:end], skip_special_tokens=False))


def _is_exact(answer: str, written: str) -> bool:
    return written == write_claims([(fact, fact.number) for fact in read_facts(answer)])


def _checker_accuracy(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: PromptSet,
    worlds: Sequence[World],
    *,
    temperature: float,
    seed: int,
) -> float:
    conversations = [
        prompts.checker(world.query.documents, [fact.question() for fact in world.asked]) for world in worlds
    ]
    checks = generate(
        model, tokenizer, conversations, temperature=temperature, max_tokens=_MAX_LIST_TOKENS, seed=seed
    )
    right: list[bool] = []
    for world, check in zip(worlds, checks, strict=True):
        answers = dict(_CHECK_LINE.findall(check))
        right += (answers.get(str(i)) == str(fact.number) for i, fact in enumerate(world.asked, 1))
    return _mean(right)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)
