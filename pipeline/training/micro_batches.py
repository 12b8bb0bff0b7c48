"""Rows as models compute them: trained ones alone, equal ones once, by length in micro-batches of tokens.

A step lays out a fixed number of rows, since rewards, groups and figures are by place. Models need not see
that layout: a row without an action has no gradient and no log-probability, equal rows have equal ones, and
rows of one length need no padding. What is left out here is left out exactly (`tests/test_micro_batches.py`).

Each rank gets as many micro-batches as the others, since sharded models compute in step; a rank that is short
of rows gets fillers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from openrlhf.trainer.ppo_utils.experience import Experience

_SCORED = ("action_log_probs", "base_action_log_probs", "values", "kl")  # (B, A)
_SCORED_MEANS = ("kl", "logprobs_diff")  # (B,) over a row's actions
_COPIES = "copies"  # in `info`, which goes with a row to the loss: how many equal rows it is


def rows_of(batch: Experience) -> list[Experience]:
    """Returns each row of a micro-batch as one of its own, without its padding, which is on the right."""
    return [_row(batch, place, int(mask.sum())) for place, mask in enumerate(batch.attention_mask)]


def batch_of(rows: Sequence[Experience], *, pad_token_id: int) -> Experience:
    """Returns rows as one micro-batch, padded on the right."""
    batch: Experience = Experience.concat_experiences(list(rows), pad_token_id)
    return batch


def num_tokens(row: Experience) -> int:
    return int(row.sequences.shape[-1])


def num_actions(batches: Iterable[Experience]) -> torch.Tensor:
    """() trained tokens of micro-batches, or of a buffer's rows, with those that their rows stand for."""
    return sum(
        ((batch.action_mask.sum(dim=-1) * copies_of(batch)).sum() for batch in batches), torch.zeros(())
    )


def is_trained(row: Experience) -> bool:
    return bool(row.action_mask.any())


def filler(row: Experience) -> Experience:
    """Returns a row without its actions: its figures stand for nothing, and it has no gradient."""
    return replace(row, action_mask=torch.zeros_like(row.action_mask))


def content(row: Experience, *names: str) -> bytes:
    """Names what a row is: its tokens, its actions, and the tensors of these names."""
    tensors = [getattr(row, name) for name in ("sequences", "action_mask", *names)]
    return b"|".join(b"" if tensor is None else tensor.numpy().tobytes() for tensor in tensors)


def alone(row: Experience) -> Experience:
    """Returns a row that is one copy."""
    return replace(row, info=row.info | {_COPIES: torch.ones(1)})


def copies_of(batch: Experience) -> torch.Tensor:
    """(B,) how many equal rows each row is."""
    copies = batch.info[_COPIES]
    return torch.stack(copies) if isinstance(copies, list) else copies  # a list from OpenRLHF's buffer


def merged(rows: Sequence[Experience]) -> list[Experience]:
    """Returns equal rows as one, with the mean of their advantages and their number as its weight.

    PPO's clipped term is linear in its advantage as long as the sign stays: for A and B of one sign,
    `min(r A, c A) + min(r B, c B) = min(r (A + B), c (A + B))`. Rows whose advantages differ in sign are not
    equal.
    """
    equal: dict[bytes, list[Experience]] = {}
    for row in rows:
        signed = replace(row, advantages=row.advantages.sign())
        equal.setdefault(content(signed, "rollout_log_probs", "advantages"), []).append(row)
    return [_one_of(same) for same in equal.values()]


def fill_in(batches: Sequence[Experience], *, from_batches: Sequence[Experience]) -> None:
    """Gives each row of `batches` what models said of its equal in `from_batches`; 0 where there is none."""
    scored = {content(row): row for batch in from_batches for row in rows_of(batch)}
    for batch in batches:
        found = [scored.get(content(row)) for row in rows_of(batch)]
        for name in _SCORED:
            values = [None if row is None else getattr(row, name) for row in found]
            is_there = getattr(from_batches[0], name) is not None
            setattr(batch, name, _padded(values, batch.action_mask) if is_there else None)
        for name in _SCORED_MEANS:
            means = [row.info[name] if row and is_trained(row) else torch.zeros(1) for row in found]
            batch.info[name] = torch.cat(means)


def by_tokens(lengths: Sequence[int], places: Iterable[int], *, max_tokens: int) -> list[list[int]]:
    """Packs rows into micro-batches: long rows first, each padded to its longest, so that padding is least.

    Returns the places of each one's rows. `max_tokens` includes padding; a longer row is one alone.
    """
    packed: list[list[int]] = []
    for place in sorted(places, key=lambda place: -lengths[place]):
        if packed and lengths[packed[-1][0]] * (len(packed[-1]) + 1) <= max_tokens:
            packed[-1].append(place)
        else:
            packed.append([place])
    return packed


def spread(packed: list[list[int]], num: int) -> list[list[int]]:
    """Returns so many micro-batches: the largest are halved, and where all have one row, empty ones added."""
    packed = [list(places) for places in packed]
    while len(packed) < num:
        largest = max(packed, key=len, default=[])
        half = len(largest) // 2
        packed.append([largest.pop() for _ in range(half)])
    return packed


def shared(lengths: Sequence[int], num_shares: int) -> list[list[int]]:
    """Deals rows out by length, there and back, so that each share has about as many tokens."""
    shares: list[list[int]] = [[] for _ in range(num_shares)]
    for turn, place in enumerate(sorted(range(len(lengths)), key=lambda place: -lengths[place])):
        lap, seat = divmod(turn, num_shares)
        shares[seat if lap % 2 == 0 else num_shares - 1 - seat].append(place)
    return shares


def scoring_batches(lengths: Sequence[int], *, num_shares: int, max_tokens: int) -> list[list[int]]:
    """Returns micro-batches of all shares, one share's after the other's, as many of each; [] is empty."""
    dealt = [by_tokens(lengths, share, max_tokens=max_tokens) for share in shared(lengths, num_shares)]
    most = max(1, *(len(packed) for packed in dealt))
    return [places for packed in dealt for places in spread(packed, most)]


def _one_of(equal: Sequence[Experience]) -> Experience:
    first = equal[0]
    advantages = torch.stack([row.advantages for row in equal]).mean(dim=0)
    copies = torch.stack([row.info[_COPIES] for row in equal]).sum(dim=0)  # (1,)
    return replace(first, advantages=advantages, info=first.info | {_COPIES: copies})


def _row(batch: Experience, place: int, length: int) -> Experience:
    padding = batch.sequences.shape[-1] - length
    cut: dict[str, Any] = {}
    for field in fields(Experience):
        value = getattr(batch, field.name)
        if isinstance(value, torch.Tensor):
            value = value[place : place + 1]
            if Experience.is_step_tensor_field(field.name):  # of tokens (1, T) or of actions (1, T - 1)
                value = value[:, : value.shape[-1] - padding]
        elif isinstance(value, dict):
            value = {key: part[place : place + 1] for key, part in value.items()}
        elif isinstance(value, list):
            value = value[place : place + 1]
        cut[field.name] = value
    return Experience(**cut)


def _padded(values: Sequence[torch.Tensor | None], action_mask: torch.Tensor) -> torch.Tensor:
    """(B, A) from (1, a) of each row; 0 where there is none."""
    padded = torch.zeros(action_mask.shape)
    for place, value in enumerate(values):
        if value is not None:
            padded[place, : value.shape[-1]] = value[0]
    return padded
