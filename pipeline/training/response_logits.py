"""OpenRLHF's actor, whose head computes logits at the responses alone.

OpenRLHF takes logits of all tokens, prompts too, in 32 bits; with a short answer to long documents they are
most of a pass and most of its memory. Transformers' models take `logits_to_keep`, the number of last
positions that the head is applied to, so rows are moved to the right end of their micro-batch and the longest
response decides. Log-probabilities are moved back. Not with packing, where all rows are one sequence.
"""

import inspect
from typing import Any

import torch
from openrlhf.models import Actor
from openrlhf.models import actor as upstream

_log_probs_from_logits = upstream.log_probs_from_logits


def _of_kept_positions(logits: torch.Tensor, labels: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """As OpenRLHF's, of the last positions only, where logits are of these."""
    kept: torch.Tensor = _log_probs_from_logits(logits, labels[:, -logits.shape[1] :], temperature)
    return kept


# `Actor.forward` calls it with the labels of all tokens.
upstream.log_probs_from_logits = _of_kept_positions


class ResponseLogitsActor(Actor):  # type: ignore[misc]  # OpenRLHF is untyped
    """`Actor` that computes logits from the first action of a micro-batch on."""

    def forward(
        self,
        sequences: torch.Tensor,
        action_mask: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        return_output: bool = False,
        **kwargs: Any,
    ) -> Any:
        """As OpenRLHF's; logits of the output that `return_output` asks for are of the last positions.

        Args:
            sequences: (B, T) tokens, padded on the right.
            action_mask: (B, T - 1) the tokens whose log-probabilities are wanted, from the second on.
            attention_mask: (B, T) 0 where there is padding.
            return_output, kwargs: as OpenRLHF's.
        """
        if action_mask is None or attention_mask is None:
            return super().forward(sequences, action_mask, attention_mask, return_output, **kwargs)
        padding = sequences.shape[1] - attention_mask.sum(dim=1)  # (B,)
        actions = _moved(action_mask, padding)
        first = int(actions.any(dim=0).int().argmax()) if actions.any() else actions.shape[1] - 1
        result = super().forward(
            _moved(sequences, padding),
            actions[:, first:],
            _moved(attention_mask, padding),
            return_output,
            logits_to_keep=sequences.shape[1] - first,
            **kwargs,
        )
        if not return_output:
            return _put_back(result, padding, first)
        log_probs, output = result
        if "entropy" in vars(output):
            output.entropy = _put_back(output.entropy, padding, first)
        return _put_back(log_probs, padding, first), output


def with_response_logits(actor: Actor) -> None:
    """Exchanges the class of an actor, where its model can keep the logits of some positions."""
    model = getattr(actor.model, "module", actor.model)  # DeepSpeed's engine is around it
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
    takes_it = "logits_to_keep" in inspect.signature(model.forward).parameters
    if takes_it and not actor.packing_samples and not actor.is_vlm:
        assert type(actor) is Actor
        actor.__class__ = ResponseLogitsActor


def _moved(rows: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """(B, N) with each row moved so many places to the right; what falls off the end comes in in front."""
    places = torch.arange(rows.shape[1], device=rows.device)
    return rows.gather(1, (places - by.unsqueeze(1)) % rows.shape[1])


def _put_back(values: torch.Tensor, padding: torch.Tensor, first: int) -> torch.Tensor:
    """(B, T - 1) in the places of the actions, from (B, T - 1 - first)."""
    whole = torch.nn.functional.pad(values, (first, 0))
    return _moved(whole, -padding)
