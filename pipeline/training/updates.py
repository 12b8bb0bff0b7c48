"""What the figures of an update are over: every trained row and token, and every optimizer step."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import Any

import torch
from openrlhf.models import PolicyLoss

from pipeline.training.buffer import TokenBuffer


class LossOfCopies(PolicyLoss):  # type: ignore[misc]  # OpenRLHF is untyped
    """`PolicyLoss` of rows that stand for several equal ones (`pipeline.training.micro_batches.merged`).

    OpenRLHF's terms and figures are sums over the action mask, so they are weighted by it.
    """

    copies: torch.Tensor  # (B,) of the micro-batch that comes next

    def forward(
        self,
        log_probs: torch.Tensor,
        old_log_probs: torch.Tensor,
        advantages: torch.Tensor,
        action_mask: torch.Tensor,
        **kwargs: Any,
    ) -> Any:
        """As OpenRLHF's; all tensors are (B, A)."""
        weights = action_mask * self.copies.unsqueeze(-1)
        return super().forward(log_probs, old_log_probs, advantages, weights, **kwargs)


class Updates:
    """The optimizer steps of one PPO step: one for each pass over its rows.

    Args:
        engine: DeepSpeed's, of the model that is trained.
        scheduler: Of its learning rate.
    """

    def __init__(self, engine: Any, scheduler: Any) -> None:
        self._engine, self._scheduler = engine, scheduler
        self._rates: list[float] = []
        self._norms: list[float] = []

    @contextmanager
    def micro_batch(self, buffer: TokenBuffer, step: int) -> Iterator[None]:
        """Around a micro-batch: tells DeepSpeed whether an optimizer step ends it, and notes that step.

        OpenRLHF tells DeepSpeed that a step has one micro-batch, and DeepSpeed 0.19.6 would then forget the
        gradients of all but the last.
        """
        ends_step = bool(buffer.dynamic_optimizer_step[step])
        self._engine.set_gradient_accumulation_boundary(ends_step)
        rate = self._scheduler.get_last_lr()[0]  # the optimizer step moves the scheduler on
        yield
        if ends_step:
            norm = self._engine.get_global_grad_norm()
            self._rates.append(rate)
            self._norms.append(math.nan if norm is None else float(norm))

    def figures(self, status: dict[str, Any], model: str) -> dict[str, Any]:
        """Returns OpenRLHF's figures with learning rate and gradient norm as means over the updates.

        Nothing was measured where nothing was trained, and no norm where DeepSpeed says none (in 32 bits at
        ZeRO stage 0): that is no number.
        """
        if not self._rates:
            return {}
        return status | {f"{model}_lr": fmean(self._rates), f"{model}_grad_norm": fmean(self._norms)}
