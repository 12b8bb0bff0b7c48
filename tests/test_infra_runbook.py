"""infra/RUNBOOK.md knows every alert, and what it points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "infra" / "RUNBOOK.md"
TEXT = PAGE.read_text()
OWN = [PAGE, ROOT / "infra" / "kubernetes" / "README.md", ROOT / "infra" / "terraform" / "README.md"]


def test_every_alert_has_an_entry() -> None:
    entries = set(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE))
    alerts = {
        rule["alert"]
        for path in (ROOT / "infra" / "monitoring").glob("alerts*.yaml")
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    }
    assert alerts and alerts <= entries


def test_every_entry_says_whether_it_was_tried() -> None:
    operations = TEXT.partition("\n## Alarms")[0].split("\n## ")[1:]
    assert len(operations) >= 10
    for entry in operations:
        assert "\n| tried | " in entry and "| proof |" in entry, entry.splitlines()[0]


def test_named_tests_are_there() -> None:
    for path in OWN:
        for name in re.findall(r"`(tests/\w+\.py)`", path.read_text()):
            assert (ROOT / name).is_file(), f"{path.name}: {name}"


@pytest.mark.parametrize("page", OWN, ids=lambda page: page.parent.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", page.read_text()):
        if target.startswith("compose/") and not (page.parent / "compose").exists():
            continue  # a checkout of the cluster's files alone
        assert (page.parent / target).exists(), f"{page.name}: {target}"
