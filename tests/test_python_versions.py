"""What the older of the supported Pythons get wrong."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Before 3.11.5, which Debian 12 does not have, a group that is repeated possessively can fail to match where
# it had to give something back (python/cpython#106052). An atomic group, `(?>(?:...)*)`, says the same.
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")


@pytest.mark.parametrize("package", ["reward", "pipeline", "orchestration", "bench"])
def test_no_pattern_repeats_a_group_possessively(package: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in (ROOT / package).rglob("*.py")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert not found
