"""Figures, differences, agreement and averages: by hand, or by scikit-learn where it says so."""

import math
import random

import pytest

from pipeline.statistics import (
    HUMAN,
    JUDGE,
    Estimate,
    ItemScores,
    average_freedom,
    by_slice,
    estimates,
    judge_agreement,
    macro_average,
    paired_difference,
)


def items(*rows: tuple[str, float | None], score: str = "s", part: str = "all") -> list[ItemScores]:
    """Items from (cluster, score) pairs, numbered from 0."""
    return [
        ItemScores(item=f"{part}{i}", slice=part, cluster=cluster, scores={score: value})
        for i, (cluster, value) in enumerate(rows)
    ]


def test_mean_and_clustered_error_by_hand() -> None:
    # mean 1/2; the deviations of document a sum to 1/2 + 1/2 = 1, those of b to -1: sqrt(1 + 1) / 4
    found = estimates(items(("a", 1), ("a", 1), ("b", 0), ("b", 0)))["s"]
    assert found.value == 0.5
    assert found.standard_error == pytest.approx(math.sqrt(2) / 4)
    # two documents: both a, both b, or one of each; a quarter of the resamples is all 0, a quarter all 1
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0.0, 1.0)
    assert (found.num_items, found.num_clusters, found.num_unscored) == (4, 2, 0)
    assert "2 documents, fewer than 50" in found.warning


def test_independent_items_have_the_usual_error() -> None:
    # one item a document: sqrt(p (1 - p) / n) with p = 1/4, n = 64
    found = estimates(items(*[(str(i), float(i % 4 == 0)) for i in range(64)]))["s"]
    assert found.standard_error == pytest.approx(math.sqrt(0.25 * 0.75 / 64))
    assert found.warning == ""
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.25 - 1.96 * 0.0541, abs=0.02)
    assert found.interval.high == pytest.approx(0.25 + 1.96 * 0.0541, abs=0.02)


def test_many_items_of_one_document_do_not_narrow_the_interval() -> None:
    one = [(str(i), float(i % 2)) for i in range(60)]
    thin, fat = (estimates(items(*rows))["s"].interval for rows in (one, one * 5))
    assert thin == fat


def test_what_has_no_score_is_counted_and_in_no_mean() -> None:
    found = estimates(items(("a", 1), ("b", None), ("c", 0), ("d", None)))["s"]
    assert (found.value, found.num_items, found.num_unscored, found.num_clusters) == (0.5, 2, 2, 2)
    nothing = estimates(items(("a", None), ("b", None)))["s"]
    assert (nothing.value, nothing.interval, nothing.standard_error) == (None, None, None)
    assert estimates([]) == {}
    lonely = estimates(items(("a", 1), ("a", 0)))["s"]
    assert (lonely.value, lonely.interval, lonely.standard_error) == (0.5, None, None)


def test_all_right_is_no_certainty() -> None:
    # Wilson's interval at 10 of 10: from 10 / (10 + 1.96^2) = 0.7225
    high = estimates(items(*[(str(i), 1.0) for i in range(10)]))["s"].interval
    low = estimates(items(*[(str(i), 0.0) for i in range(10)]))["s"].interval
    assert high is not None and low is not None
    assert (round(high.low, 4), high.high) == (0.7225, 1.0)
    assert (low.low, round(low.high, 4)) == (0.0, 0.2775)


def test_figures_of_slices_and_of_all() -> None:
    rows = items(("a", 1), ("b", 0), part="qa") + items(("c", 1), ("d", 1), part="summary")
    assert {name: estimates(part)["s"].value for name, part in by_slice(rows).items()} == {
        "overall": 0.75,
        "qa": 0.5,
        "summary": 1.0,
    }


def test_differences_are_paired_by_item() -> None:
    before = items(("a", 0), ("a", 0), ("b", 1), ("b", None), ("c", 0.5))
    after = items(("a", 1), ("a", 0), ("b", 1), ("b", 1), ("c", 0.25), ("d", 1))
    found = paired_difference(before, after, "s")
    # items 0, 1, 2 and 4: changes 1, 0, 0, -1/4
    assert (found.num_items, found.num_unscored, found.num_clusters) == (4, 2, 3)
    assert (found.baseline, found.candidate) == (0.375, 0.5625)
    assert found.value == pytest.approx(0.1875)
    # sums of deviations: a (1 - .1875) + (0 - .1875) = .625, b -.1875, c -.4375
    assert found.standard_error == pytest.approx(math.sqrt(0.625**2 + 0.1875**2 + 0.4375**2) / 4)
    back = paired_difference(after, before, "s")
    assert back.value == pytest.approx(-0.1875)
    assert found.interval is not None and back.interval is not None
    assert (found.interval.low, found.interval.high) == (-back.interval.high, -back.interval.low)


def test_pairing_takes_out_what_items_share() -> None:
    draw = random.Random(1)
    hard = [float(draw.random() < 0.5) for _ in range(200)]
    before = items(*[(str(i), value) for i, value in enumerate(hard)])
    after = items(*[(str(i), 1.0 if i < 12 else value) for i, value in enumerate(hard)])
    alone = estimates(after)["s"].standard_error
    paired = paired_difference(before, after, "s").standard_error
    assert alone is not None and paired is not None
    assert paired < alone / 2
    assert paired_difference(before, before, "s").value == 0


