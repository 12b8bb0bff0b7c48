"""False promotions over drawn evaluations; the long form, with the power curve, is `bench/promotion.py`."""

from __future__ import annotations

import pytest

from bench.promotion import bounds, cautious_bounds, draw, promoted
from orchestration.promotion.policy import GatePolicy
from pipeline.statistics import ItemScores, paired_difference

POLICY = GatePolicy()
NUM = 2_000


@pytest.mark.parametrize(("documents", "num_items"), [(50, 1), (60, 2), (120, 2)])
def test_a_candidate_that_is_no_better_is_seldom_promoted(documents: int, num_items: int) -> None:
    found = promoted(draw(NUM, documents, (0, 0), num_items=num_items), POLICY)
    alpha = POLICY.primary.alpha
    error = (alpha * (1 - alpha) / NUM) ** 0.5
    assert found["primary"].mean() <= alpha + 3 * error
    assert found["both"].mean() <= alpha + 3 * error


def test_a_slice_that_is_worse_by_the_margin_is_seldom_missed() -> None:
    margin = POLICY.slices.margin
    found = promoted(draw(NUM, 120, (2 * margin, -margin)), POLICY)
    assert found["primary"].mean() > 0.2 and found["both"].mean() <= POLICY.slices.alpha


@pytest.mark.parametrize("documents", [60, 80, 120, 200])
def test_a_slice_that_only_loses_by_the_margin_is_seldom_missed(documents: int) -> None:
    """Of 30 documents, a loss of 3 is expected; a bootstrap of one loss ends just at the margin."""
    margin = POLICY.slices.margin
    found = promoted(draw(NUM, documents, (margin, -margin), num_items=1, shared=1.0), POLICY)
    alpha = POLICY.slices.alpha / 2
    assert found["slices"].mean() <= alpha + 3 * (alpha * (1 - alpha) / NUM) ** 0.5


def test_a_much_better_candidate_is_promoted() -> None:
    assert promoted(draw(500, 200, (0.1, 0.1)), POLICY)["both"].mean() > 0.9


def test_the_simulation_has_the_bounds_of_the_gate() -> None:
    drawn = draw(3, 40, (0.05, 0.05), num_items=1)
    for level, is_cautious in ((0.95, False), (0.975, False), (0.95, True), (0.975, True)):
        of_all = cautious_bounds if is_cautious else bounds
        low, high = of_all(drawn.sums, 1, level=level)
        for index, sums in enumerate(drawn.sums):
            before = [scores(i, float(value < 0)) for i, value in enumerate(sums)]
            after = [scores(i, float(value > 0)) for i, value in enumerate(sums)]
            found = paired_difference(before, after, "s", level=level, is_cautious=is_cautious).interval
            assert found is not None
            assert (found.low, found.high) == pytest.approx((low[index], high[index]), abs=1e-5)


def scores(index: int, value: float) -> ItemScores:
    return ItemScores(item=f"{index:03}", slice="all", cluster=f"{index:03}", scores={"s": value})
