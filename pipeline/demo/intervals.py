"""Figures with their 95% intervals, by scipy: Wilson's for a share of answers, the bootstrap for the rest.

A row is the unit that is drawn, so questions and votes of one row are resampled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field
from scipy.stats import binomtest, bootstrap

from reward.types import Record

_CONFIDENCE = 0.95
_NUM_RESAMPLES = 2000
_BOOTSTRAP_SEED = 0


class Estimate(Record):
    """A measured figure. Example: `Estimate(value=0.6, low=0.55, high=0.65, num_rows=400)`."""

    value: float
    low: float = Field(description="Lower end of the 95% interval.")
    high: float = Field(description="Upper end of the 95% interval.")
    num_rows: int = Field(ge=1, description="Rows that the figure rests on.")


def rate(flags: Sequence[bool]) -> Estimate:
    """Returns the share of true flags, one a row, with Wilson's interval (`scipy.stats.binomtest`)."""
    interval = binomtest(sum(flags), len(flags)).proportion_ci(_CONFIDENCE, method="wilson")
    return Estimate(value=sum(flags) / len(flags), low=interval.low, high=interval.high, num_rows=len(flags))


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> Estimate | None:
    """Returns `sum(parts) / sum(wholes)` with a percentile bootstrap interval over rows.

    Args:
        parts: One a row, such as its right votes.
        wholes: One a row, such as all its votes; ones give the mean of `parts`.

    Returns:
        None when the rows have nothing to divide by, such as no vote at all.
    """
    if not sum(wholes):
        return None
    value = sum(parts) / sum(wholes)
    if len(parts) == 1:  # nothing to resample
        return Estimate(value=value, low=value, high=value, num_rows=1)
    interval = _bootstrap(_ratio_of_sums, parts, wholes)
    return Estimate(value=value, low=interval.low, high=interval.high, num_rows=len(parts))


def difference(before: Sequence[bool], after: Sequence[bool]) -> Estimate:
    """Returns how much a rate rose from one measurement to another of the same rows, in the same order.

    Raises:
        ValueError: the two are not of equal length, so they cannot be of the same rows.
    """
    if len(before) != len(after):
        raise ValueError(f"before: {len(before)} rows, after: {len(after)}; measure the same rows twice")
    changes = [float(new) - float(old) for old, new in zip(before, after, strict=True)]
    estimate = ratio(changes, [1.0] * len(changes))
    assert estimate is not None, "no rows"
    return estimate


def _ratio_of_sums(parts: Any, wholes: Any, axis: int) -> Any:
    whole = wholes.sum(axis=axis)
    return parts.sum(axis=axis) / np.where(whole == 0, np.nan, whole)


def _bootstrap(statistic: Any, *samples: Sequence[float]) -> Any:
    return bootstrap(
        tuple(np.asarray(sample, dtype=float) for sample in samples),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=_NUM_RESAMPLES,
        confidence_level=_CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_BOOTSTRAP_SEED),
    ).confidence_interval
