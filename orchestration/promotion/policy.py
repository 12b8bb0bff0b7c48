"""The gate policy: one typed tree, unknown keys refused, defaults as in `policy.yaml` beside this file.

Bounds are in the units of the scores, which lie in [0, 1]: a margin of 0.1 is ten points.
"""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from reward.assignments import read_settings
from reward.config import Settings

POLICY_FILE = Path(__file__).parent / "policy.yaml"


class PrimaryPolicy(Settings):
    """The one score by which a candidate must be better."""

    benchmark: str | None = Field(default=None, description="None: the average over all benchmarks.")
    score: str | None = Field(default=None, description="None: the benchmark's own primary score.")
    min_difference: float = Field(default=0.0, ge=0, lt=1, description="The bound must lie above this.")
    alpha: float = Field(default=0.025, gt=0, le=0.2, description="False promotions of an equal candidate.")
    min_documents: int = Field(default=50, ge=2, description="Fewer of them are inconclusive.")
    min_changed: int = Field(default=10, ge=0, description="Documents on which the two must differ.")

    @model_validator(mode="after")
    def _a_score_is_of_a_benchmark(self) -> Self:
        if self.score is not None and self.benchmark is None:
            raise ValueError(f"score: {self.score!r} is of one benchmark; name it under benchmark")
        return self


class SlicesPolicy(Settings):
    """No slice may be worse by more than a margin."""

    margin: float = Field(default=0.1, gt=0, lt=1)
    alpha: float = Field(default=0.05, gt=0, le=0.2, description="Of all slices together (Bonferroni).")
    min_documents: int = Field(default=30, ge=2, description="Fewer of them are inconclusive.")
    exempt: tuple[str, ...] = Field(default=(), description="BENCHMARK/SLICE that is shown, not judged.")


class AnswersPolicy(Settings):
    """Figures against gaming, relative to the champion's answers to the same questions."""

    least_numbers: float = Field(default=0.8, gt=0, le=1, description="Mentions an answer, as a ratio.")
    shortest: float = Field(default=0.5, gt=0, le=1, description="Length of an answer, as a ratio.")
    longest: float = Field(default=2.0, ge=1, description="Length of an answer, as a ratio.")
    uncovered_margin: float = Field(default=0.05, gt=0, lt=1, description="Of uncovered numbers: a share.")
    no_claims_margin: float = Field(default=0.05, gt=0, lt=1, description="Of answers without a number.")
    refusals_margin: float = Field(default=0.05, gt=0, lt=1, description="Of answers that refuse.")
    required: bool = Field(default=True, description="Whether a number audit must be there.")


class JudgePolicy(Settings):
    """How far the judge must agree with people."""

    min_kappa: float | None = Field(
        default=0.4, gt=-1, lt=1, description="Least lower bound of Cohen's kappa; None: not asked."
    )


class ScoredPolicy(Settings):
    """How much may be missing."""

    max_missing: float = Field(default=0.05, ge=0, lt=1, description="Items, judgements or audits: a share.")


class FirstPolicy(Settings):
    """What the first champion must reach, where there is none to be better than."""

    min_primary: float = Field(default=0.5, ge=0, le=1, description="Least lower bound.")
    min_documents: int = Field(default=50, ge=2)
    max_no_claims: float = Field(default=0.5, ge=0, le=1, description="Most answers without a number.")
    max_refusals: float = Field(default=0.5, ge=0, le=1, description="Most answers that refuse.")


class SmokePolicy(Settings):
    """The weights are loaded and asked before they are promoted."""

    required: bool = True
    prompts: tuple[str, ...] = Field(
        default=("How many days has a week?", "Name a number between 3 and 5."), min_length=1
    )
    max_tokens: int = Field(default=64, ge=1, le=8192)
    timeout_s: float = Field(default=1_800.0, gt=0, description="For loading and all prompts.")


class ApprovalPolicy(Settings):
    """Whether a person has the last word."""

    required: bool = False
    by_another: bool = Field(default=False, description="Not by who asked for it.")


class GatePolicy(Settings):
    primary: PrimaryPolicy = PrimaryPolicy()
    slices: SlicesPolicy = SlicesPolicy()
    answers: AnswersPolicy = AnswersPolicy()
    judge: JudgePolicy = JudgePolicy()
    scored: ScoredPolicy = ScoredPolicy()
    first: FirstPolicy = FirstPolicy()
    weights_required: bool = Field(
        default=True, description="Evaluations must be of the registered weights, by their digest."
    )
    smoke: SmokePolicy = SmokePolicy()
    approval: ApprovalPolicy = ApprovalPolicy()


def read_policy(path: Path | None, *, named: str = "--policy") -> GatePolicy:
    """The policy of a YAML file; None: the defaults. Messages call the file by `named`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not YAML in UTF-8, or has an unknown key or a bad value.
    """
    tree = read_settings(path or POLICY_FILE, see="docs/promotion.md", named=named)
    return GatePolicy.model_validate(tree)
