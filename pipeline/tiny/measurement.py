"""How well a tiny policy plays its three roles, on held-out worlds that no training saw.

The Proposer is asked about what the Solver really wrote at temperature 1, right or wrong; the Checker
about every item of the query. Sampling is unfiltered (no top-k, no top-p), as in the rollouts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from pipeline.settings.worlds import PLAIN_WORLD, WorldSettings
from pipeline.tiny.demonstrations import write_claims
from pipeline.tiny.facts import read_facts
from pipeline.tiny.manifest import Figures
from pipeline.tiny.truth import attempted, judge
from pipeline.tiny.world import World, sample_worlds
from pipeline.worlds.world import Judgement
from reward.roles.prompts import PromptSet
from reward.samplers import Message

_BATCH_SIZE = 125
_MAX_ANSWER_TOKENS, _MAX_LIST_TOKENS = 64, 112  # the longest demonstrations have 40 and 63
_CHECK_LINE = re.compile(r"^(\d)\. Evidence: .* \[Answer: (.+)\]$", re.MULTILINE)
_CANNOT_ANSWER = "Cannot answer"


def measure(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: PromptSet,
    *,
    num_worlds: int = 500,
    seed: int = 123,
    world: WorldSettings = PLAIN_WORLD,
) -> Figures:
    """Measures all three roles; equal arguments give equal figures on one machine."""
    worlds = sample_worlds(num_worlds, seed, "held_out", world)

    def say(conversations: Sequence[list[Message]], temperature: float, max_tokens: int) -> list[str]:
        return generate(
            model, tokenizer, conversations, temperature=temperature, max_tokens=max_tokens, seed=seed
        )

    solver = [prompts.solver(one.query) for one in worlds]
    answers, greedy = (say(solver, temperature, _MAX_ANSWER_TOKENS) for temperature in (1.0, 0.0))
    lists = say([prompts.proposer(answer) for answer in answers], 1.0, _MAX_LIST_TOKENS)
    asked = [prompts.checker(one.query.documents, [fact.question() for fact in one.asked]) for one in worlds]
    checks, sure = (say(asked, temperature, _MAX_LIST_TOKENS) for temperature in (1.0, 0.0))
    figures: dict[str, Any] = {
        "solver_faithful": mean([one.faithful for one in _judged(worlds, answers)]),
        "solver_faithful_greedy": mean([one.faithful for one in _judged(worlds, greedy)]),
        "solver_coverage": mean(
            [attempted(one.query, answer) for one, answer in zip(worlds, answers, strict=True)]
        ),
        "proposer_exact": mean([_is_exact(*pair) for pair in zip(answers, lists, strict=True)]),
        "checker_accuracy": mean([right for _, right in _votes(worlds, checks)]),
        "checker_accuracy_greedy": mean([right for _, right in _votes(worlds, sure)]),
    }
    wider = {} if world == PLAIN_WORLD else _by_kind(worlds, answers, checks)
    return Figures(num_worlds=num_worlds, seed=seed, **figures, **wider)


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
    """An answer without values has no claims, and the audit asks no Proposer about it."""
    facts = read_facts(answer)
    return not facts or written == write_claims([(fact, fact.value) for fact in facts])


def _judged(worlds: Sequence[World], answers: Sequence[str]) -> list[Judgement]:
    return [judge(world.query, answer) for world, answer in zip(worlds, answers, strict=True)]


def _votes(worlds: Sequence[World], checks: Sequence[str]) -> list[tuple[str, bool]]:
    """Each asked question: its kind, or "unanswerable", and whether the Checker's line is right."""
    votes: list[tuple[str, bool]] = []
    for world, check in zip(worlds, checks, strict=True):
        lines = dict(_CHECK_LINE.findall(check))
        for i, fact in enumerate(world.asked, 1):
            truth = world.truth.get(fact.key, _CANNOT_ANSWER)
            kind = fact.kind if world.is_answerable else "unanswerable"
            votes.append((kind, lines.get(str(i)) == str(truth)))
    return votes


def _by_kind(worlds: Sequence[World], answers: Sequence[str], checks: Sequence[str]) -> dict[str, Any]:
    """The figures of worlds that have more than numbers."""
    judged = _judged(worlds, answers)
    items: list[tuple[str, bool]] = [
        (fact.kind, fact in read_facts(answer))
        for world, answer in zip(worlds, answers, strict=True)
        if world.is_answerable
        for fact in world.asked
    ]
    pairs = zip(worlds, checks, strict=True)
    return {
        "solver_form": mean(
            [
                one.abstained or attempted(world.query, answer) == 1
                for one, world, answer in zip(judged, worlds, answers, strict=True)
            ]
        ),
        "checker_form": mean([len(_CHECK_LINE.findall(check)) == len(world.asked) for world, check in pairs]),
        "abstained_right": mean([one.abstained for one in judged if not one.answerable]),
        "abstained_wrong": mean([one.abstained for one in judged if one.answerable]),
        "solver_by_kind": _shares(items),
        "checker_by_kind": _shares(_votes(worlds, checks)),
    }


def _shares(flags: Sequence[tuple[str, bool]]) -> dict[str, float | None]:
    kinds = dict.fromkeys(kind for kind, _ in flags)
    return {kind: mean([flag for one, flag in flags if one == kind]) for kind in kinds}


def mean(values: Sequence[float]) -> float | None:
    """The mean, to four places; None of nothing."""
    return round(sum(values) / len(values), 4) if values else None
