"""Each test of faults in two lengths: a short one for `make test-slow` and a long one for `make chaos`."""

from __future__ import annotations

import pytest

CHAOS = (pytest.mark.chaos, pytest.mark.timeout(1800))
SHORT_AND_LONG = (
    pytest.param(False, marks=pytest.mark.slow, id="short"),
    pytest.param(True, marks=CHAOS, id="long"),
)
in_both_lengths = pytest.mark.parametrize("is_long", SHORT_AND_LONG)
