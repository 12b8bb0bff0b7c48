"""Shared by the tests of promotion: evaluations with known answers, in memory or as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestration.promotion.records import Contest, Evidence
from pipeline.evaluate.benchmark import BenchmarkCard, PromptStyle
from pipeline.evaluate.results import BenchmarkFigures, Counts, ItemResult, JudgedGeneration, Manifest
from pipeline.statistics import HUMAN, JUDGE, OVERALL, MacroAverage, judge_agreement
from reward.offline.files import file_sha256
from reward.provenance import json_sha256
from reward.types import Outcome, Verdict

CANDIDATE, CHAMPION = "c" * 64, "a" * 64
SLICES = ("east", "west")


def item(
    index: int, *, passed: float | None, num_mentions: int = 3, text: str = "It is 5 euros."
) -> ItemResult:
    """One item on a document of its own, with one generation."""
    refuted = passed == 0
    outcome = Outcome.NO_CLAIMS if not num_mentions else Outcome.REFUTED if refuted else Outcome.SUPPORTED
    verdict = Verdict(
        id=str(index), outcome=outcome, reward=-1.0 if outcome is Outcome.REFUTED else 0.0,
        num_mentions=num_mentions,
    )  # fmt: skip
    return ItemResult(
        item=f"{index:05}",
        slice=SLICES[index % 2],
        cluster=f"{index:05}",
        scores={"right": passed},
        generations=(JudgedGeneration(prompt="answer", text=text, verdict=verdict),),
    )


def evidence(
    passed: Callable[[int], float | None],
    *,
    num_items: int = 200,
    weights: str | None = CANDIDATE,
    settings: dict[str, Any] | None = None,
    kappa_errors: int = 2,
    counts: Counts | None = None,
    also: dict[str, list[ItemResult]] | None = None,
    **answers: Any,
) -> Evidence:
    """An evaluation of 200 items on 200 documents in two slices, and a judge that 40 labels measure.

    `also` are the items of further benchmarks.
    """
    items = [item(index, passed=passed(index), **answers) for index in range(num_items)]
    kept = Counts(num_items=num_items, num_generations=num_items) if counts is None else counts
    every = {"shops": items, **(also or {}), "calibration": _calibration(kappa_errors)}
    return _whole(every, kept, weights, settings or {})


def contest(candidate: Evidence, champion: Evidence | None) -> Contest:
    """A contest of two registered sets of weights."""
    return Contest(candidate, champion, CANDIDATE, CHAMPION if champion else None)


def better(index: int) -> float:
    """Passes 90%."""
    return float(index % 10 != 0)


def worse(index: int) -> float:
    """Passes 60%: wrong where the better one is, and on more."""
    return float(index % 10 not in (0, 1, 2, 3))


def write_evidence(folder: Path, found: Evidence) -> Path:
    """The same as an evaluation's folder."""
    figures = {}
    for name, items in found.items.items():
        path = folder / name / "items.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(one.model_dump_json() + "\n" for one in items))
        update = {"results_sha256": file_sha256(path)}
        figures[name] = found.manifest.benchmarks[name].model_copy(update=update)
    manifest = found.manifest.model_copy(update={"benchmarks": figures})
    (folder / "results.json").write_text(manifest.model_dump_json())
    return folder


def _calibration(num_errors: int) -> list[ItemResult]:
    def scores(index: int) -> dict[str, float | None]:
        human = float(index % 2)
        return {HUMAN: human, JUDGE: 1 - human if index < num_errors else human}

    return [
        ItemResult(item=str(index), slice="all", cluster=str(index), scores=scores(index))
        for index in range(40)
    ]


def _whole(
    items: dict[str, list[ItemResult]], counts: Counts, weights: str | None, settings: dict[str, Any]
) -> Evidence:
    sampled = {"temperature": 0.6, "seed": 0}
    told: dict[str, Any] = {
        "version": "0.1.0",
        "model": "tested",
        "weights_sha256": weights,
        "generation": sampled,
        "num_generations": 1,
        "judge": {"model": "judge", "judging": sampled},
        "audit": "lexical",
        "audit_settings": {},
        "limit": None,
    } | settings
    average = MacroAverage(value=None, interval=None, standard_error=None, parts={})
    manifest = Manifest(
        model="tested",
        judge="judge",
        settings=told,
        settings_sha256=json_sha256([told]),
        benchmarks={name: _figures(name, items[name], counts) for name in items},
        average=average,
    )
    return Evidence(manifest, items)


def _figures(name: str, items: list[ItemResult], counts: Counts) -> BenchmarkFigures:
    is_calibration = name == "calibration"
    card = BenchmarkCard(
        name=name,
        title=name,
        url="https://example.org",
        licence="CC0-1.0",
        primary="right",
        scored_by="judge",
        prompt_digest="0" * 64,
    )
    return BenchmarkFigures(
        card=card,
        source=name,
        items_sha256="1" * 64,
        results_sha256="2" * 64,
        style=PromptStyle.PLAIN,
        is_judged=True,
        is_calibration=is_calibration,
        estimates={OVERALL: judge_agreement(items) if is_calibration else {}},
        counts=counts,
    )
