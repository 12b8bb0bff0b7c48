"""Each test of faults in two lengths: a short one for `make test-real` and a long one for `make chaos`."""

from __future__ import annotations

import pytest

CHAOS = (pytest.mark.chaos, pytest.mark.timeout(1800))


def _in_both_lengths(short: pytest.MarkDecorator) -> pytest.MarkDecorator:
    lengths = (pytest.param(False, marks=short, id="short"), pytest.param(True, marks=CHAOS, id="long"))
    return pytest.mark.parametrize("is_long", lengths)


in_both_lengths = _in_both_lengths(pytest.mark.slow)
in_both_lengths_outside_the_gate = _in_both_lengths(pytest.mark.long)  # the short one in `make test-slow`
