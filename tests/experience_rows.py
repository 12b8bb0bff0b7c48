"""Shared by the tests of the PPO buffer: answers as OpenRLHF's agent hands them over, and an experience maker
whose remote models are formulas.

OpenRLHF's own code computes everything else, `make_experience` with its KL included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from pipeline import cpu
from pipeline.settings.ppo import CheckerCredit, PpoSettings
from reward.types import Outcome, Role, Trajectory, Verdict

cpu.install()

from openrlhf.trainer.ppo_utils import NaiveReplayBuffer, experience_maker  # noqa: E402
from openrlhf.trainer.ppo_utils.experience import Experience, split_experience_batch  # noqa: E402
from openrlhf.utils.loss_utils import get_loss_batch_info  # noqa: E402

from pipeline.record.metrics import Stopwatch  # noqa: E402
from pipeline.record.rollout_record import RolloutRecord  # noqa: E402
from pipeline.training.buffer import TokenBuffer, batch_by_tokens  # noqa: E402
from pipeline.training.experience import MarchExperienceMaker, MarchSamplesGenerator  # noqa: E402
from pipeline.training.trainer_settings import Batching  # noqa: E402

TWO_ROLES = (Role.SOLVER, Role.CHECKER)
THREE_ROLES = (*TWO_ROLES, Role.PROPOSER)
PLAIN = PpoSettings(gamma=1.0, kl_coef=0.0)
Model = Callable[[Tensor], Tensor]  # (B, T) tokens to (B, T - 1) figures of the actions


END = 300  # the end token, which is no byte


def byte_tokens(text: str) -> list[int]:
    """A token for each byte, and the end token."""
    return [*text.encode(), END]


def decode_bytes(token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
    """As byte-level tokenizers do: what is no whole character is a replacement character."""
    return bytes(token for token in token_ids if token < 256).decode(errors="replace")


def zeros(tokens: Tensor) -> Tensor:
    return torch.zeros(tokens[:, 1:].shape)


def args_of(ppo: PpoSettings, *, samples: int, micro_batch: int = 2) -> Any:
    """OpenRLHF's arguments as far as experiences are made by them."""
    advantage = SimpleNamespace(
        estimator=ppo.estimator.value,
        gamma=ppo.gamma,
        lambd=ppo.lambd,
        no_std_norm=False,
        is_correction_level=ppo.correction.level,
    )
    reward = SimpleNamespace(
        clip_range=(-10, 10),
        overlong_buffer_len=None,
        stop_properly_penalty_coef=ppo.truncated_reward,
        overlong_penalty_factor=1,
    )
    return SimpleNamespace(
        algo=SimpleNamespace(advantage=advantage, kl=SimpleNamespace(use_loss=False, estimator="k1")),
        rollout=SimpleNamespace(n_samples_per_prompt=samples, micro_batch_size=micro_batch),
        train=SimpleNamespace(
            dynamic_batch_enable=False,
            colocate_all=False,
            colocate_actor_ref=False,
            colocate_critic_reward=False,
        ),
        ds=SimpleNamespace(ring_attn_size=1, tensor_parallel_size=1),
        reward=reward,
    )


class Generator(MarchSamplesGenerator):
    def __init__(self, train_roles: Sequence[Role] = TWO_ROLES) -> None:
        """Needs no engines: only responses are processed."""
        self.train_roles = train_roles


class Maker(MarchExperienceMaker):
    """Its policy, reference and critic are functions of the tokens."""

    def __init__(
        self,
        ppo: PpoSettings = PLAIN,
        train_roles: Sequence[Role] = TWO_ROLES,
        *,
        samples: int = 1,
        policy: Model = zeros,
        reference: Model | None = zeros,
        critic: Model | None = zeros,
        num_shares: int = 1,
    ) -> None:
        args = args_of(ppo, samples=samples)
        self.args, self.strategy = args, SimpleNamespace(args=args)
        self.ppo, self.train_roles = ppo, train_roles
        self.batching = Batching(num_shares=num_shares, scoring_tokens=40, update_tokens=40)
        self.models_clock = Stopwatch()
        self.tokenizer = SimpleNamespace(pad_token_id=0, decode=decode_bytes)
        self.kl_ctl = SimpleNamespace(value=ppo.kl_coef)
        self.advantage_estimator = ppo.estimator.value
        self.actor_model_group, self.initial_model_group = policy, reference
        self.critic_model_group, self.reward_model_group = critic, None
        experience_maker.ray = SimpleNamespace(put=lambda value: value)  # starts no cluster

    def make_experience_batch(self, rollout_samples: list[Experience]) -> list[Experience]:
        """All rows in their places, where the product returns those that are trained (`to_train`)."""
        return self.lay_out(rollout_samples)

    def _dispatch_forward(self, group: Model, sync_condition: bool, **kwargs: Any) -> list[Tensor]:
        return [group(sequences) for sequences in kwargs["sequences"]]

    def _flatten_results(self, refs: list[Any], duplicate_factor: int) -> list[Any]:
        return [ref[0] if isinstance(ref, list) else ref for ref in refs]  # [None] where there is no model


