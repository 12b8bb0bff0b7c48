"""The benchmarks as Inspect's tasks: what is asked, and that whatever could not be scored is no score."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")
from inspect_ai._util import package
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_info
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Metric, Score, metric

from pipeline.evaluate.tasks.samples import of_march
from pipeline.evaluate.tasks.scorers import item_scores, majority
from tests.benchmark_files import DATA, FOLDERS
from tests.evaluations import ChatServer
from tests.inspect_tasks import Script, consistent, figures, run_task, samples, score

RAGTRUTH = {"path": str(FOLDERS["ragtruth"]), "limit": 1}
TEXT = "It has 4.5 stars."


def says(text: str) -> Script:
    return Script(lambda *_: text)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def test_the_model_is_sampled_as_in_the_paper_and_each_epoch_by_itself(tmp_path: Path) -> None:
    model, judge = says(TEXT), Script(consistent)
    log = run_task(tmp_path, "ragtruth", model, judge, epochs=8, **RAGTRUTH)
    config = model.asked[0][1]
    assert (config.temperature, config.top_p, config.top_k, config.max_tokens) == (0.6, 0.95, 20, 8192)
    assert sorted(one.seed or 0 for _, one in model.asked) == list(range(8))
    asked = judge.asked[0][1]
    assert (asked.temperature, asked.seed, asked.max_tokens) == (0, 0, 2048)
    assert asked.response_schema is not None
    assert set(asked.response_schema.json_schema.properties or ()) == {"reasoning", "classification"}
    assert log.eval.task == "march/ragtruth" and figures(log)["consistent"] == (1.0, 1, 0)
    assert log.eval.metadata and log.eval.metadata["licence"] == "MIT"


def test_both_orders_of_a_pair_are_asked(tmp_path: Path) -> None:
    model = says("The first.\n**Result:** A")
    settings = {"path": str(FOLDERS["contextual_judge_bench"]), "limit": 1}
    log = run_task(tmp_path, "contextual_judge_bench", model, **settings)
    assert len(model.asked) == 2 and model.asked[0][0] != model.asked[1][0]
    found = figures(log)
    assert (found["positive_first_accuracy"][0], found["positive_second_accuracy"][0]) == (1, 0)
    assert (found["consistent_accuracy"][0], found["consistency"][0]) == (0, 0)
    assert len(samples(log)[0].messages) == 2 * len(model.asked[0][0]) + 2


@pytest.mark.parametrize(("num_right", "verdict"), [(4, 0.0), (5, 1.0), (3, 0.0)])
def test_the_majority_of_the_epochs_decides_and_a_tie_is_no_pass(
    num_right: int, verdict: float, tmp_path: Path
) -> None:
    model = Script(lambda _, config: "yes" if (config.seed or 0) < num_right else "no")
    judge = Script(lambda chat, _: qa("correct" if "yes" in chat[-1].text else "incorrect"))
    path = str(FOLDERS["musique"])
    log = run_task(tmp_path, "musique", model, judge, epochs=8, path=path, limit=1, audit="none")
    found = figures(log)
    assert (found["accuracy"][0], found["accuracy_mean"][0]) == (verdict, num_right / 8)
    assert found["tie"][0] == float(num_right == 4)


def qa(verdict: str) -> str:
    return json.dumps({"reasoning": "so", "verdict": verdict})


def test_a_verdict_that_cannot_be_read_is_asked_for_again_then_in_no_figure(tmp_path: Path) -> None:
    judge = says("I would rather not say.")
    log = run_task(tmp_path, "ragtruth", says(TEXT), judge, **RAGTRUTH)
    assert [(one.seed, one.temperature) for _, one in judge.asked] == [(0, 0), (1, 0.6), (2, 0.6)]
    one = score(log, "verdict")
    assert is_nan(one.value) and one.reason == "grader_failed"
    value, num_scored, num_unscored = figures(log)["consistent"]
    assert (is_nan(value), num_scored, num_unscored) == (True, 0, 1), "Inspect's own mean would say 0"
    assert figures(log)["unjudged"][0] == 1.0 and log.status == "success"
    (scores,) = item_scores(log).values()
    assert scores["consistent"] is None


def test_a_question_to_the_judge_that_failed_is_no_vote_and_no_missing_one(tmp_path: Path) -> None:
    asked: list[Any] = []

    def judge(chat: Any, _: Any) -> str:
        asked.append(chat)
        if len(asked) > 1:
            raise RuntimeError("out of order")
        return consistent()

    log = run_task(tmp_path, "ragtruth", says(TEXT), Script(judge), epochs=4, **RAGTRUTH)
    assert figures(log)["consistent"][1:] == (0, 1), "one of four decides nothing"
    assert figures(log)["unjudged"][0] == 0.75
    official = figures(log)["consistent_unparsed_is_inconsistent"]
    assert is_nan(official[0]), "a judge that failed says nothing of the model"
    reasons = [one.scores["verdict"].reason for one in samples(log) if one.scores]
    assert reasons.count("grader_error") == 3


def test_a_generation_that_failed_is_no_wrong_answer(tmp_path: Path) -> None:
    def answer(_: Any, config: Any) -> str:
        if config.seed in (1, 2):
            raise RuntimeError("out of order")
        return TEXT

    judge = Script(consistent)
    log = run_task(tmp_path, "ragtruth", Script(answer), judge, epochs=4, **RAGTRUTH)
    assert log.status == "error", "`inspect eval-retry` asks for the two again"
    assert len(judge.asked) == 2 and figures(log)["consistent"] == (1.0, 1, 0)
    assert figures(log)["consistent_mean"][0] == 1.0 and figures(log)["numeric_lexical_unscored"][0] == 0


def test_too_few_generations_have_no_verdict(tmp_path: Path) -> None:
    def answer(_: Any, config: Any) -> str:
        if config.seed:
            raise RuntimeError("out of order")
        return TEXT

    log = run_task(tmp_path, "ragtruth", Script(answer), Script(consistent), epochs=4, **RAGTRUTH)
    found = figures(log)
    assert found.pop("unjudged") == (1.0, 1, 0)
    assert all(is_nan(value) and num == 1 for value, _, num in found.values())


def test_failed_and_unread_ones_together_may_leave_too_few(tmp_path: Path) -> None:
    def answer(_: Any, config: Any) -> str:
        if config.seed < 4:
            raise RuntimeError("out of order")
        return f"{TEXT} {config.seed}"

    def judge(chat: Any, config: Any) -> str:
        return consistent() if f"{TEXT} 4" in chat[-1].text or f"{TEXT} 5" in chat[-1].text else "Well."

    found = figures(run_task(tmp_path, "ragtruth", Script(answer), Script(judge), epochs=8, **RAGTRUTH))
    assert is_nan(found["consistent"][0]) and found["unjudged"][0] == 0.75, "two of eight decide nothing"


def test_a_thought_that_was_cut_is_no_answer(tmp_path: Path) -> None:
    judge = Script(consistent)
    log = run_task(tmp_path, "ragtruth", says(f"<think>{TEXT} Let me see whether"), judge, **RAGTRUTH)
    assert not judge.asked and score(log, "verdict").reason == "unfinished_thought"
    log = run_task(tmp_path / "2", "ragtruth", says(f"<think>Hm.</think>{TEXT}"), judge, **RAGTRUTH)
    assert len(judge.asked) == 1 and score(log, "verdict").answer == TEXT


def test_an_item_without_any_answer_leaves_the_others_their_figures(tmp_path: Path) -> None:
    path = str(FOLDERS["musique"])
    first = run_task(tmp_path, "musique", says("x"), judge=False, path=path, limit=1)
    failing = samples(first)[0].input[-1]

    def answer(chat: Any, _: Any) -> str:
        if chat[-1].text == getattr(failing, "text", None):
            raise RuntimeError("out of order")
        return "Answer: x"

    judge = says(qa("correct"))
    log = run_task(tmp_path, "musique", Script(answer), judge, epochs=2, path=path, limit=3)
    found = figures(log)
    assert found["accuracy"] == (1.0, 2, 1) and found["em"] == (0.0, 2, 1)
    assert found["numeric_lexical_unscored"][1:] == (2, 1)


@pytest.mark.parametrize("reason", ["model_length", "content_filter"])
def test_what_the_provider_says_instead_of_an_answer_is_not_judged(reason: Any, tmp_path: Path) -> None:
    said = ModelOutput.from_content("m", "Over the context length of 2048.", stop_reason=reason)
    judge = Script(consistent)
    log = run_task(tmp_path, "ragtruth", Script(lambda *_: said), judge, **RAGTRUTH)
    assert not judge.asked and score(log, "verdict").reason == score(log, "numbers").reason == reason
    found = figures(log)
    assert found.pop("unjudged")[0] == 1.0 and all(is_nan(value) for value, _, _ in found.values())


def test_claims_stand_in_the_log_with_their_places(tmp_path: Path) -> None:
    log = run_task(tmp_path, "ragtruth", says(TEXT), Script(consistent), **RAGTRUTH)
    one = score(log, "numbers")
    assert one.metadata is not None and one.answer == TEXT
    (claim,) = one.metadata["verdict"]["claims"]
    span = claim["claim"]["span"]
    assert one.answer[span["start"] : span["end"]] == "4.5"
    assert claim["state"] in ("contradicted", "not_in_documents")
    assert "| claim | found |" in (one.explanation or "") and "| 4.5 | **" in (one.explanation or "")


def test_the_lookup_reads_ragtruths_layout(tmp_path: Path) -> None:
    log = run_task(tmp_path, "ragtruth", says(TEXT), Script(consistent), **RAGTRUTH)
    params = {one.name: one.options for one in log.eval.scorers or ()}
    assert (params["numbers"] or {})["settings"]["checks"] == ["opening_hours", "ratings", "yes_no_fields"]


def test_an_answer_without_numbers_takes_no_part(tmp_path: Path) -> None:
    log = run_task(tmp_path, "ragtruth", says("It is a place."), Script(consistent), **RAGTRUTH)
    found = figures(log)
    assert is_nan(found["numeric_lexical"][0]) and found["numeric_lexical_no_numbers"][0] == 1.0
    assert score(log, "numbers").reason == "no_numbers"


def test_names_are_the_same_in_a_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "package_path_is_in_site_packages", lambda path: True)

    @metric(name="march/tried")
    @of_march
    def tried() -> Metric: ...

    @metric(name="march/other")
    def other() -> Metric: ...

    assert registry_info(tried).name == "march/tried"
    assert registry_info(other).name == "tests/march/other", "what `of_march` is for"


def test_scores_of_others_are_averaged() -> None:
    reduced = majority()([Score(value=1.0), Score(value=0.0), Score.unscored(reason="x")])
    assert reduced.value == 0.5


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("ragtruth", {}, "give -T path=FILE-OR-FOLDER; it is published at https://github.com/Particle"),
        ("ragtruth", {"path": "/nowhere"}, "holds none of response.jsonl; get them"),
        ("ragtruth", {**RAGTRUTH, "style": "10-shot"}, "ragtruth is asked as plain, cot"),
        ("ragtruth", {**RAGTRUTH, "audit": "guess"}, "'guess' is not a valid AuditKind"),
        ("ragtruth", {**RAGTRUTH, "audit": "model"}, "march evaluate --audit model"),
        ("ragtruth", RAGTRUTH, "give --model-role grader=MODEL"),
        ("contextual_judge_bench", {"path": str(DATA)}, "holds none of data/refusal_answerable-"),
    ],
)
def test_what_a_user_can_fix_is_said_before_anything_is_asked(
    name: str, settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = says(TEXT)
    with pytest.raises(PrerequisiteError, match=re.escape(said)):
        run_task(tmp_path, name, model, **settings)
    assert not model.asked


def test_a_prompt_that_a_server_refuses_as_too_long_is_counted_apart(
    tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    model.complete = judge.complete = lambda _: [consistent()]
    model.too_long = "Mala Town"  # in the first item alone
    path = str(FOLDERS["ragtruth"])
    log = run_task(tmp_path, "ragtruth", model, judge, epochs=None, path=path, limit=2)
    assert log.status == "error" and len(judge.bodies) == 8
    first, second = item_scores(log).values()
    assert first["consistent"] is None and second["consistent"] == 1.0
    assert figures(log)["consistent"] == (1.0, 1, 1)


def test_verdicts_can_come_later_without_the_benchmarks_files(tmp_path: Path) -> None:
    from inspect_ai import score as inspect_score

    from pipeline.evaluate.tasks.scorers import verdict

    log = run_task(tmp_path, "ragtruth", says(TEXT), epochs=8, judge=False, **RAGTRUTH)
    assert "consistent" not in figures(log)
    judge = Script(consistent)
    scored = inspect_score(
        log, verdict(), action="append", display="none", model_roles={"grader": judge.model}
    )
    assert len(judge.asked) == 8 and figures(scored)["consistent"] == (1.0, 1, 0)
