"""The units of infra/systemd: read by systemd itself, and what they run is what `march` knows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestration.retrain.records import Ending
from tests.test_infra_kubernetes_commands import parsed

FOLDER = Path(__file__).parents[1] / "infra" / "systemd"
UNIT = (FOLDER / "march-retrain.service").read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_reads_the_units(tmp_path: Path) -> None:
    for name in ("march-retrain.service", "march-retrain.timer"):
        text = (FOLDER / name).read_text().replace("/opt/march/bin/march", "/bin/true")
        (tmp_path / name).write_text(text)
    command = ["systemd-analyze", "verify", str(tmp_path / "march-retrain.timer")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_unit_runs_the_command_and_knows_its_exit_codes() -> None:
    [line] = re.findall(r"^ExecStart=/opt/march/bin/march (.+)$", UNIT, re.MULTILINE)
    asked = parsed(line.split())
    assert asked["if_due"] and asked["job"] == "/etc/march/shop.yaml"
    [codes] = re.findall(r"^SuccessExitStatus=(.+)$", UNIT, re.MULTILINE)
    assert {int(code) for code in codes.split()} == {one.code for one in Ending if one.is_well} - {0}
