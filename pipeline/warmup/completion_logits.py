"""OpenRLHF's SFT trainer, with logits at the completions alone (`pipeline/training/response_logits.py`).

A demonstration is mostly documents: of 246 tokens some 35 are the completion's. The trainer does not hand its
loss mask to the model, so the mask of the micro-batch in hand is kept where the model finds it. Micro-batches
of an update are cut again by length, so that a short demonstration is not padded to a long one.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import openrlhf.trainer.sft_trainer as upstream
import torch

from pipeline.training.response_logits import ResponseLogitsActor, with_response_logits

_iter_windows = upstream.iter_grad_accum_global_norm
_mask: list[torch.Tensor] = []  # (B, T - 1) of the micro-batch in hand

MicroBatch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # tokens, attention, loss: (B, T) or (B, 1, T)


class CompletionLogitsActor(ResponseLogitsActor):
    """Computes what the loss reads: log-probabilities at the completions, 0 elsewhere."""

    def forward(self, sequences: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """As OpenRLHF's, with the mask of the micro-batch in hand as the actions."""
        if not _mask:
            return super().forward(sequences, *args, **kwargs)
        kwargs.pop("return_logprobs", None)  # all tokens' log-probabilities
        return super().forward(sequences, _mask[0].to(sequences.device), *args, **kwargs)


def install(actor: Any) -> None:
    """Has the SFT trainer train `actor` so, where its model can keep the logits of some positions."""
    with_response_logits(actor)
    if isinstance(actor, ResponseLogitsActor):
        actor.__class__ = CompletionLogitsActor
        upstream.iter_grad_accum_global_norm = with_masks


def with_masks(window: Iterable[MicroBatch], *args: Any) -> Iterator[tuple[MicroBatch, Any]]:
    """OpenRLHF's iteration over an update's micro-batches, ordered by length, each with its mask at hand."""
    try:
        for batch, info in _iter_windows(by_length(list(window)), *args):
            _mask[:] = [batch[2].reshape(batch[2].shape[0], -1)[:, :-1]]
            yield batch, info
    finally:
        _mask.clear()


def by_length(window: list[MicroBatch]) -> list[MicroBatch]:
    """The rows of an update in micro-batches of the same sizes, shortest rows first, cut to their ends.

    The update's loss is a mean over the tokens of all of them, so it does not depend on how they are cut.
    """
    sizes = [batch[0].shape[0] for batch in window]
    flat = [[part.reshape(part.shape[0], -1) for part in batch] for batch in window]
    rows = [row for batch in flat for row in zip(*batch, strict=True)]
    lengths = [int(row[1].sum()) for row in rows]
    order = sorted(range(len(rows)), key=lengths.__getitem__)
    cut, start = [], 0
    for size in sizes:
        places = order[start : start + size]
        longest = max(lengths[place] for place in places)
        cut.append(tuple(_stacked([rows[place][part] for place in places], longest) for part in range(3)))
        start += size
    return cut  # type: ignore[return-value]  # three parts each


def _stacked(rows: list[torch.Tensor], length: int) -> torch.Tensor:
    """(B, length) of rows of any length, with zeros behind the shorter ones."""
    return torch.stack([torch.nn.functional.pad(row, (0, length - len(row)))[:length] for row in rows])
