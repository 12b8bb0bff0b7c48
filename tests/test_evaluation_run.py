"""An evaluation: what is asked and kept, what a second run does, what goes wrong and is counted apart."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")
from pipeline.evaluate.plan import AuditKind, EvaluationJob, Stage, expect, make_plan
from pipeline.evaluate.results import Counts, read_all_results, read_manifest
from pipeline.evaluate.run import run_evaluation
from pipeline.evaluate.tasks.served import ServedModel, ServerDownError
from pipeline.statistics import Estimate
from reward.config import AuditConfig, OpenAISamplerConfig
from reward.offline.files import only_writer
from tests.benchmark_files import FOLDERS
from tests.benchmark_files import items_of as benchmark_items
from tests.chaos_processes import free_port
from tests.evaluations import (
    QUESTIONS,
    ChatServer,
    drawn_answers,
    drawn_verdict,
    figures,
    items_of,
    small_job,
)

PAIRS = "contextual_judge_bench"


def counts_of(job: EvaluationJob) -> Counts:
    return read_manifest(job.out).benchmarks[QUESTIONS].counts


def primary_of(job: EvaluationJob) -> Estimate:
    found = read_manifest(job.out).benchmarks[QUESTIONS].primary
    assert found is not None
    return found


def test_everything_is_asked_once_as_the_paper_samples(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    _, num_tokens = run_evaluation(small_job(tmp_path / "out", model, judge, cache=False))
    assert (len(model.bodies), len(judge.bodies), num_tokens) == (24, 24, 48 * 36)
    assert sorted(body["seed"] for body in model.bodies) == sorted([0, 1, 2, 3] * 6)
    first = model.bodies[0]
    sampled = {key: first[key] for key in ("n", "temperature", "top_p", "top_k", "max_tokens")}
    assert sampled == {"n": 1, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "max_tokens": 8192}
    asked = judge.bodies[0]
    assert (asked["temperature"], asked["seed"], asked["n"]) == (0, 0, 1)
    schema = asked["response_format"]["json_schema"]["schema"]
    assert schema["additionalProperties"] is False and "verdict" in schema["properties"]


def test_figures_follow_from_the_judgements(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    job = small_job(tmp_path / "out", model, judge)
    manifest, _ = run_evaluation(job)
    assert manifest == read_manifest(job.out)
    items = items_of(job)
    shares = [
        sum(bool(one.judgement and one.judgement.passed) for one in item.generations) / 4 for item in items
    ]
    assert [item.scores["accuracy_mean"] for item in items] == shares
    assert [item.scores["accuracy"] for item in items] == [float(share > 0.5) for share in shares]
    assert primary_of(job).value == sum(share > 0.5 for share in shares) / 6
    counts = counts_of(job)
    assert (counts.num_generations, counts.num_unread, counts.num_unjudged) == (24, 0, 0)
    assert "fewer than 50" in read_manifest(job.out).warnings[0]


def test_a_second_run_asks_nothing_and_changes_nothing(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = small_job(tmp_path / "out", model, judge)
    first = run_evaluation(job)
    before, asked = figures(job.out), len(model.bodies) + len(judge.bodies)
    assert run_evaluation(job)[0] == first[0]
    assert (figures(job.out), len(model.bodies) + len(judge.bodies)) == (before, asked)


def test_the_two_stages_can_run_apart(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    whole = run_evaluation(small_job(tmp_path / "whole", model, judge))
    apart = small_job(tmp_path / "out", model, None, only=Stage.GENERATE)
    assert run_evaluation(apart)[0] is None and not apart.results_path.exists()
    model.close()
    later = run_evaluation(small_job(tmp_path / "out", model, judge, only=Stage.JUDGE))
    assert later[0] is not None and whole[0] is not None
    assert (tmp_path / "out" / QUESTIONS / "items.jsonl").read_bytes() == (
        tmp_path / "whole" / QUESTIONS / "items.jsonl"
    ).read_bytes()
    with pytest.raises(ValueError, match=r"holds no answers to 2wikimultihopqa .*generate first"):
        run_evaluation(small_job(tmp_path / "none", model, judge, only=Stage.JUDGE))


def test_a_known_question_is_not_paid_twice(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    one, two = (small_job(tmp_path / name, model, judge) for name in ("one", "two"))
    run_evaluation(one)
    num_asked = len(judge.bodies)
    run_evaluation(two)
    assert len(judge.bodies) == num_asked
    assert [item.scores for item in items_of(one)] == [item.scores for item in items_of(two)]


@pytest.mark.parametrize(
    ("changes", "num_answers"),
    [({"num_generations": 2}, 8), ({"style": "cot"}, 16), ({"judge_retries": 4}, 0), ({"limit": 2}, 0)],
)
def test_other_settings_are_never_mixed_in(
    changes: dict[str, Any], num_answers: int, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    first, other = (small_job(tmp_path / "out", model, judge, **{"limit": 4} | one) for one in ({}, changes))
    run_evaluation(first)
    before, num_asked = figures(first.out), len(model.bodies)
    first.results_path.unlink()  # else it is refused, below
    run_evaluation(other)
    assert len(model.bodies) == num_asked + num_answers
    alone = small_job(tmp_path / "alone", model, judge, **{"limit": 4} | changes)
    run_evaluation(alone)
    assert figures(other.out) == figures(alone.out)
    num_asked = len(model.bodies) + len(judge.bodies)
    other.results_path.unlink()
    run_evaluation(first)
    assert figures(first.out) == before and len(model.bodies) + len(judge.bodies) == num_asked


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_generations": 2}, "num_generations is 4 there and 2 here"),
        ({"style": "cot"}, "2wikimultihopqa is asked plain there and cot here"),
        ({"judge_retries": 4}, "judge.judge_retries is 2 there and 4 here"),
        ({"only": "generate", "generation": {"max_tokens": 9}}, "generation.max_tokens is 8192 there and 9"),
        ({"benchmarks": {PAIRS: FOLDERS[PAIRS]}}, "it has 2wikimultihopqa, which is not asked now"),
    ],
)
def test_figures_of_another_evaluation_are_not_replaced(
    changes: dict[str, Any], says: str, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = small_job(tmp_path / "out", model, judge, limit=4)
    run_evaluation(job)
    before, num_asked = figures(job.out), len(model.bodies)
    with pytest.raises(ValueError, match=f"results.json is of another evaluation: {says}.*another --out"):
        run_evaluation(small_job(tmp_path / "out", model, judge, **{"limit": 4} | changes))
    assert figures(job.out) == before and len(model.bodies) == num_asked


def test_a_changed_file_is_another_evaluation(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    rows = json.loads((FOLDERS[QUESTIONS] / "train.json").read_text())[:3]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    job = small_job(tmp_path / "out", model, judge, benchmarks={QUESTIONS: path})
    run_evaluation(job)
    path.write_text(json.dumps([rows[0] | {"question": "What else?"}, *rows[1:]]))
    with pytest.raises(ValueError, match="2wikimultihopqa has other rows or prompts there"):
        run_evaluation(job)
    job.results_path.unlink()
    with pytest.raises(ValueError, match="holds no answers to 2wikimultihopqa by these settings"):
        run_evaluation(job.model_copy(update={"only": Stage.JUDGE}))
    run_evaluation(job)
    assert len(model.bodies) == 24


def test_more_items_go_on_where_fewer_ended(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    run_evaluation(small_job(tmp_path / "out", model, judge, limit=4))
    run_evaluation(small_job(tmp_path / "out", model, judge))
    assert len(model.bodies) == 24 and len(judge.bodies) <= 24
    run_evaluation(small_job(tmp_path / "whole", model, judge))
    assert items_of(small_job(tmp_path / "out", model, judge)) == items_of(
        small_job(tmp_path / "whole", model, judge)
    )


def unreadable(is_so: Callable[[Mapping[str, Any]], bool]) -> Callable[[Mapping[str, Any]], list[str]]:
    """A judge whose replies to some questions are nonsense."""
    return lambda body: ["I would rather not say."] if is_so(body) else drawn_verdict(body)


def test_a_useless_reply_is_asked_for_again_with_another_seed(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    judge.complete = unreadable(lambda body: body["temperature"] == 0)
    job = small_job(tmp_path / "out", model, judge)
    run_evaluation(job)
    counts = counts_of(job)
    assert (counts.num_unread, counts.num_unjudged) == (0, 0)
    again = [body for body in judge.bodies if body["temperature"]]
    assert len(again) == 24
    assert {(body["seed"], body["temperature"]) for body in again} == {(1, 0.6)}


def test_what_stays_unreadable_is_counted_apart_and_tried_again_later(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = small_job(tmp_path / "out", model, judge)
    first = small_questions()[0]
    judge.complete = unreadable(lambda body: first in str(body["messages"]))
    run_evaluation(job)
    counts, accuracy = counts_of(job), primary_of(job)
    assert (counts.num_unread, counts.num_unjudged) == (4, 0)
    assert (accuracy.num_items, accuracy.num_unscored) == (5, 1)
    assert any("could not be read, in no figure: 4" in one for one in read_manifest(job.out).warnings)
    (lost,) = (item for item in items_of(job) if item.scores["accuracy"] is None)
    assert [one.judgement for one in lost.generations] == [None] * 4
    judge.complete, num_asked = drawn_verdict, len(model.bodies)
    run_evaluation(job)
    assert counts_of(job).num_unread == 0 and len(model.bodies) == num_asked


def small_questions() -> list[str]:
    return [item.query.query for item in benchmark_items(QUESTIONS)]


@pytest.mark.parametrize(("status", "says"), [(401, "answered 401"), (500, "answered 500")])
def test_a_judge_that_is_down_is_one_line_and_resumable(
    status: int, says: str, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    judge.status = status
    job = small_job(tmp_path / "out", model, judge, cache=False)
    with pytest.raises(ValueError, match=rf"judge: .*{says}"):
        run_evaluation(job)
    assert not job.results_path.exists() and not model.bodies, "it is said before anything is spent"
    run_evaluation(job.model_copy(update={"only": Stage.GENERATE}))
    num_asked = len(model.bodies)
    with pytest.raises(ValueError, match=rf"judge: .*{says}"):
        run_evaluation(job.model_copy(update={"only": Stage.JUDGE}))
    judge.status = 200
    run_evaluation(job)
    assert len(model.bodies) == num_asked and counts_of(job).num_unjudged == 0


def test_a_model_that_is_away_is_known_before_anything_begins(tmp_path: Path, judge: ChatServer) -> None:
    away = OpenAISamplerConfig(base_url=f"http://127.0.0.1:{free_port()}/v1", model="m")
    job = small_job(tmp_path / "out", judge, judge, model=away)
    with pytest.raises(ValueError, match=r"model: .* cannot be reached"):
        run_evaluation(job)
    assert not (job.out / "logs").exists(), "Inspect has not begun"


def test_a_model_that_is_down_costs_the_same_for_each_answer() -> None:
    away = OpenAISamplerConfig(base_url=f"http://127.0.0.1:{free_port()}/v1", model="m")

    async def depths() -> list[int]:
        model, found = ServedModel(away, "model"), []
        for _ in range(5):
            with pytest.raises(ServerDownError) as raised:
                await model.sampler()
            found.append(len(list(traceback.walk_tb(raised.value.__traceback__))))
        return found

    first, *others = asyncio.run(depths())
    assert len(set(others)) == 1 and others[0] <= first, "a traceback that grows with each answer"


def test_a_judge_that_dies_in_the_middle_loses_nothing(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    def dies(body: Mapping[str, Any]) -> list[str]:
        judge.status = 500 if len(judge.bodies) >= 12 else 200
        return drawn_verdict(body)

    judge.complete = dies
    job = small_job(tmp_path / "out", model, judge, cache=False)
    with pytest.raises(ValueError, match=r"judge: .*what is done is kept"):
        run_evaluation(job)
    judge.complete, judge.status = drawn_verdict, 200
    num_asked = len(judge.bodies)
    run_evaluation(job)
    assert len(judge.bodies) - num_asked <= 24 - 10
    whole = small_job(tmp_path / "whole", model, judge, cache=False)
    run_evaluation(whole)
    assert items_of(job) == items_of(whole)


def test_one_request_that_fails_is_counted_and_asked_again(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    def fails_once(body: Mapping[str, Any]) -> list[str]:
        return (
            [] if body["seed"] == 3 and small_questions()[0] in str(body["messages"]) else drawn_answers(body)
        )

    model.complete = fails_once
    job = small_job(tmp_path / "out", model, judge)
    run_evaluation(job)
    assert (len(model.bodies), counts_of(job).num_failed) == (24, 1)
    assert any("which the same command asks for again: 1" in one for one in read_manifest(job.out).warnings)
    assert len(items_of(job)[0].generations) == 3
    model.complete = drawn_answers
    run_evaluation(job)
    assert (len(model.bodies), counts_of(job).num_failed) == (25, 0)
    assert len(items_of(job)[0].generations) == 4


def test_an_answer_that_fails_loses_those_to_the_other_prompts_of_its_item(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    """ContextualJudgeBench asks twice about an item; one answer alone says nothing of consistency."""
    pairs = {"benchmarks": {PAIRS: FOLDERS[PAIRS]}, "limit": 2, "num_generations": 4, "concurrency": 1}
    model.complete = lambda body: [] if len(model.bodies) == 1 else ["**Result:** A"]
    job = small_job(tmp_path / "out", model, None, **pairs)
    run_evaluation(job)
    figures = read_manifest(job.out).benchmarks[PAIRS]
    assert (figures.counts.num_generations, figures.counts.num_failed) == (14, 2)
    assert figures.missing["answers"] == 2 / 16


def test_a_smaller_limit_does_not_remove_what_is_begun(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    def fails_once(body: Mapping[str, Any]) -> list[str]:
        is_first = body["seed"] == 3 and small_questions()[0] in str(body["messages"])
        return [] if is_first else drawn_answers(body)

    model.complete = fails_once
    run_evaluation(small_job(tmp_path / "out", model, judge))
    with pytest.raises(ValueError, match="--limit 2: 6 items of 2wikimultihopqa are begun"):
        run_evaluation(small_job(tmp_path / "out", model, judge, limit=2))
    model.complete = drawn_answers
    run_evaluation(small_job(tmp_path / "out", model, judge))
    assert len(model.bodies) == 25, "one was missing"
    run_evaluation(small_job(tmp_path / "out", model, judge, limit=2))  # of what is whole
    assert len(model.bodies) == 25


def test_an_item_that_always_fails_costs_no_other_its_figures(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    model.complete = lambda body: [] if small_questions()[0] in str(body["messages"]) else drawn_answers(body)
    job = small_job(tmp_path / "out", model, judge, num_generations=8, concurrency=1)
    for _ in range(2):
        run_evaluation(job)
        assert counts_of(job).num_failed == 8 and primary_of(job).num_unscored == 1


def test_what_another_version_has_judged_is_judged_again(
    tmp_path: Path, model: ChatServer, judge: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = small_job(tmp_path / "out", model, judge, cache=False)
    run_evaluation(job)
    monkeypatch.setattr("pipeline.evaluate.plan.package_version", lambda: "9.9.9")
    run_evaluation(job)
    assert (len(model.bodies), len(judge.bodies)) == (24, 48), "rules and prompts may be others"


def test_few_judged_answers_of_many_decide_nothing(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    num_asked = 0

    def fails_often(body: Mapping[str, Any]) -> list[str]:
        nonlocal num_asked
        num_asked += small_questions()[0] in str(body["messages"])
        is_one = small_questions()[0] in str(body["messages"]) and num_asked > 1
        return [] if is_one else drawn_verdict(body)

    judge.complete = fails_often
    job = small_job(tmp_path / "out", model, judge, cache=False, concurrency=1)
    run_evaluation(job)
    assert counts_of(job).num_unjudged == 3
    first = items_of(job)[0]
    assert first.scores["accuracy"] is None, "one of four"
    assert sum(one.judgement is not None for one in first.generations) == 1
    judge.complete = drawn_verdict
    run_evaluation(job)
    assert counts_of(job).num_unjudged == 0 and items_of(job)[0].scores["accuracy"] is not None


def test_a_judge_is_demanded_before_anything_is_spent(tmp_path: Path, model: ChatServer) -> None:
    with pytest.raises(ValueError, match=r"--judge: missing; a model judges 2wiki.*; .*--only generate"):
        run_evaluation(small_job(tmp_path / "out", model, None))
    assert model.bodies == []


def test_a_prompt_that_does_not_fit_is_counted_and_not_asked_again(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    model.too_long = small_questions()[2]
    job = small_job(tmp_path / "out", model, judge)
    run_evaluation(job)
    counts = counts_of(job)
    assert (counts.num_too_long, counts.num_failed, counts.num_generations) == (4, 0, 20)
    assert primary_of(job).num_unscored == 1 and items_of(job)[2].generations == ()
    num_asked = len(model.bodies)
    run_evaluation(job)
    assert len(model.bodies) == num_asked


def test_given_answers_measure_the_judge_against_people(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    sources = {name: FOLDERS[name] for name in ("ragtruth", "ragtruth_judge")}
    job = small_job(tmp_path / "out", model, judge, benchmarks=sources, limit=3)
    manifest = run_evaluation(job)[0]
    assert manifest is not None and len(model.bodies) == 12
    calibration = manifest.benchmarks["ragtruth_judge"]
    assert calibration.is_calibration and list(manifest.measured) == ["ragtruth"]
    assert calibration.estimates["overall"]["cohens_kappa"].num_items == 3
    assert manifest.average is not None and list(manifest.average.parts) == ["ragtruth"]


def test_the_judges_model_can_audit_the_numbers(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    def plays_all(body: Mapping[str, Any]) -> list[str]:
        if "response_format" in body:
            return drawn_verdict(body)
        if body["messages"][0]["content"] == "proposer":
            return ["- Question: How many years? [Answer: 7]"]
        return ["1. [Answer: 8]"] * body["n"]

    judge.complete, model.complete = plays_all, lambda _: ["It took 7 years."]
    audit = {
        "audit": AuditKind.MODEL,
        "audit_settings": AuditConfig(kinds=("number",), prompts="compact", seed=0),
    }
    job = small_job(tmp_path / "out", model, judge, limit=2, num_generations=2, **audit)
    run_evaluation(job)
    verdicts = [one.verdict for item in items_of(job) for one in item.generations]
    assert [verdict and verdict.outcome for verdict in verdicts] == ["REFUTED"] * 4
    assert [item.scores["numeric_model"] for item in items_of(job)] == [0.0, 0.0]
    assert any(body["n"] > 1 for body in judge.bodies), "votes are one request"
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "1", "query": "How many?", "documents": ["50 came."], "answers": ["50"]}\n')
    one, other = (small_job(tmp_path, model, judge, benchmarks={"jsonl": rows}, **audit) for _ in range(2))
    assert other.judge is not None
    renamed = other.model_copy(update={"judge": other.judge.model_copy(update={"model": "another"})})
    assert make_plan(one)[0].version(Stage.JUDGE) != make_plan(renamed)[0].version(Stage.JUDGE)
    assert expect(make_plan(one)[0])[1].number > 0, "the audits are asked of it, too"


def test_an_audit_that_failed_is_no_score(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    judge.complete = lambda body: drawn_verdict(body) if "response_format" in body else []
    job = small_job(tmp_path / "out", model, judge, limit=2, num_generations=2, audit=AuditKind.MODEL)
    run_evaluation(job)
    verdicts = [one.verdict for item in items_of(job) for one in item.generations]
    assert [verdict and verdict.outcome for verdict in verdicts] == ["UNSCORED"] * 4
    scores = [item.scores for item in items_of(job)]
    assert [(one["numeric_model"], one["numeric_model_unscored"]) for one in scores] == [(None, 1.0)] * 2
    assert counts_of(job).num_unaudited == 4 and None not in [one["accuracy"] for one in scores]


def test_who_watches_is_told_of_every_request(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    told: list[tuple[str, int, int]] = []
    job = small_job(tmp_path / "out", model, judge, cache=False)
    run_evaluation(job, tell=lambda *, label, done, total: told.append((label, done, total)))
    assert [label for label, _, _ in told] == ["generating"] * 24 + ["judging"] * 24
    assert {total for _, _, total in told} == {24}


def test_two_runs_never_write_one_folder(tmp_path: Path, model: ChatServer, judge: ChatServer) -> None:
    job = small_job(tmp_path / "out", model, judge)
    with only_writer(job.out / ".lock"), pytest.raises(ValueError, match="another evaluation writes it"):
        run_evaluation(job)


def test_results_that_were_changed_are_not_believed(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    job = small_job(tmp_path / "out", model, judge)
    run_evaluation(job)
    path = job.out / QUESTIONS / "items.jsonl"
    first, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps(json.loads(first) | {"scores": {"accuracy": 1.0}}) + "\n" + rest)
    with pytest.raises(ValueError, match="has changed since its figures"):
        read_all_results(job.out, read_manifest(job.out))
