"""The configuration of a training run: one typed tree, read from a recipe in YAML, checked before anything
heavy starts.

A recipe names what a run is made of, and a preset of defaults below its own keys;
`pipeline.launch.openrlhf_args` turns it into OpenRLHF's command line. Unknown keys are refused, and every
cross-field rule that OpenRLHF would silently break is checked here (`docs/decisions.md` says why).
"""

import math
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from pipeline.models.cache import cached
from pipeline.redaction import refuse_password
from pipeline.settings.cluster import ClusterSettings, Colocation
from pipeline.settings.estimate import EstimateSettings
from pipeline.settings.guards import CanaryGuard, CanarySettings, GuardAction, GuardSettings, KlGuard
from pipeline.settings.ppo import AdvantageEstimator, CheckerCredit, PpoSettings
from pipeline.settings.record import CheckpointSettings, TrackingSettings
from pipeline.settings.sources import DataSettings, HeldOutSettings, RewardSettings
from pipeline.settings.tree import explain, read_tree, recipe_file, with_preset
from pipeline.settings.warmup import WarmupSettings
from reward.assignments import assign
from reward.config import AuditConfig, SamplerConfig, Settings, Structured
from reward.problems import problems
from reward.provenance import json_sha256
from reward.types import Role

TINY_POLICY = Path(__file__).parents[1] / "tiny" / "checkpoint"
TINY_KINDS_POLICY = TINY_POLICY.with_name("checkpoint_kinds")  # of worlds with names, dates and abstentions
NOT_TRAINED_BY = {"estimate", "warmup"}  # settings that a training does not read


class RolloutSettings(Settings):
    """Generation by the live policy, shared by all three roles."""

    batch_size: int = Field(default=32, ge=1, description="Queries a PPO step; 32 in the paper.")
    samples_per_query: int = Field(default=1, ge=1)
    micro_batch_size: int = Field(
        default=4, ge=1, description="Rows of the longest length in one forward pass; sets memory."
    )
    temperature: float = Field(
        default=0.6,
        ge=0.01,  # vLLM raises what is lower to that, and the actor would compute with what is asked
        le=2,
        description="0.6 in the paper; the Checker samples at it too.",
    )
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Below 1 what is sampled has other probabilities than the actor computes: ratios are "
        "off, and a weight sync that did not arrive is not seen.",
    )
    max_prompt_tokens: int = Field(
        default=24_567, ge=1, description="The paper's; longer prompts are filtered."
    )
    max_response_tokens: int = Field(default=8_192, ge=1, description="The paper's.")
    max_staleness: int = Field(
        default=0,
        ge=0,
        description="Weight syncs that an answer may be old when it is trained. 0: the engines wait for each "
        "update. More: OpenRLHF's asynchronous mode, they answer so many batches ahead meanwhile.",
    )


