"""Decisions over a real chain with MLflow's side in memory: who decides, who loses, what MLflow shows."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.registry.chain import Action, Made
from orchestration.registry.decisions import LostRaceError
from orchestration.registry.open import approval_command
from orchestration.registry.store import DECISION_TAG, REPORT_TAG
from orchestration.registry.view import differences
from orchestration.retrain import decision
from orchestration.retrain.attempt import Attempt
from orchestration.retrain.records import ParentWeights, Stage, StageRequest
from pipeline.artifacts.store import ArtifactStore
from tests.memory_registry import AWAY, MemoryRegistry, decisions_over, promote, version
from tests.retrainings import rig


@pytest.mark.parametrize("evaluated", [None, "3"], ids=["nobody", "another"])
def test_an_evaluation_of_another_champion_refuses_nobody(
    evaluated: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions = decisions_over(MemoryRegistry(), tmp_path / "store")
    promote(decisions, "4")
    monkeypatch.setattr(decision, "open_decisions", lambda *_given, **_named: decisions)
    request = StageRequest(
        job=rig(tmp_path).place.plan.job.model_copy(update={"work": tmp_path / "work"}),
        stage=Stage.PROMOTE,
        key="k" * 64,
        inputs={"version": "1"},
        champion=ParentWeights(sha256="e" * 64, uri="", version=evaluated) if evaluated else None,
        attempt=1,
        command_attempt=1,
    )
    with pytest.raises(LostRaceError, match="its evaluation is not of this one"):
        decision.promote(Attempt(request))
    assert len(list(decisions.chain.history())) == 1


@pytest.fixture
def registry(tmp_path: Path) -> MemoryRegistry:
    """Version 2 is champion, version 1 was."""
    made = MemoryRegistry()
    for number in "12":
        promote(decisions_over(made, tmp_path), number)
    assert made.alias == {"champion": "2", "previous": "1"}
    return made


def test_no_decision_before_the_requests_that_wait_is_read(
    registry: MemoryRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`march status` read all decisions of a model that had a request: each is a request to the bucket."""
    decisions = decisions_over(registry, tmp_path)
    first = decisions.chain.last()
    asked = promote(decisions, "3", required=True).decision
    read, manifest = list[str](), ArtifactStore.manifest
    monkeypatch.setattr(
        ArtifactStore, "manifest", lambda store, one: read.append(one) or manifest(store, one)
    )
    assert decisions.waiting() == [asked]
    assert first is not None and first.digest not in read


