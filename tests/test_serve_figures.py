"""The live view's figures out of the server's own metrics."""

from __future__ import annotations

import math

import pytest

from orchestration.live.figures import Estimate, Figures, count_figures, quantile, read
from reward.roles.asking import Turn
from reward.serving.metrics import AuditMetrics
from reward.types import Outcome, Role, Sample, SampleGroup, Verdict


def verdict(outcome: Outcome, reason: str = "") -> Verdict:
    return Verdict(
        id="v", outcome=outcome, reason=reason, reward=None if outcome is Outcome.UNSCORED else 0.0
    )


def figures_after(metrics: AuditMetrics, *steps: float) -> Figures:
    """One audit at each second of `steps`, read each second from 0 on."""
    readings = [read(metrics.registry, at_s=0.0)]
    for second in range(1, int(max(steps, default=0)) + 1):
        for _ in range(sum(math.ceil(step) == second for step in steps)):
            metrics.audit_ended(verdict(Outcome.SUPPORTED), seconds=0.7)
        readings.append(read(metrics.registry, at_s=float(second)))
    return count_figures([*readings, readings[-1]])


def test_a_server_that_has_done_nothing_knows_nothing() -> None:
    figures = figures_after(AuditMetrics())
    assert figures.audits_per_s == (0.0, 0.0) and set(figures.outcomes.values()) == {0}
    assert figures.agreement is figures.uncovered is figures.prefix_hits is figures.tokens_per_s is None
    assert figures.weights_version is None and figures.refused == {} and figures.unscored == {}
    assert set(map(len, figures.latency.values())) == {0}


def test_rates_are_of_the_last_seconds_and_the_sparkline_of_each() -> None:
    figures = figures_after(AuditMetrics(), *[5.0] * 60, 61.0, 62.0, 62.0, *[90.0] * 7)
    assert figures.audits_per_s == (0.7, 10 / 60)
    assert figures.each_second[-1] == 7 and figures.each_second[61:63] == (2, 0)
    assert figures.outcomes["SUPPORTED"] == 70
    assert figures.latency["audit"][0] == Estimate(0.75) and figures.latency["check"] == []


def test_what_is_known_is_counted_and_the_rest_stays_unknown() -> None:
    metrics = AuditMetrics()
    metrics.audit_ended(verdict(Outcome.UNSCORED, reason="timeout"), seconds=999)
    sample = Sample(text="", finish_reason="stop", token_ids=(1, 2))
    told = SampleGroup(
        samples=(sample,), prompt_token_ids=(1,) * 10, num_prompt_tokens=10, num_cached_tokens=4
    )
    metrics.turn_ended(Turn(Role.CHECKER, 0, 0.01, told))
    metrics.turn_ended(Turn(Role.CHECKER, 0, 0.01, SampleGroup(samples=(sample,), prompt_token_ids=(1, 2))))
    metrics.refused.labels("memory").inc(2)
    metrics.refused.labels("overloaded").inc(3)
    metrics.weights_version.set(7)
    figures = figures_after(metrics)
    assert figures.prefix_hits == 0.4 and figures.weights_version == 7
    assert figures.unscored == {"timeout": 1} and figures.outcomes["UNSCORED"] == 1
    assert list(figures.refused.items()) == [("overloaded", 3), ("memory", 2)]
    assert figures.tokens_per_s == (0.0, 0.0)  # known, and none of late


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.05, Estimate(0.1, "<")),
        (0.5, Estimate(0.55)),
        (0.8, Estimate(1.0)),
        (0.99, Estimate(1.0, ">")),
    ],
)
def test_quantiles_say_when_the_histogram_knows_no_more(share: float, expected: Estimate) -> None:
    found = quantile({0.1: 2.0, 1.0: 8.0, math.inf: 10.0}, share)
    assert (found.seconds, found.sign) == (pytest.approx(expected.seconds), expected.sign)
