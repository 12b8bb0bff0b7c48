"""The live view of `march serve`: its look at every size, and what it says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.console import Console

from orchestration.live.figures import Estimate, Figures
from orchestration.live.view import Snapshot, Warned, render, sparkline
from reward.samplers import EngineState, EngineStatus

SECOND = Estimate(1.2)
FIGURES = Figures(
    audits_per_s=(41.23, 38.9),
    each_second=tuple(float(i) for i in range(60)),
    outcomes={"SUPPORTED": 12_204, "REFUTED": 4013, "NO_CLAIMS": 300, "UNSCORED": 612},
    unscored={"timeout": 500, "engine": 100, "too_few_valid_votes": 11, "internal": 1},
    agreement=0.932,
    unreadable=0.004,
    repeating=0.02,
    uncovered=0.012,
    num_in_flight=512,
    num_waiting=1203,
    latency={
        "audit": (SECOND, Estimate(13.4), Estimate(180, ">")),
        "wait": (Estimate(0.1, "<"),) * 3,
        "propose": (SECOND, SECOND, Estimate(104)),
        "check": (),
    },
    tokens_per_s=(212_345.0, 3123.0),
    prefix_hits=0.834,
    num_cached=1203,
    num_joined=34,
    refused={"overloaded": 12, "slow": 1},
    weights_version=1234,
)
SNAPSHOT = Snapshot(
    url="http://127.0.0.1:5001",
    sampler="openai",
    model="Qwen/Qwen3-8B",
    uptime_s=90_061,
    readiness="ready",
    figures=FIGURES,
    engines=[
        EngineStatus("http://10.0.0.1:8000/v1", EngineState.READY, 120),
        EngineStatus("http://10.0.0.2:8000/v1", EngineState.FAILING, 0),
    ],
    max_in_flight=512,
    max_waiting=4096,
    warnings=[
        Warned("12:03:41", "WARNING", "runner: audit of q17 is UNSCORED:\ntimeout " + "and so on " * 20),
        Warned("12:03:42", "ERROR", "tls: \x1b[2Jcannot use it"),
    ],
)


def shown(snapshot: Snapshot = SNAPSHOT, *, width: int, height: int = 40) -> list[str]:
    console = Console(width=width, height=height, color_system=None)
    with console.capture() as captured:
        console.print(render(snapshot, width=width, height=height))
    return captured.get().removesuffix("\n").split("\n")


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("height", [3, 12, 24, 50])
def test_it_fits_its_terminal_and_its_frames_close(width: int, height: int) -> None:
    lines = shown(width=width, height=height)
    assert len(lines) <= height and max(map(len, lines)) <= width
    framed = [line for line in lines if line[:1] in "╭│╰"]
    assert {(line[0], line[-1], len(line)) for line in framed} <= {
        ("╭", "╮", width),
        ("│", "│", width),
        ("╰", "╯", width),
    }


@pytest.mark.parametrize(("width", "num_beside"), [(40, 1), (80, 2), (120, 4)])
def test_blocks_stand_side_by_side_as_the_width_allows(width: int, num_beside: int) -> None:
    tops = [line for line in shown(width=width, height=60) if line.startswith("╭─ outcomes")]
    assert tops[0].count("╭") == num_beside


def test_everything_that_is_asked_of_it_is_there() -> None:
    text = re.sub(" +", " ", "\n".join(shown(width=80)))
    for words in (
        "march serve http://127.0.0.1:5001",
        "● ready",
        "openai · Qwen/Qwen3-8B · weights 1,234 · 1 of 2 engines ready up 1 d 1:01:01",
        "41.2 audits/s last 10 s · 38.9 last minute",
        "SUPPORTED 12,204 71.2%",
        "UNSCORED 612 3.6%",
        "timeout 500 2.9%",
        "audit 1.20 13.4 >180",
        "wait <0.1 <0.1 <0.1",
        "check - - -",
        "in flight 512 of 512",
        "waiting 1,203 of 4,096",
        "tokens in 212,345/s",
        "refused 13",
        "overloaded 12",
        "votes agree 93.2%",
        "numbers uncovered 1.2%",
        "prefix cache 83.4%",
        "verdicts kept 1,203",
        "requests joined 34",
        "● http://10.0.0.2:8000/v1 failing 0 requests",
        "12:03:41 runner: audit of q17 is UNSCORED: timeout",
    ):
        assert words in text, words
    assert "\x1b" not in text and "internal" not in text  # no more than three reasons


def test_unknown_is_a_dash() -> None:
    unknown = replace(
        FIGURES, prefix_hits=None, tokens_per_s=None, agreement=None, uncovered=None, weights_version=None
    )
    text = re.sub(" +", " ", "\n".join(shown(replace(SNAPSHOT, figures=unknown), width=80)))
    assert "prefix cache - │" in text and "tokens in - │" in text and "votes agree - │" in text
    assert "weights" not in text


def test_the_sparkline_is_the_latest_values_by_the_highest() -> None:
    assert sparkline([9, 0, 1, 2, 4], 4) == "▁▃▅█"
    assert sparkline([0, 0], 4) == "▁▁" and sparkline([1], 0) == sparkline([], 3) == ""
