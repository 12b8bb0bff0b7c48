"""The runner: what is asked and kept, what a second run does, what goes wrong and is counted apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.evaluate.manifest import read_all_results, read_manifest
from pipeline.evaluate.plan import AuditKind, BenchmarkSource, Stage
from pipeline.evaluate.results import read_results
from reward.config import AuditConfig
from tests.evaluations import SCHEMA, ChatServer, files, ruled, run, said_price, shops_file, shops_job


@pytest.fixture
def model() -> Iterator[ChatServer]:
    server = ChatServer(said_price, "tested")
    yield server
    server.close()


@pytest.fixture
def judge() -> Iterator[ChatServer]:
    server = ChatServer(ruled, "judge")
    yield server
    server.close()


def test_everything_is_asked_once_as_the_paper_samples(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    outcome, watch = run(shops_job(tmp_path / "out", model, judge))
    assert watch.stages == [("generating", 10, 0), ("judging", 80, 0), ("auditing numbers", 80, 0)]
    assert (outcome.model.num_requests, outcome.judge.num_requests) == (10, 80)
    first = model.bodies[0]
    sampled = {key: first[key] for key in ("n", "temperature", "top_p", "top_k", "seed", "max_tokens")}
    assert sampled == {"n": 8, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "seed": 0, "max_tokens": 8192}
    asked = judge.bodies[0]
    assert (asked["temperature"], asked["seed"], asked["n"]) == (0, 0, 1)
    assert asked["response_format"]["json_schema"]["schema"] == SCHEMA


def test_figures_follow_from_the_judgements(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    manifest = run(shops_job(tmp_path / "out", model, judge))[0].manifest
    assert manifest is not None and manifest == read_manifest(tmp_path / "out")
    figures = manifest.benchmarks["shops"]
    results = list(read_results(tmp_path / "out" / "shops" / "items.jsonl"))
    shares = [sum("It is 999 " not in one.text for one in result.generations) / 8 for result in results]
    assert [result.item for result in results] == [str(i) for i in range(10)]
    assert [result.scores["right_mean"] for result in results] == shares
    assert [result.scores["right"] for result in results] == [float(share > 0.5) for share in shares]
    right = [result.scores["right"] for result in results]
    assert figures.estimates["overall"]["right"].value == sum(filter(None, right)) / 10
    assert set(figures.estimates) == {"overall", "east", "west"}
    # Every answer is "It is N euros.": the audit of its number says what the judge says.
    assert [result.scores["numeric_lexical_mean"] for result in results] == shares
    assert figures.counts.num_generations == 80 and figures.counts.num_unread == 0
    assert figures.counts.model_use is not None and figures.counts.model_use.num_prompt == 300
    assert "fewer than 50" in manifest.warnings[0]


def test_a_second_run_asks_nothing_and_changes_nothing(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = shops_job(tmp_path / "out", model, judge)
    first, _ = run(job)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in job.out.rglob("*.json*")}
    asked = len(model.bodies) + len(judge.bodies)
    second, watch = run(job)
    assert (second.manifest, watch.stages) == (first.manifest, [])
    assert len(model.bodies) + len(judge.bodies) == asked
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


@pytest.mark.parametrize("cut", [0, 1, 900, 5_000, 30_000, -1, -700])
def test_a_file_that_was_cut_anywhere_is_completed_to_the_same_bytes(
    cut: int, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = shops_job(tmp_path / "out", model, judge)
    run(job)
    whole = files(job.out)
    records = job.out / "shops" / "records.jsonl"
    records.write_bytes(records.read_bytes()[:cut])
    (job.out / "manifest.json").unlink()
    run(job)
    assert files(job.out) == whole


def test_the_two_stages_can_run_apart(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    whole, _ = run(shops_job(tmp_path / "whole", model, judge))
    outcome, _ = run(shops_job(tmp_path / "out", model, None, only=Stage.GENERATE))
    assert outcome.manifest is None and not (tmp_path / "out" / "manifest.json").exists()
    model.close()
    later, _ = run(shops_job(tmp_path / "out", model, judge, only=Stage.JUDGE))
    assert later.manifest == whole.manifest
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_known_question_is_not_paid_twice(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    cache = tmp_path / "cache" / "judge.sqlite"
    first, _ = run(shops_job(tmp_path / "one", model, judge, cache=cache))
    # Equal answers of one item are one question, but those under way together may both be asked.
    assert first.judge.num_requests + first.num_cached == 80
    num_asked = len(judge.bodies)
    second, _ = run(shops_job(tmp_path / "two", model, judge, cache=cache))
    assert (second.judge.num_requests, second.num_cached, len(judge.bodies)) == (0, 80, num_asked)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_a_file_that_is_no_cache_is_named(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    cache = tmp_path / "notes.txt"
    cache.write_text("my notes" * 1000)
    with pytest.raises(ValueError, match=r"--cache: .*notes\.txt: file is not a database; remove"):
        run(shops_job(tmp_path / "out", model, judge, cache=cache))


def test_other_settings_are_never_mixed_in(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    run(shops_job(tmp_path / "out", model, judge, limit=4))
    before = files(tmp_path / "out")
    with pytest.raises(ValueError, match=r"records\.jsonl: generations of item '0' were made with other"):
        run(shops_job(tmp_path / "out", model, judge, limit=4, num_generations=4))
    with pytest.raises(ValueError, match=r"item '2' is not among the items \(or beyond --limit\)"):
        run(shops_job(tmp_path / "out", model, judge, limit=2))
    assert files(tmp_path / "out") == before
    outcome, _ = run(shops_job(tmp_path / "out", model, judge, limit=2, overwrite=True))
    assert outcome.manifest is not None and outcome.manifest.benchmarks["shops"].counts.num_items == 2


def test_more_items_go_on_where_fewer_ended(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    run(shops_job(tmp_path / "out", model, judge, limit=4))
    _, watch = run(shops_job(tmp_path / "out", model, judge))
    assert watch.stages[0] == ("generating", 10, 4) and watch.stages[1] == ("judging", 80, 32)


def unreadable(share: int, *, forever: bool) -> Any:
    """A judge whose replies about some prices are nonsense, at the first time or for ever."""

    def reply(body: Mapping[str, Any]) -> list[str]:
        price = int(body["messages"][-1]["content"].split()[1])
        is_first = body["temperature"] == 0
        return ["I would rather not say."] if price % share == 0 and (forever or is_first) else ruled(body)

    return reply


def test_a_useless_reply_is_asked_for_again_with_another_seed(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    judge.complete = unreadable(5, forever=False)
    manifest = run(shops_job(tmp_path / "out", model, judge))[0].manifest
    assert manifest is not None
    counts = manifest.benchmarks["shops"].counts
    assert (counts.num_unread, counts.num_retries, counts.num_judgements) == (0, 16, 80)
    again = [body for body in judge.bodies if body["temperature"]]
    assert {(body["seed"], body["temperature"]) for body in again} == {(1, 0.6)}


def test_what_stays_unreadable_is_counted_apart_and_tried_again_later(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    judge.complete = unreadable(5, forever=True)
    job = shops_job(tmp_path / "out", model, judge, cache=tmp_path / "cache.sqlite")
    manifest = run(job)[0].manifest
    assert manifest is not None
    counts, right = manifest.benchmarks["shops"].counts, manifest.benchmarks["shops"].primary
    assert (counts.num_unread, counts.num_unjudged, counts.num_judgements) == (16, 0, 64)
    assert right is not None and (right.num_items, right.num_unscored) == (8, 2)
    assert any("could not be read, in no figure: 16" in warning for warning in manifest.warnings)
    (lost,) = (one for one in read_all_results(job.out, manifest)["shops"] if one.item == "0")
    assert lost.scores["right"] is None and lost.generations[0].reply == "I would rather not say."
    judge.complete = ruled
    mended = run(job)[0].manifest
    assert mended is not None and mended.benchmarks["shops"].counts.num_unread == 0


def test_a_judge_that_talks_nonsense_stops_before_it_costs_more(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    judge.complete = unreadable(1, forever=True)
    job = shops_job(tmp_path / "out", model, judge, judge_retries=0)
    with pytest.raises(ValueError, match=r"20 of 20 judgements could not be read.*'I would rather.*goes on"):
        run(job)
    assert len(judge.bodies) < 30 and not job.manifest_path.exists()
    judge.complete = ruled
    assert run(job)[0].manifest is not None


@pytest.mark.parametrize(("status", "says"), [(401, "answered 401"), (500, "answered 500")])
def test_a_judge_that_is_down_is_one_line_and_resumable(
    status: int, says: str, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    whole, _ = run(shops_job(tmp_path / "whole", model, judge))
    judge.status = status
    job = shops_job(tmp_path / "out", model, judge)
    with pytest.raises(ValueError, match=rf"judge: .*{says}"):
        run(job)
    judge.status = 200
    outcome, watch = run(job)
    assert outcome.manifest == whole.manifest and watch.stages[0][0] == "judging"
    assert files(job.out) == files(tmp_path / "whole")


def test_a_judge_that_dies_in_the_middle_loses_nothing(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    def dies(body: Mapping[str, Any]) -> list[str]:
        judge.status = 500 if len(judge.bodies) >= 30 else 200
        return ruled(body)

    judge.complete = dies
    job = shops_job(tmp_path / "out", model, judge)
    with pytest.raises(ValueError, match=r"judge: .*what is done is kept"):
        run(job)
    judge.complete, judge.status = ruled, 200
    _, watch = run(job)
    (_, total, done) = watch.stages[0]
    assert total == 80 and done >= 28


def test_a_judge_is_demanded_before_anything_is_spent(tmp_path: Path, model: ChatServer) -> None:
    with pytest.raises(ValueError, match=r"--judge: missing; a model judges shops; .*--only generate"):
        run(shops_job(tmp_path / "out", model, None))
    assert model.bodies == []


def test_a_prompt_that_does_not_fit_is_counted_and_not_asked_again(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    model.too_long = "shop number 3 "
    job = shops_job(tmp_path / "out", model, judge)
    manifest = run(job)[0].manifest
    assert manifest is not None
    counts, right = manifest.benchmarks["shops"].counts, manifest.benchmarks["shops"].primary
    assert (counts.num_too_long, counts.num_failed, counts.num_generations) == (1, 0, 72)
    assert right is not None and right.num_unscored == 1
    num_asked = len(model.bodies)
    run(job)
    assert len(model.bodies) == num_asked


def test_given_answers_measure_the_judge_against_people(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    sources = [BenchmarkSource(name=name, path=shops_file(tmp_path)) for name in ("shops", "calibration")]
    manifest = run(shops_job(tmp_path / "out", model, judge, benchmarks=tuple(sources)))[0].manifest
    assert manifest is not None and len(model.bodies) == 10
    calibration = manifest.benchmarks["calibration"]
    assert calibration.is_calibration and list(manifest.measured) == ["shops"]
    assert calibration.agreement["overall"].cohens_kappa.value == 1.0
    assert calibration.agreement["overall"].num_pairs == 20
    assert manifest.average is not None and list(manifest.average.parts) == ["shops"]


def test_the_judges_model_can_audit_the_numbers(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    def plays_all(body: Mapping[str, Any]) -> list[str]:
        text = body["messages"][-1]["content"]
        if "Right or wrong?" in text:
            return ruled(body)
        if body["messages"][0]["content"] == "proposer":
            said = re.findall(r"It is (\d+) euros", text)[-1]
            return [f"- Question: How much is a lamp? [Answer: {said}]"]
        price = re.findall(r"costs (\d+) euros", text)[0]
        return [f"1. Evidence: A lamp costs {price} euros there. [Answer: {price}]"] * body["n"]

    judge.complete = plays_all
    audited = {
        "audit": AuditKind.MODEL,
        "audit_settings": AuditConfig(kinds=("number",), prompts="compact", seed=0),
    }
    job = shops_job(tmp_path / "out", model, judge, limit=2, num_generations=3, **audited)
    manifest = run(job)[0].manifest
    assert manifest is not None
    found = read_all_results(job.out, manifest)["shops"]
    shares = [sum("999" not in one.text for one in result.generations) / 3 for result in found]
    assert [result.scores["numeric_model_mean"] for result in found] == shares
    before = files(job.out)
    run(job)
    assert files(job.out) == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"benchmarks": [{"name": "ships", "path": "x"}]},
            "'ships' is not known; give one of shops, calibration",
        ),
        ({"style": "10-shot"}, "--style 10-shot: shops is asked as plain, cot; choose one"),
    ],
)
def test_what_cannot_be_asked_is_named(
    changes: dict[str, Any], says: str, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    with pytest.raises(ValueError, match=says):
        run(shops_job(tmp_path / "out", model, judge, **changes))


def test_two_runs_never_write_one_folder(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    from reward.offline.files import only_writer

    job = shops_job(tmp_path / "out", model, judge)
    with only_writer(job.out / ".lock"), pytest.raises(ValueError, match="another evaluation writes it"):
        run(job)


def test_results_that_were_changed_are_not_believed(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = shops_job(tmp_path / "out", model, judge)
    run(job)
    path = job.out / "shops" / "items.jsonl"
    first, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps(json.loads(first) | {"scores": {"right": 1.0}}) + "\n" + rest)
    with pytest.raises(ValueError, match="has changed since its manifest"):
        read_all_results(job.out, read_manifest(job.out))
