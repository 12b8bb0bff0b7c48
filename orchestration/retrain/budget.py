"""What a retraining may take; pure."""

from __future__ import annotations

from orchestration.retrain.job import BudgetSettings
from orchestration.retrain.stages import Spent

_MILLION = 1_000_000


def money_of(spent: Spent, budget: BudgetSettings) -> float:
    """What was spent, by the given prices."""
    tokens = spent.tokens / _MILLION * budget.price_per_million_tokens
    return spent.hours * budget.price_per_hour + tokens


def over_budget(spent: Spent, budget: BudgetSettings) -> str | None:
    """The bound that is reached, in one line; None while there is something left."""
    money = money_of(spent, budget)
    if budget.hours is not None and spent.hours >= budget.hours:
        return f"budget.hours: {spent.hours:,.2f} of {budget.hours:,.2f} hours are spent"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"budget.tokens: {spent.tokens:,} of {budget.tokens:,} tokens are spent"
    if budget.money is not None and money >= budget.money:
        return f"budget.money: {money:,.2f} of {budget.money:,.2f} are spent"
    return None
