"""The settings of the update: estimator, optimisers, and the switches of the method that act on the loss.

What they do to a batch is in `pipeline.training.advantages` and `pipeline.training.experience`.
"""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from reward.config import Settings
from reward.types import Role


class AdvantageEstimator(StrEnum):
    """Two of OpenRLHF's estimators, by its names."""

    GAE = "gae"  # the paper's, with a critic
    RLOO = "rloo"  # the mean of the other answers to the same prompt is the baseline


class RewardScalars(StrEnum):
    """What a refuted and a supported answer are paid (paper, ablation on reward scalars)."""

    PENALTY = "-1/0"
    INCENTIVE = "0/1"

    @property
    def shift(self) -> float:
        """What is added to the audit's reward, which is on the scale -1/0."""
        return 1.0 if self is RewardScalars.INCENTIVE else 0.0


class CheckerReward(StrEnum):
    """Where the terminal reward of a Checker's turn is written."""

    LAST_TOKEN = "last_token"  # the turn's last valid token, as the paper has it
    # A refuted turn's penalty on the numbered answers that its own votes refute, under rloo; what the others
    # get is as with `SolverCredit.CLAIM`.
    EACH_ANSWER = "each_answer"


class SolverCredit(StrEnum):
    """Which tokens of a refuted answer bear its penalty, under rloo (docs/presets.md)."""

    ANSWER = "answer"  # all, as in the paper
    CLAIM = "claim"  # those of the sentences with refuted claims


class CheckerCredit(StrEnum):
    ANSWER = "answer"  # the reward of the answer, whatever this voter said (paper, section 2.3)
    # What its own votes alone would make of the claims (`reward.types.Trajectory.own_reward`), so that an
    # outvoted voter is not paid for the majority. A turn whose votes cannot be read is not trained.
    VOTE = "vote"
    # The same, without the claims that the majority contradicts by this voter's own answer
    # (`Trajectory.undisputed_reward`), so that a right vote against a wrong claim is not punished.
    UNDISPUTED_VOTE = "undisputed_vote"


class CorrectionSettings(Settings):
    """OpenRLHF's correction for rows that the trained policy did not sample as it is now.

    Each token's term of the loss is multiplied by p_actor / p_sampler: engines round otherwise than the
    actor, and in asynchronous mode sample with older weights. Its named schemes are `token` with `clip`
    (TIS), `token` with `mask` (IcePop) and `seq` with `mask`.
    """

    level: Literal["off", "token", "seq"] = Field(
        default="off", description="What is held against the bounds: each token, or the mean of a row."
    )
    mode: Literal["mask", "clip"] = Field(
        default="mask", description="What is out of bounds is left out, or its factor is clipped to them."
    )
    low: float = Field(default=0.5, ge=0)
    high: float = Field(default=5.0, gt=0)

    @model_validator(mode="after")
    def _openrlhf_supports_it(self) -> Self:
        if self.mode == "clip" and self.level == "seq":
            raise ValueError(
                "mode: clip with level seq; OpenRLHF clips the ratios of tokens alone, so set level: token, "
                "or mode: mask"
            )
        if self.low >= self.high:
            raise ValueError(f"low: {self.low:g} is not below high {self.high:g}; exchange them")
        return self