def test_two_promotions_at_once_have_one_winner_and_the_other_gets_one_line(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    start, lines = threading.Barrier(2), list[str]()

    def decide(number: str) -> Made | None:
        decisions = decisions_over(registry, tmp_path, by=f"racer {number}")
        seen = decisions.state()

        start.wait()
        try:
            return promote(decisions, number, seen=seen)
        except LostRaceError as error:
            lines.append(str(error))
            return None

    with ThreadPoolExecutor(2) as pool:
        made = [one for one in pool.map(decide, "34") if one is not None]
    (won,) = made
    (line,) = lines
    winner = won.decision.about.version
    assert line == (
        f"shop: racer {winner} was first (promote of version {winner}); nothing was changed; "
        "run the gates again"
    )
    decisions_over(registry, tmp_path).rebuild()
    assert registry.alias == {"champion": winner, "previous": "2"}


def test_a_refusal_loses_to_no_decision_and_none_loses_to_it(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    decisions = decisions_over(registry, tmp_path)
    seen = decisions.state()
    promote(decisions, "3", "failed")
    last = decisions.chain.last()
    assert decisions.state() == seen and last is not None and last.decision.action is Action.REFUSE
    promote(decisions, "4")
    assert registry.alias["champion"] == "4"


def test_a_decision_is_made_though_mlflow_cannot_show_it(
    registry: MemoryRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry.failures = []
    decisions = decisions_over(registry, tmp_path)
    decisions.rebuild()
    registry.failures = [AWAY]
    made = decisions.rollback(reason="complaints")
    assert (made.decision.about.version, made.decision.was) == ("1", "2")
    assert "is decided; `march model list --rebuild` shows it" in caplog.text
    assert registry.alias["champion"] == "2"
    decisions_over(registry, tmp_path).rebuild()  # as the next command does, whichever it is
    assert registry.alias == {"champion": "1", "previous": "2"}


def test_a_decision_reports_no_alias_as_edited_that_it_moves_itself(
    registry: MemoryRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Fixes the log of a stage, which shows INFO, too: four lines after each promotion, as after an edit."""
    caplog.set_level("INFO")
    promote(decisions_over(registry, tmp_path), "3")
    assert registry.alias["champion"] == "3" and not caplog.text


def test_there_is_no_way_back_without_a_model_or_a_champion_before(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shop: no such model; there are: shop"):
        decisions_over(MemoryRegistry(numbers=""), tmp_path).rollback()
    with pytest.raises(ValueError, match="shop: has no previous champion"):
        decisions_over(MemoryRegistry(), tmp_path).rollback()


def test_what_is_edited_or_deleted_in_mlflow_changes_nothing_and_is_reported(
    registry: MemoryRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    decisions = decisions_over(registry, tmp_path)
    registry.alias["champion"] = "3"
    registry.tags["2", REPORT_TAG] = "{}"
    assert decisions.version("@champion").version == "2"
    said = [one.text for one in differences(decisions.registry, decisions.chain, whole=True)]
    assert said == [
        "MLflow's alias champion is version 3, by the decisions it is 2",
        f"MLflow's tag {REPORT_TAG} of version 2 is not that of the decision",
    ]
    registry.place = "s3://elsewhere"
    assert "version 2: MLflow's weights are at s3://elsewhere/2, decided was s3://b/2" in [
        one.text for one in differences(decisions.registry, decisions.chain, whole=True)
    ]
    registry.place = "s3://b"
    registry.numbers = "134"  # version 2 is deleted
    registry.alias.clear()
    champion = decisions.version("@champion")
    assert (champion.version, champion.sha256, champion.uri) == ("2", "2" * 64, "s3://b/2")
    assert (
        "MLflow has no version 2 with the weights 222222222222 any more; they are at s3://b/2" in caplog.text
    )
    assert decisions.rebuild().champion is not None and registry.alias == {"previous": "1"}
    with pytest.raises(ValueError, match="no such version"):
        decisions.version("2")


def test_a_champion_that_mlflow_lost_is_reported_once_until_it_is_there_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A served model's follower looks every half minute, and warned each time."""
    registry = MemoryRegistry()
    promote(decisions_over(registry, tmp_path), "4")

    def num_reports() -> int:
        assert decisions_over(registry, tmp_path).version("@champion").version == "4"
        return caplog.text.count("MLflow has no version 4")

    registry.numbers = "123"
    assert [num_reports(), num_reports()] == [1, 1]
    registry.numbers = "1234"
    assert num_reports() == 1
    registry.numbers = "123"
    assert [num_reports(), num_reports()] == [2, 2]


def test_a_view_that_is_built_again_is_the_same_and_then_nothing_is_written(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    promote(decisions_over(registry, tmp_path), "3", "failed")
    alias, tags = dict(registry.alias), dict(registry.tags)
    assert {version for version, tag in tags if tag == DECISION_TAG} == {"1", "2", "3"}
    registry.alias, registry.tags = {"candidate": "2"}, {}
    decisions_over(registry, tmp_path).rebuild(whole=True)
    assert (registry.alias, registry.tags) == (alias, tags)
    registry.failures = [AWAY]
    decisions_over(registry, tmp_path).rebuild(whole=True)
    assert registry.failures, "nothing was written"


def test_weights_that_are_registered_again_are_the_champion_by_their_content(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    decisions = decisions_over(registry, tmp_path)
    versions = registry.versions("shop")
    again = [type(versions[1])(**{**vars(versions[1]), "version": "5", "aliases": ()})]
    registry.versions = lambda _model: [versions[0], *again]  # type: ignore[method-assign]
    assert decisions.version("@champion").version == "5"
    decisions.rebuild()
    assert registry.alias["champion"] == "5"


def test_another_store_is_one_line_with_the_fix(registry: MemoryRegistry, tmp_path: Path) -> None:
    other = decisions_over(registry, tmp_path / "other")
    with pytest.raises(ValueError, match="other has no decisions about shop, but MLflow names file:"):
        promote(other, "3")


def test_a_request_says_itself_that_another_must_approve_it(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    promote(decisions_over(registry, tmp_path), "1", required=True, by_another=True)
    with pytest.raises(ValueError, match="ann asked for version 1; another one must approve it"):
        decisions_over(registry, tmp_path).approve("1")  # by the default policy
    made = decisions_over(registry, tmp_path, by="bob").approve("1").decision
    assert (made.by, made.was, registry.alias["champion"]) == ("bob", None, "1")
    assert made.report is not None, "an approval names the gates of its request"


def test_a_request_that_asks_no_other_is_approved_by_anybody(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    promote(decisions_over(registry, tmp_path), "1", required=True)
    assert decisions_over(registry, tmp_path).approve("1").decision.action is Action.APPROVE


def test_an_approval_after_another_champion_and_one_that_was_rejected_are_refused(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    decisions = decisions_over(registry, tmp_path)
    promote(decisions, "3", required=True)
    decisions.rollback()
    with pytest.raises(ValueError, match=r"another champion ends all requests\); waiting: none"):
        decisions.approve("3")
    promote(decisions, "3", required=True)
    decisions.reject("3", reason="too late")
    with pytest.raises(ValueError, match=r"does not wait for approval .*; waiting: none"):
        decisions.approve("3")


def test_a_version_is_asked_for_once_and_approved_with_the_weights_that_were_asked_for(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    decisions = decisions_over(registry, tmp_path)
    for weights in "ef":
        promote(decisions, replace(version("3"), sha256=weights * 64), required=True)
    assert [one.about.sha256[0] for one in decisions.waiting()] == ["f"]
    with pytest.raises(ValueError, match="weights 333333333333 in MLflow, asked for were ffffffffffff"):
        decisions.approve("3")
    assert [one.about.version for one in decisions.waiting()] == ["3"]


def test_the_command_that_approves_names_what_is_not_the_default() -> None:
    assert approval_command("shop", "4") == "march model approve shop 4"
    assert approval_command("shop", "4", registry="sqlite:///a b.db", store="s3://b") == (
        "march model approve shop 4 --mlflow 'sqlite:///a b.db' --store s3://b"
    )