class Recipe(Settings):
    name: str
    preset: str | None = Field(
        default=None,
        description="Defaults below the recipe's own keys: paper or march (docs/presets.md); each setting's "
        "own when left out.",
    )
    note: str = Field(default="", description="One sentence that every report of a run shows.")
    seed: int = Field(default=0, ge=0)
    model: str = Field(
        description='Folder or name of a Hugging Face model, or a name of `march base-model`; "tiny" and '
        '"tiny_kinds" are the policies in this repository.'
    )
    train_roles: tuple[Role, ...] = Field(
        default=(Role.SOLVER, Role.CHECKER),
        description="The Solver and any of the other two. Of an answer's Checker turns one is drawn.",
    )
    data: DataSettings
    rollout: RolloutSettings = RolloutSettings()
    ppo: PpoSettings = PpoSettings()
    audit: AuditConfig = AuditConfig()
    cluster: ClusterSettings = ClusterSettings()
    reward: RewardSettings = RewardSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    guards: GuardSettings = GuardSettings()
    canary: CanarySettings | None = Field(
        default=None, description="A frozen Checker beside the live one; none when left out."
    )
    held_out: HeldOutSettings | None = Field(
        default=None, description="Rows that are answered while it trains, never trained on; none by default."
    )
    tracking: TrackingSettings = TrackingSettings()
    estimate: EstimateSettings = EstimateSettings()
    warmup: WarmupSettings = Field(default=WarmupSettings(), description="For `march warmup` alone.")

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
            if sampled[role].top_k is not None:
                raise ValueError(
                    f"audit.{role}.top_k: {sampled[role].top_k}, but the {role} is trained, and the actor "
                    "scores its tokens among the whole vocabulary; leave it out"
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
    def _being_cut_is_never_paid(self) -> Self:
        cut, refuted = self.ppo.truncated_reward, self.audit.reward_refuted
        if cut is not None and cut > refuted:
            raise ValueError(
                f"ppo.truncated_reward: {cut} exceeds audit.reward_refuted: {refuted}: a wrong answer "
                "would gain by being cut; lower it"
            )
        return self

    @model_validator(mode="after")
    def _what_is_paid_is_trained(self) -> Self:
        for said in self.ppo.credit_by_token.values():
            if self.audit.reward_supported:
                raise ValueError(
                    f"audit.reward_supported: {self.audit.reward_supported:g} with ppo.{said}, to which what "
                    "is supported is worth 0; set it to 0, and shift rewards by ppo.reward_scalars"
                )
        credit = self.ppo.checker_credit
        if credit is not CheckerCredit.ANSWER and Role.CHECKER not in self.train_roles:
            raise ValueError(
                f"ppo.checker_credit: {credit} pays the Checker's turns, and train_roles leaves the Checker "
                "out; add it, or set the credit to answer"
            )
        return self

    @model_validator(mode="after")
    def _saved_models_are_whole(self) -> Self:
        if self.checkpoint.models and self.cluster.lora is not None:
            raise ValueError(
                "checkpoint.models: OpenRLHF would save adapters without their model; leave it out with "
                "cluster.lora, whose last model is saved whole"
            )
        return self

    @model_validator(mode="after")
    def _groups_have_members(self) -> Self:
        if not self.has_critic and self.rollout.samples_per_query < 2:
            raise ValueError(
                f"rollout.samples_per_query: 1, but ppo.estimator {self.ppo.estimator} compares the answers "
                "to one query; use 2 or more"
            )
        if self.ppo.refuse_saying_less and self.rollout.samples_per_query < 2:
            raise ValueError(
                "rollout.samples_per_query: 1, but ppo.refuse_saying_less compares the answers to a query; "
                "raise it, or set ppo.refuse_saying_less: false"
            )
        return self

    @model_validator(mode="after")
    def _ray_can_place_it(self) -> Self:
        cluster = self.cluster
        there = cluster.num_nodes * cluster.gpus_per_node
        if self.num_gpus > there:
            raise ValueError(
                f"cluster: its roles take {self.num_gpus} GPUs, but {cluster.num_nodes} node(s) x "
                f"{cluster.gpus_per_node} are {there}, so Ray would wait for ever; lower the ranks or "
                "engines, colocate, give canary a base_url, or raise num_nodes or gpus_per_node"
            )
        is_shared = self.has_critic and cluster.colocate is Colocation.ALL
        if is_shared and cluster.critic_ranks != cluster.actor_ranks:
            raise ValueError(
                f"cluster.critic_ranks: {cluster.critic_ranks} differs from actor_ranks "
                f"{cluster.actor_ranks}; with colocate: all they share the same GPUs, so make them equal"
            )
        return self

    @model_validator(mode="after")
    def _micro_batches_go_evenly_over_ranks(self) -> Self:
        sizes = {"rollout": self.rollout.micro_batch_size, "ppo": self.ppo.micro_batch_size}
        wrong = {name: size for name, size in sizes.items() if not self._goes_evenly(size)}
        answers, shares = self.answers_per_step, max(self._shares)
        if wrong:
            named = " and ".join(f"{name}.micro_batch_size: {size}" for name, size in wrong.items())
            most = range(min(*sizes.values(), answers // shares), 0, -1)
            fits = next((size for size in most if self._goes_evenly(size)), None)
            raise ValueError(
                f"{named} {'does' if len(wrong) == 1 else 'do'} not divide {answers} answers a step "
                f"(rollout.batch_size: {self.rollout.batch_size} x samples_per_query: "
                f"{self.rollout.samples_per_query}) evenly over {shares} rank(s), and ragged micro-batches "
                "can hang a collective or lose rows; set rollout.batch_size, rollout.micro_batch_size and "
                "ppo.micro_batch_size together, "
                + (
                    f"such as both micro batches to {fits}"
                    if fits
                    else "the batch to a multiple of the ranks"
                )
            )
        cluster = self.cluster
        size, shares = self.rollout.micro_batch_size, cluster.actor_ranks // cluster.ring_attention
        if answers // size < shares:
            raise ValueError(
                f"rollout.micro_batch_size: {size} makes {answers // size} micro-batches of {answers} "
                f"answers, fewer than the actor's {shares} ranks; OpenRLHF wants one each, so lower it, or "
                "raise ring_attention or rollout.batch_size"
            )
        return self

    @property
    def _shares(self) -> set[int]:
        """In how many a step's micro-batches are dealt out: ranks of one ring get the same rows."""
        cluster = self.cluster
        return {ranks // cluster.ring_attention for ranks in (cluster.actor_ranks, cluster.critic_ranks)}

    def _goes_evenly(self, size: int) -> bool:
        batches = self.rows_per_step // size
        return not (self.answers_per_step % size or any(batches % shares for shares in self._shares))

    @model_validator(mode="after")
    def _stale_answers_are_corrected(self) -> Self:
        if not self.rollout.max_staleness:
            return self
        ahead = f"rollout.max_staleness: {self.rollout.max_staleness}"
        if self.ppo.correction.level == "off":
            raise ValueError(
                f"{ahead}: without ppo.correction answers of older weights would be trained as if the policy "
                "had given them now; set ppo.correction.level: token"
            )
        if self.cluster.colocate is Colocation.ALL:
            raise ValueError(
                f"{ahead} with cluster.colocate: all, where engines and trainer take turns on the same GPUs "
                "and nobody can run ahead; set colocate: actor_ref or none, or max_staleness: 0"
            )
        return self

    @model_validator(mode="after")
    def _guards_have_what_they_need(self) -> Self:
        # The defaults pass: they are in every recipe that was written out, as a run's own is.
        if self.guards.canary_gap not in (None, CanaryGuard()) and not self.canary_sampler:
            raise ValueError("guards.canary_gap: there is no canary to follow; set canary.answers, e.g. to 8")
        if self.guards.kl not in (None, KlGuard()) and not self.ppo.kl_coef:
            raise ValueError("guards.kl: ppo.kl_coef 0 runs no reference to measure it; raise it above 0")
        return self

    @model_validator(mode="after")
    def _a_roll_back_finds_its_checkpoint(self) -> Self:
        every, keep = self.checkpoint.every, self.checkpoint.keep
        unknown = 1 + self.rollout.max_staleness  # steps until a checkpoint's own answers are judged
        for name, guard in self.guards.by_name.items():
            if guard.action is GuardAction.ROLL_BACK and guard.patience + unknown > every * (keep - 1):
                raise ValueError(
                    f"guards.{name}.patience: {guard.patience} with checkpoint.every {every} and keep "
                    f"{keep}, so the last good checkpoint would be deleted before the guard acts; raise keep "
                    f"to {math.ceil((guard.patience + unknown) / every) + 1} or lower patience"
                )
        return self

    @model_validator(mode="after")
    def _held_out_rows_can_be_judged(self) -> Self:
        if self.held_out is None:
            return self
        if self.held_out.path is None and not self.data.is_made:
            raise ValueError(
                "held_out.path: missing; prepared rows have no held-out part, so give a JSONL file"
            )
        if self.rollout.max_staleness:
            raise ValueError(
                f"rollout.max_staleness: {self.rollout.max_staleness}, so the engines answer ahead and "
                "held-out answers would be of no step's weights; set it to 0, or leave held_out out"
            )
        return self

    @property
    def canary_sampler(self) -> SamplerConfig | None:
        if self.canary is None:
            return None
        return self.canary.sampler(model=self.model_path, max_model_len=self.max_model_len, seed=self.seed)

    @property
    def canary_gpus(self) -> int:
        """GPUs of the frozen Checker, where it is no server's."""
        return int(self.canary_sampler is not None and self.canary_sampler.kind == "vllm")

    @property
    def num_gpus(self) -> int:
        """GPUs that the run takes; without CUDA they are logical."""
        return self.cluster.num_gpus(critic=self.has_critic, reference=self.has_reference) + self.canary_gpus

    @property
    def oracle(self) -> Literal["none", "tiny", "wiki"]:
        """The world whose truth is recorded beside the rewards and never paid; prepared rows have none."""
        return "none" if self.data.source == "prepared" else self.data.source

    @property
    def has_critic(self) -> bool:
        return self.ppo.estimator is AdvantageEstimator.GAE

    @property
    def has_reference(self) -> bool:
        """Whether a reference model runs beside the actor; with LoRA it is the actor without its adapters."""
        return self.ppo.kl_coef > 0 and self.cluster.lora is None

    @property
    def answers_per_step(self) -> int:
        """Solver turns of one PPO step; the paper's |B| where a query is answered once."""
        return self.rollout.batch_size * self.rollout.samples_per_query

    @property
    def rows_per_step(self) -> int:
        """Trajectories of one PPO step: one of each trained role an answer, fillers included."""
        return self.answers_per_step * len(self.train_roles)

    @property
    def max_model_len(self) -> int:
        return self.rollout.max_prompt_tokens + self.rollout.max_response_tokens

    @property
    def max_turn_tokens(self) -> dict[Role, int]:
        """Most that each role may write in a turn."""
        proposer, checker = self.audit.proposer.max_tokens, self.audit.checker.max_tokens
        solver = self.rollout.max_response_tokens
        return {Role.SOLVER: solver, Role.PROPOSER: proposer, Role.CHECKER: checker}

    @property
    def model_path(self) -> str:
        """What `from_pretrained` gets."""
        return path_of_model(self.model)

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the merged recipe, without what a training does not read."""
        settings = self.model_dump(mode="json", exclude=NOT_TRAINED_BY)
        return json_sha256(settings)


def path_of_model(name: str) -> str:
    """The folder of a model that is shipped or fetched; any other folder or name as it is."""
    shipped = {"tiny": TINY_POLICY, "tiny_kinds": TINY_KINDS_POLICY}
    return str(shipped.get(name) or cached(name) or name)


def load_recipe(name_or_path: str, overrides: list[str] | None = None) -> Recipe:
    """Reads a recipe, and what it extends, by name (of `pipeline/recipes/`) or path.

    Each override, `dotted.key=yaml value`, is put over the merged tree.

    Raises:
        FileNotFoundError: no such recipe.
        ValueError: an override without "=", not YAML, an unknown preset, a key or value that the tree
            refuses, or rows that nothing would read.
    """
    path = recipe_file(name_or_path)
    tree = with_preset(assign(read_tree(path), overrides or ()), named_in=path)
    try:
        recipe = Recipe.model_validate(tree)
    except ValidationError as error:
        lines = [explain(path, overrides or [], one) for one in problems(error)]
        raise ValueError("; ".join(lines)) from None
    refuse_password("tracking.uri", recipe.tracking.uri)
    _refuse_unread_rows(recipe.data)
    return recipe


def _refuse_unread_rows(data: DataSettings) -> None:
    """Not in a validator, since recorded runs may have such a path and are still shown."""
    if data.is_made and data.path is not None:
        raise ValueError(
            f"data.path: {data.path} needs data.source=prepared, and data.source is {data.source}, which "
            "makes its rows; set data.source=prepared, or data.path=null"
        )