def turn(
    role: Role,
    *,
    prompt: int,
    length: int,
    first: int = 1,
    truncated: bool = False,
    logprob: float | None = None,
) -> Trajectory:
    return Trajectory(
        role=role,
        prompt_token_ids=tuple(range(1, prompt + 1)),
        response_token_ids=tuple(range(first, first + length)),
        finish_reason="length" if truncated else "stop",
        logprobs=None if logprob is None else (logprob,) * length,
        own_reward=0.0 if role is Role.CHECKER else None,  # its votes can be read
    )


REASONS = {Outcome.UNSCORED: "timeout", Outcome.REFUTED: "contradicted", Outcome.SUPPORTED: "supported"}


def answer(
    reward: float | None,
    *,
    solver: int = 4,
    checker: int | None = 6,
    prompt: int = 5,
    truncated: bool = False,
    train_roles: Sequence[Role] = TWO_ROLES,
    more: Sequence[Trajectory] = (),
    credit: CheckerCredit = CheckerCredit.ANSWER,
    text: str | None = None,
    verdict: Verdict | None = None,
    logprob: float | None = None,
) -> Experience:
    """An answer with turns of so many tokens; None for no Checker turn. With `text` its tokens are bytes."""
    checked = [] if checker is None else [turn(Role.CHECKER, prompt=8, length=checker, logprob=logprob)]
    outcome = Outcome.UNSCORED if reward is None else Outcome.REFUTED if reward else Outcome.SUPPORTED
    record = RolloutRecord(
        query_id="q",
        response="r" if text is None else text,
        verdict=verdict or Verdict(id="q", outcome=outcome, reward=reward, reason=REASONS[outcome]),
        turns={} if reward is None else {one.role: one for one in [*checked, *more]},
        checker_credit=credit,
        num_checker_turns=len(checked),
    )
    tokens = list(range(prompt + 1, prompt + solver + 1)) if text is None else byte_tokens(text)
    response = {
        "prompt": "p",
        "label": "l",
        "reward": reward,
        "scores": reward,
        "observation_tokens": [*range(1, prompt + 1), *tokens],
        "action_ranges": [(prompt, prompt + len(tokens))],
        "rollout_log_probs": None if logprob is None else [logprob] * (prompt + len(tokens)),
        "truncated": truncated,
        "extra_logs": {},
        "rollout": record,
    }
    generator = Generator(train_roles)
    experience: Experience = generator._process_response_into_experience(response, max_len=512)
    return experience


def buffered(parts: Sequence[Experience], *, max_tokens: int) -> TokenBuffer:
    """The replay buffer of one rank with these rows, its micro-batches made."""
    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    buffer = NaiveReplayBuffer(1, dynamic_batch=True)
    trainer = SimpleNamespace(replay_buffer=buffer)
    batching = Batching(num_shares=1, scoring_tokens=max_tokens, update_tokens=max_tokens)
    batch_by_tokens(trainer, batching)
    for part in parts:
        buffer.append(part)
    buffer.setup_dynamic_batch(ONE_RANK)
    return buffer


ONE_RANK = SimpleNamespace(ds_device_mesh={"dp": SimpleNamespace(get_group=lambda: None)})


def micro_batches_of(buffer: TokenBuffer) -> list[tuple[Experience, dict[str, Any]]]:
    """Each micro-batch with OpenRLHF's normalisers of its loss."""
    batches = [buffer.collate_fn([buffer[place]]) for place in range(len(buffer))]
    return [
        (
            batch,
            get_loss_batch_info(
                ONE_RANK, batch.action_mask, replay_buffer=buffer, step=step, dynamic_batch=True
            ),
        )
        for step, batch in enumerate(batches)
    ]


def rows_of(batches: list[Experience]) -> list[Experience]:
    return [row for batch in batches for row in split_experience_batch(batch)]


def trained(row: Experience) -> Tensor:
    """The advantages of a row's actions."""
    values: Tensor = row.advantages[row.action_mask.bool()]
    return values