@pytest.mark.parametrize(("num_lost", "num_all"), [(0, 30), (1, 30), (5, 100), (40, 100)])
def test_cautious_bounds_of_losses_alone_are_clopper_and_pearsons(num_lost: int, num_all: int) -> None:
    from scipy.stats import beta

    before = items(*((str(i), 1.0) for i in range(num_all)))
    after = items(*((str(i), float(i >= num_lost)) for i in range(num_all)))
    found = paired_difference(before, after, "s", is_cautious=True).interval
    assert found is not None
    most = beta.ppf(0.975, num_lost + 1, num_all - num_lost)
    assert found.low == pytest.approx(-most, rel=0.05)
    assert paired_difference(before[:1], after[:1], "s", is_cautious=True).interval is None


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (items(("a", 1)), items(("a", 1), part="other"), "no item in common"),
        (items(("a", 1)), items(("b", 1)), "its documents differ"),
        (items(("a", 1.5)), items(("a", 1)), r"1.5 lies outside \[0, 1\]"),
        (items(("a", float("nan"))), items(("a", 1)), "nan lies outside"),
    ],
)
def test_what_cannot_be_compared(before: list[ItemScores], after: list[ItemScores], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        paired_difference(before, after, "s")


def pairs(kept: int, alarm: int, miss: int, hit: int) -> list[ItemScores]:
    """Labels of people and of the judge, 1 is consistent."""
    labels = [(1, 1)] * kept + [(1, 0)] * alarm + [(0, 1)] * miss + [(0, 0)] * hit
    return [
        ItemScores(item=str(i), slice="all", cluster=str(i), scores={HUMAN: human, JUDGE: judge})
        for i, (human, judge) in enumerate(labels)
    ]


def test_agreement_by_hand() -> None:
    # Cohen's textbook table 20, 5, 10, 15: observed 0.70, by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa 0.4.
    found = judge_agreement(pairs(20, 5, 10, 15))
    kappa = found["cohens_kappa"]
    assert kappa.value == pytest.approx(0.4)
    assert (found["precision"].value, found["recall"].value) == (15 / 20, 15 / 25)
    assert found["balanced_accuracy"].value == pytest.approx((0.8 + 0.6) / 2)
    assert kappa.interval is not None and kappa.interval.low < 0.4 < kappa.interval.high
    assert kappa.warning == ""


@pytest.mark.parametrize(
    ("cells", "kappa", "balanced"),  # as scikit-learn 1.9.1 prints them
    [
        ((20, 5, 10, 15), 0.4, 0.7),
        ((3, 1, 0, 7), 0.7924528301886793, 0.875),
        ((90, 2, 6, 2), 0.2957746478873239, 0.6141304347826086),
        ((0, 4, 4, 0), -1.0, 0.0),
    ],
)
def test_agreement_equals_scikit_learns(
    cells: tuple[int, int, int, int], kappa: float, balanced: float
) -> None:
    found = judge_agreement(pairs(*cells))
    assert found["cohens_kappa"].value == pytest.approx(kappa)
    assert found["balanced_accuracy"].value == pytest.approx(balanced)


def test_agreement_that_is_not_defined_is_none() -> None:
    unjudged = ItemScores(item="x", slice="all", cluster="x", scores={HUMAN: 1, JUDGE: None})
    found = judge_agreement([*pairs(4, 0, 0, 0), unjudged])
    kappa = found["cohens_kappa"]
    assert (kappa.value, kappa.num_unscored, kappa.num_items) == (None, 1, 4)
    assert found["recall"].value is None
    empty = judge_agreement([])["balanced_accuracy"]
    assert (empty.num_items, empty.value, empty.interval) == (0, None, None)


def figures(x: list[float], y: list[float | None]) -> dict[str, Estimate]:
    return {
        name: estimates(items(*[(str(i), value) for i, value in enumerate(values)]))["s"]
        for name, values in {"x": x, "y": y}.items()
    }


def test_the_average_counts_each_benchmark_alike() -> None:
    found = macro_average(figures([1, 1, 0, 0], [1, 1, 1, 0, 1, 1, 1, 0]))
    assert found.value == pytest.approx((0.5 + 0.75) / 2)
    assert found.parts == {"x": 0.5, "y": 0.75}
    error = math.sqrt(0.25 / 4 + 0.1875 / 8) / 2
    assert found.standard_error == pytest.approx(error)
    assert found.interval is not None
    assert found.interval.high == pytest.approx(0.625 + 1.96 * error, abs=1e-4)
    assert "x: 4 documents" in found.warning and "y: 8 documents" in found.warning


def test_an_average_stays_within_what_a_share_can_be_and_of_one_benchmark_is_its_own() -> None:
    both = figures([1, 1, 1, 1], [1, 1, 1, 0])
    average = macro_average(both)
    assert average.interval is not None and average.interval.high == 1
    assert macro_average({"y": both["y"]}).interval == both["y"].interval


def test_a_benchmark_without_a_figure_is_not_left_out_of_the_average() -> None:
    some = figures([1, 1], [None, None])
    for parts in (some, {"x": some["x"], "y": None}):
        found = macro_average(parts)
        assert (found.value, found.interval, found.parts) == (None, None, {"x": 1.0, "y": None})


def test_a_benchmark_of_few_documents_that_all_differ_alike_is_not_known_without_error() -> None:
    """Three documents that rose, beside sixty that did not change in the mean, show no better model."""
    before = items(*((str(i), float(i < 6)) for i in range(60)))
    after = items(*((str(i), float(6 <= i < 12)) for i in range(60)))
    few = items(*((str(i), 0.0) for i in range(3))), items(*((str(i), 1.0) for i in range(3)))
    parts = {"many": paired_difference(before, after, "s"), "few": paired_difference(*few, "s")}
    found = macro_average(parts)
    assert found.value == 0.5 and found.interval is not None
    assert found.interval.low < 0 and average_freedom(list(parts.values())) < 3
