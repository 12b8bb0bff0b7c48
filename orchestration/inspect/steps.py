"""The figures of a run over its steps, as tables show them: pure. MLflow draws their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.training.held_out import SCORE


@dataclass(frozen=True)
class Column:
    """One figure of a step."""

    key: str  # as in steps.jsonl
    short: str  # for a narrow terminal
    name: str
    percent: bool = False


COLUMNS = (
    Column("audit/reward", "reward", "reward"),
    Column("audit/supported_rate", "supp", "supported", percent=True),
    Column("audit/refuted_rate", "ref", "refuted", percent=True),
    Column("audit/no_claims_rate", "none", "no claims", percent=True),
    Column("audit/unscored_rate", "unsc", "unscored", percent=True),
    Column("audit/claims_per_answer", "claims", "claims"),
    Column("audit/vote_agreement", "agree", "voters agree", percent=True),
    Column("canary/support_gap", "gap", "canary gap", percent=True),
    Column("oracle/faithful_rate", "true", "faithful", percent=True),
    Column("oracle/false_accept_rate", "f.acc", "false accepts", percent=True),
    Column("oracle/consensus_accuracy", "right", "consensus right", percent=True),
)


def known_columns(steps: Sequence[Mapping[str, float]]) -> list[Column]:
    """The columns that any step has a figure for."""
    return [column for column in COLUMNS if any(column.key in step for step in steps)]


def in_words(column: Column, value: float | None) -> str:
    """A figure for people; a dash where there is none."""
    if value is None:
        return "\u2013"
    return f"{value:.0%}" if column.percent else f"{value:.2f}"


def held_out_in_words(steps: Sequence[Mapping[str, float]]) -> str:
    """What the best and the last look at the held-out rows say; nothing where there was none."""
    looks = [step for step in steps if "held_out/num_answers" in step]
    scored = [step for step in looks if SCORE in step]
    shown = {"best": max(scored, key=lambda step: step[SCORE])} if scored else {}
    shown |= {"last": looks[-1]} if looks else {}
    return "; ".join(
        f"held out, {name}, step {int(step['step'])}: {_rates(step)}" for name, step in shown.items()
    )


def _rates(step: Mapping[str, float]) -> str:
    rates = {name: step.get(f"held_out/{name}_rate") for name in ("supported", "right", "unscored")}
    return ", ".join(f"{value:.0%} {name}" for name, value in rates.items() if value is not None)
