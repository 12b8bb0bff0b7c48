"""OpenRLHF's replay buffer with micro-batches by tokens, of which none of a step's rows is left out.

OpenRLHF's own dynamic batches count steps by prompts, so the other roles' rows would never be trained, and
its command line demands flash attention for them. The rest of them is what is wanted: the trainers of policy
and critic take micro-batches of any size from the buffer, and step when the buffer says so. So the trainers
get the setting that batches are dynamic, and this buffer says which rows are in them: one optimizer
step of all.
"""

from typing import Any

import torch
from openrlhf.trainer.ppo_utils import NaiveReplayBuffer
from torch import distributed

from pipeline.training.micro_batches import by_tokens, filler, num_actions, spread
from pipeline.training.trainer_settings import Batching


class TokenBuffer(NaiveReplayBuffer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`NaiveReplayBuffer` whose dynamic batches are by tokens (`pipeline.training.micro_batches`)."""

    max_tokens: int
    tokens_a_rank: float  # trained ones of the step, copies counted, on average

    def setup_dynamic_batch(self, strategy: Any) -> None:
        """Makes the micro-batches of the rows that were handed over, as many on each rank."""
        group = strategy.ds_device_mesh["dp"].get_group()
        lengths = [len(item.sequences) for item in self.items]
        packed = by_tokens(lengths, range(len(lengths)), max_tokens=self.max_tokens)
        num_batches = torch.tensor(len(packed))
        num_tokens = num_actions(self.items)
        device = torch.cuda.current_device()
        num_batches, num_tokens = num_batches.to(device), num_tokens.to(device)
        distributed.all_reduce(num_batches, op=distributed.ReduceOp.MAX, group=group)
        distributed.all_reduce(num_tokens, op=distributed.ReduceOp.SUM, group=group)
        self.tokens_a_rank = float(num_tokens) / distributed.get_world_size(group=group)
        num, num_rows = int(num_batches), len(lengths)
        self.dynamic_indices = [places or [self._filler()] for places in spread(packed, num)]
        self.sample_batch_size = 1
        # A step without any trained token has loss 0, and not 0 / 0. Its optimizer step is left out: Adam's
        # momentum and the weight decay would still move the weights.
        self.dynamic_batch_num_tokens = [max(float(num_tokens), 1.0)] * num
        self.dynamic_global_batch_size = [1.0] * num  # for means of rows, which no loss here is
        self.dynamic_sample_loss_scale = [len(places) / num_rows for places in self.dynamic_indices]
        self.dynamic_optimizer_step = [0] * (num - 1) + [int(num_tokens > 0)]

    def _filler(self) -> int:
        self.items.append(filler(min(self.items, key=lambda item: len(item.sequences))))
        return len(self.items) - 1


def take_any_batches(strategy: Any) -> None:
    """Tells OpenRLHF in a model's process, before it loads the model, that the buffer makes the batches.

    Its command line would also switch packing on, which needs flash attention.
    """
    strategy.use_dynamic_batch = True
    strategy.args.train.dynamic_batch_enable = True


def batch_by_tokens(trainer: Any, batching: Batching) -> None:
    """Exchanges the class of a trainer's buffer, which OpenRLHF built itself."""
    buffer = trainer.replay_buffer
    assert type(buffer) is NaiveReplayBuffer and buffer.dynamic_batch
    buffer.__class__ = TokenBuffer
    buffer.max_tokens = batching.update_tokens