class OptimizerSettings(Settings):
    lr: float = Field(gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    max_norm: float = Field(default=1.0, gt=0)


class PpoSettings(Settings):
    """The update (paper, Table 6)."""

    estimator: AdvantageEstimator = AdvantageEstimator.GAE
    reward_scalars: RewardScalars = Field(
        default=RewardScalars.PENALTY,
        description='"0/1" adds 1 to the reward of each scored row, in the trainer alone.',
    )
    checker_reward: CheckerReward = CheckerReward.LAST_TOKEN
    checker_credit: CheckerCredit = CheckerCredit.ANSWER
    solver_credit: SolverCredit = SolverCredit.ANSWER
    correction: CorrectionSettings = CorrectionSettings()
    actor: OptimizerSettings = OptimizerSettings(lr=1e-6, warmup_steps=5)
    critic: OptimizerSettings = OptimizerSettings(lr=1e-5, warmup_steps=10)
    lr_scheduler: Literal["constant_with_warmup", "constant", "linear", "cosine_with_min_lr"] = (
        "constant_with_warmup"
    )
    kl_coef: float = Field(default=1e-3, ge=0, description="Weight of the KL penalty in the reward.")
    gamma: float = Field(default=0.998, gt=0, le=1)
    lambd: float = Field(default=1.0, ge=0, le=1)
    whitening_floor: float = Field(
        default=1e-4,
        gt=0,
        allow_inf_nan=False,
        description="Least deviation that a role's advantages are divided by. The default is OpenRLHF's; 0.1 "
        "keeps a step of equal rewards from training on the critic's noise.",
    )
    refuse_saying_less: bool = Field(
        default=False,
        description="A supported answer that mentions less than most of its query's answers is paid as a "
        "refuted one; needs several answers to a query.",
    )
    eps_clip: float = Field(default=0.2, gt=0, lt=1)
    value_clip: float = Field(default=0.5, gt=0)
    epochs: int = Field(default=1, ge=1, description="Passes over a step's rows.")
    micro_batch_size: int = Field(
        default=4,
        ge=1,
        description="Rows of the longest length in one backward pass on a rank, which set its memory; of "
        "shorter rows there are more.",
    )
    truncated_reward: float | None = Field(
        default=None,
        lt=0,
        description="Reward of a trained turn that was cut at its token limit, in place of the audit's and "
        "on its scale -1/0; reward_scalars shift it with the others. What has no reward stays masked.",
    )

    @model_validator(mode="after")
    def _a_group_baseline_is_undiscounted(self) -> Self:
        if self.estimator is AdvantageEstimator.RLOO and self.gamma != 1.0:
            raise ValueError(
                f"gamma: {self.gamma} with estimator {self.estimator}, which does not discount; set it to 1.0"
            )
        return self

    @model_validator(mode="after")
    def _tokens_are_held_against_other_answers(self) -> Self:
        for said in self.credit_by_token.values():
            if self.estimator is not AdvantageEstimator.RLOO:
                raise ValueError(
                    f"{said} with estimator {self.estimator}; a token is held against the other answers to "
                    "its query, as rloo does, so set estimator: rloo, or leave it out"
                )
        if self.checker_reward is CheckerReward.EACH_ANSWER and self.checker_credit is not CheckerCredit.VOTE:
            raise ValueError(
                f"checker_reward: each_answer with checker_credit: {self.checker_credit}, which pays no "
                "answer for itself; set checker_credit: vote, or checker_reward: last_token"
            )
        return self

    @model_validator(mode="after")
    def _a_constant_rate_has_no_warm_up(self) -> Self:
        optimizers = {"actor": self.actor}
        if self.estimator is AdvantageEstimator.GAE:
            optimizers["critic"] = self.critic
        for name, optimizer in optimizers.items():
            if self.lr_scheduler == "constant" and optimizer.warmup_steps:
                raise ValueError(
                    f"{name}.warmup_steps: {optimizer.warmup_steps} with lr_scheduler constant, which has no "
                    "warm-up; set lr_scheduler: constant_with_warmup, or the steps to 0"
                )
        return self

    @property
    def credit_by_token(self) -> dict[Role, str]:
        """The roles whose tokens bear a turn's penalty or do not, with the setting that says so."""
        roles = {}
        if self.solver_credit is SolverCredit.CLAIM:
            roles[Role.SOLVER] = "solver_credit: claim"
        if self.checker_reward is CheckerReward.EACH_ANSWER:
            roles[Role.CHECKER] = "checker_reward: each_answer"
        return roles
