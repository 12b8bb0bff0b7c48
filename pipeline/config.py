"""The configuration of a training run: one typed tree, read from a recipe in YAML, checked before anything
heavy starts.

A recipe names what a run is made of; `pipeline.openrlhf_args` turns it into OpenRLHF's command line. Unknown
keys are refused, and every cross-field rule that OpenRLHF would break in silence is checked here
(`docs/decisions.md` says why).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from pipeline.cluster import ClusterSettings, check_batches, check_gpus
from pipeline.estimate.assumptions import EstimateSettings
from pipeline.ppo import AdvantageEstimator, CheckerReward, LossScale, PpoSettings
from pipeline.recipe_tree import read_tree, recipe_file
from pipeline.tiny.world import WorldSettings
from reward.assignments import assign
from reward.config import AuditConfig, LocalSamplerConfig, OpenAISamplerConfig, Settings, Structured
from reward.types import Role

TINY_POLICY = Path(__file__).parent / "tiny" / "checkpoint"


class DataSettings(Settings):
    """Where the prompts come from: prepared rows, or worlds of the tiny task made on the spot."""

    source: Literal["prepared", "tiny"] = "prepared"
    path: Path | None = Field(
        default=None, description="Folder that `march prepare` wrote; for source: prepared."
    )
    world: WorldSettings = Field(default=WorldSettings(), description="For source: tiny.")
    max_steps: int | None = Field(default=None, ge=1, description="PPO steps; all rows once when left out.")

    @model_validator(mode="after")
    def _source_has_what_it_needs(self) -> Self:
        if self.source == "prepared" and self.path is None:
            raise ValueError("path: missing; give the folder that `march prepare` wrote")
        if self.source == "tiny" and self.max_steps is None:
            raise ValueError("max_steps: missing; worlds are made on the spot, so say how many steps")
        return self


class RolloutSettings(Settings):
    """Generation by the live policy, shared by all three roles."""

    batch_size: int = Field(default=32, ge=1, description="Queries a PPO step; 32 in the paper.")
    samples_per_query: int = Field(default=1, ge=1)
    micro_batch_size: int = Field(default=4, ge=1, description="Rows of one forward pass; sets memory.")
    temperature: float = Field(
        default=0.6, gt=0, le=2, description="0.6 in the paper; the Checker samples at it too."
    )
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_prompt_tokens: int = Field(
        default=24_567, ge=1, description="The paper's; longer prompts are filtered."
    )
    max_response_tokens: int = Field(default=8_192, ge=1, description="The paper's.")


class RewardSettings(Settings):
    """The reward servers of a run; they sample its own rollout engines, unless told otherwise."""

    num_servers: int = Field(
        default=1, ge=1, le=64, description="Processes that share the audits (docs/scaling.md)."
    )
    host: str = Field(
        default="127.0.0.1",
        description="This machine's address for rollout engines on others; plain HTTP, answers signed.",
    )
    patience_s: float = Field(
        default=120.0, ge=0, description="How long a step waits for servers that are gone."
    )
    sampler: OpenAISamplerConfig | LocalSamplerConfig | None = Field(
        default=None,
        discriminator="kind",
        description="What plays Proposer and Checker in place of the live policy: a frozen model; then only "
        "the Solver can be trained.",
    )


class CheckpointSettings(Settings):
    """What is kept to resume from."""

    every: int = Field(default=20, ge=1, description="Steps between checkpoints; 20 in the paper.")
    keep: int = Field(
        default=3, ge=2, description="Two at least: a kill while one is written must leave another."
    )


class GuardSettings(Settings):
    """What stops a run that can no longer be trusted."""

    max_unscored_rate: float = Field(
        default=0.5, ge=0, lt=1, description="Of a step's answers; above it the run stops."
    )
    probe_tolerance: float = Field(
        default=0.1,
        gt=0,
        description="Largest mean gap of engine and actor after a weight sync, nats a token. On equal "
        "weights in bfloat16 it is below 0.005 where the policy is sure and 0.04 where it is not.",
    )


class TrackingSettings(Settings):
    """MLflow."""

    uri: str | None = Field(
        default=None, description="Tracking server; a local SQLite store beside the runs by default."
    )
    experiment: str = "march"


class Recipe(Settings):
    """A whole training run."""

    name: str
    note: str = Field(default="", description="One sentence that every report of a run shows.")
    seed: int = Field(default=0, ge=0)
    model: str = Field(
        description='Folder or name of a Hugging Face model; "tiny" is the policy in this repository.'
    )
    train_roles: tuple[Role, ...] = Field(
        default=(Role.SOLVER, Role.CHECKER), description="The Solver and any of the other two."
    )
    checker_turns: Literal["seeded", "all"] = Field(
        default="seeded",
        description="Which valid Checker turns of an answer are trained: one, by a seeded choice, or all, "
        "which weigh as much as one together.",
    )
    data: DataSettings
    rollout: RolloutSettings = RolloutSettings()
    ppo: PpoSettings = PpoSettings()
    audit: AuditConfig = AuditConfig()
    cluster: ClusterSettings = ClusterSettings()
    reward: RewardSettings = RewardSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    ablation: bool = Field(
        default=False, description="Says that a setting which repeats a known mistake is meant."
    )
    guards: GuardSettings = GuardSettings()
    tracking: TrackingSettings = TrackingSettings()
    estimate: EstimateSettings = EstimateSettings()
    oracle: Literal["none", "tiny"] = Field(
        default="none",
        description="Ground truth for monitoring, where a world has one; it never touches a reward.",
    )

    @model_validator(mode="after")
    def _roles_are_trainable(self) -> Self:
        if Role.SOLVER not in self.train_roles or len(set(self.train_roles)) < len(self.train_roles):
            raise ValueError("train_roles: must name the solver, and no role twice")
        return self

    @model_validator(mode="after")
    def _audited_turns_are_on_policy(self) -> Self:
        sampled = {Role.CHECKER: self.audit.checker, Role.PROPOSER: self.audit.proposer}
        free = {Role.CHECKER: self.audit.structured is not Structured.ALL}
        free[Role.PROPOSER] = self.audit.structured is Structured.NONE
        wanted = (self.rollout.temperature, self.rollout.top_p)
        for role in set(self.train_roles) & set(sampled):
            if (sampled[role].temperature, sampled[role].top_p) != wanted:
                raise ValueError(
                    f"audit.{role}: temperature and top_p must equal rollout's, since the actor recomputes "
                    f"the {role}'s log-probabilities at rollout.temperature ({wanted[0]}); set them alike"
                )
            if not free[role]:
                raise ValueError(
                    f"audit.structured: {self.audit.structured} constrains the {role}, which is trained; "
                    "its tokens would not be the policy's own, so use none"
                )
        return self

    @model_validator(mode="after")
    def _a_frozen_checker_is_not_trained(self) -> Self:
        if self.reward.sampler is not None and self.train_roles != (Role.SOLVER,):
            raise ValueError(
                "reward.sampler: a frozen model plays Proposer and Checker, whose turns are then not the "
                "policy's own; set train_roles: [solver], or leave the sampler out"
            )
        return self

    @model_validator(mode="after")
    def _known_mistakes_are_meant(self) -> Self:
        if self.ppo.checker_reward is CheckerReward.LAST_SLOT and not self.ablation:
            raise ValueError(
                "ppo.checker_reward: last_slot loses the Checker's reward, as the published code does; use "
                "last_token, or set ablation: true where this is what the run is to show"
            )
        return self

    @model_validator(mode="after")
    def _groups_have_members(self) -> Self:
        if self.ppo.estimator.is_grouped and self.rollout.samples_per_query < 2:
            raise ValueError(
                f"rollout.samples_per_query: 1, but ppo.estimator {self.ppo.estimator} compares the answers "
                "to one query; use 2 or more"
            )
        return self

    @model_validator(mode="after")
    def _cluster_can_run_it(self) -> Self:
        check_gpus(self.cluster, critic=self.has_critic, reference=self.has_reference)
        check_batches(
            self.cluster,
            answers=self.answers_per_step,
            rows=self.rows_per_step,
            rollout_micro=self.rollout.micro_batch_size,
            ppo_micro=self.ppo.micro_batch_size,
        )
        return self

    @property
    def has_critic(self) -> bool:
        """Whether a critic is trained."""
        return self.ppo.estimator is AdvantageEstimator.GAE

    @property
    def has_reference(self) -> bool:
        """Whether a reference policy runs beside the actor."""
        return self.ppo.kl_coef > 0

    @property
    def answers_per_step(self) -> int:
        """Solver turns of one PPO step; the paper's |B| where a query is answered once."""
        return self.rollout.batch_size * self.rollout.samples_per_query

    @property
    def rows_by_role(self) -> dict[Role, int]:
        """Rows of one answer, fillers included, so that the count a step never changes."""
        rows = {Role.SOLVER: 1, Role.CHECKER: 1, Role.PROPOSER: 1}
        if self.checker_turns == "all":
            rows[Role.CHECKER] = self.audit.voters
        return {role: num for role, num in rows.items() if role in self.train_roles}

    @property
    def rows_per_step(self) -> int:
        """Trajectories of one PPO step."""
        return self.answers_per_step * sum(self.rows_by_role.values())

    @property
    def loss_divisor(self) -> int | None:
        """What the policy's token terms of a step are divided by; None for their number."""
        is_paper = self.ppo.loss_scale is LossScale.PAPER
        return len(self.train_roles) * self.answers_per_step if is_paper else None

    @property
    def max_model_len(self) -> int:
        """Tokens of a prompt and its response together."""
        return self.rollout.max_prompt_tokens + self.rollout.max_response_tokens

    @property
    def model_path(self) -> str:
        """What `from_pretrained` gets."""
        return str(TINY_POLICY) if self.model == "tiny" else self.model

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the merged recipe, without what only estimates read."""
        settings = self.model_dump(mode="json", exclude={"estimate"})
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def load_recipe(name_or_path: str, overrides: list[str] | None = None) -> Recipe:
    """Reads a recipe, and what it extends, by name (of `pipeline/recipes/`) or path.

    Args:
        name_or_path: Which recipe.
        overrides: `dotted.key=yaml value`, put over the merged tree.

    Raises:
        FileNotFoundError: no such recipe.
        ValueError: an override without "=", not YAML, or a key or value that the tree refuses.
    """
    path = recipe_file(name_or_path)
    tree = read_tree(path)
    try:
        return Recipe.model_validate(assign(tree, overrides or ()))
    except ValidationError as error:
        raise ValueError("; ".join(_explain(path, e) for e in error.errors())) from None


def _explain(path: Path, error: Any) -> str:
    where = ": ".join([path.name, *filter(None, [".".join(str(part) for part in error["loc"])])])
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; remove it or mend its name"
    if error["type"] == "missing":
        return f"{where}: missing; add it"
    message = error["msg"].removeprefix("Value error, ")
    # A rule over several fields names those that it read; its input is the whole group.
    found = "" if isinstance(error["input"], dict) else f" (got {error['input']!r:.80})"
    return f"{where}: {message}{found}"
