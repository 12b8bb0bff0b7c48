"""Decisions by a real desk over a registry in memory: what stands, what is asked of whom, what failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from orchestration.promotion.policy import POLICY_FILE, GatePolicy, WebhookPolicy
from orchestration.registry import notify
from orchestration.registry.decisions import LostRaceError
from orchestration.registry.desk import approval_command
from orchestration.registry.history import DELIVERIES_FILE, HISTORY_FILE
from orchestration.registry.log import Effect
from orchestration.registry.server import told
from orchestration.retrain import decision
from orchestration.retrain.stages import Stage, StageRequest
from orchestration.retrain.workshop import Workshop
from tests.memory_registry import AWAY, MemoryRegistry, desk_over, promote
from tests.retrainings import rig
from tests.test_promotion_log import KEY


@pytest.mark.parametrize("evaluated", [None, "3"], ids=["nobody", "another"])
def test_an_evaluation_of_another_champion_refuses_nobody(
    evaluated: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = MemoryRegistry()
    desk = desk_over(registry, tmp_path / "history")
    promote(desk, "4")
    monkeypatch.setattr(decision, "open_desk", lambda *_given, **_named: desk)
    request = StageRequest(
        job=rig(tmp_path).place.plan.job.model_copy(update={"work": tmp_path / "work"}),
        stage=Stage.PROMOTE,
        key="k" * 64,
        inputs={"version": "1"},
        materials={"champion": evaluated},
        attempt=1,
        command_attempt=1,
    )
    with pytest.raises(LostRaceError, match="its evaluation is not of this one"):
        decision.promote(Workshop(request))
    assert len(registry.log) == 1


@pytest.fixture
def crowned(tmp_path: Path) -> MemoryRegistry:
    """Version 2 is champion, version 1 was."""
    registry = MemoryRegistry()
    for number in "12":
        promote(desk_over(registry, tmp_path), number)
    return registry


@pytest.mark.parametrize("failing", ["alias", "history", "answer"])
def test_a_decision_that_stands_is_told_as_made_whatever_fails_after_it(
    failing: str, crowned: MemoryRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "shop" / HISTORY_FILE

    def fail() -> None:
        if failing == "alias":
            crowned.failures["set_alias"] = [AWAY]
        if failing == "history":
            file.rename(tmp_path / "kept")
            file.mkdir()
        if failing == "answer":
            raise AWAY

    crowned.after_append = fail
    made = desk_over(crowned, tmp_path).rollback(reason="complaints")
    assert (made.entry.version, made.entry.champion) == ("1", "2")
    assert "the decision is in the log" in caplog.text
    if file.is_dir():
        file.rmdir()
    state = desk_over(crowned, tmp_path).fix()  # of the next command, whichever it is
    assert (state.champion, crowned.alias) == ("1", {"champion": "1", "previous": "2"})


def test_a_decision_that_is_not_in_the_log_fails_with_what_the_server_said(
    crowned: MemoryRegistry, tmp_path: Path
) -> None:
    crowned.failures = {"append": [AWAY]}
    with pytest.raises(ValueError, match="does not answer"):
        desk_over(crowned, tmp_path).rollback()
    assert len(crowned.log) == 2


def test_a_decision_of_which_nothing_is_known_sends_to_march_models_first(
    crowned: MemoryRegistry, tmp_path: Path
) -> None:
    from mlflow.exceptions import MlflowException

    def lose_all() -> None:
        crowned.failures["entries"] = [AWAY]
        with told("http://registry"):
            raise MlflowException("reset")

    crowned.after_append = lose_all
    with pytest.raises(
        ValueError, match="reset; look at `march registered` first; unless it was done, the same"
    ):
        desk_over(crowned, tmp_path).rollback()


def test_a_notification_asks_the_registry_nothing_and_a_full_disk_does_not_undo_it(
    crowned: MemoryRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk, bodies = desk_over(crowned, tmp_path), list[dict[str, JsonValue]]()

    def deliver(webhook: WebhookPolicy, body: dict[str, JsonValue]) -> notify.Delivery:
        bodies.append(body)
        return notify.Delivery(id="1", url=webhook.url, delivered=True, attempts=1)

    monkeypatch.setattr(notify, "notify", deliver)
    made = desk.rollback()
    crowned.failures = {"entries": [AWAY]}
    (tmp_path / "shop" / DELIVERIES_FILE).mkdir()
    notify.tell(desk, GatePolicy(webhooks=(WebhookPolicy(url="http://hook"),)), made)
    assert [one["champion"] for one in bodies] == ["1"]
    assert DELIVERIES_FILE in capsys.readouterr().err


@pytest.mark.parametrize("key", [None, KEY], ids=["unsigned", "signed"])
def test_a_request_says_itself_that_another_must_approve_it(key: str | None, tmp_path: Path) -> None:
    registry = MemoryRegistry()
    promote(desk_over(registry, tmp_path, key=key), "1", required=True, by_another=True)
    with pytest.raises(ValueError, match="ann asked for version 1; another one must approve it"):
        desk_over(registry, tmp_path, key=key).approve("1")  # by the default policy
    made = desk_over(registry, tmp_path, by="bob", key=key).approve("1")
    assert (made.effect, made.entry.champion) == (Effect.IN_EFFECT, None)


def test_a_request_that_asks_no_other_is_approved_by_anybody_unless_the_approvers_policy_forbids(
    tmp_path: Path,
) -> None:
    registry = MemoryRegistry()
    promote(desk_over(registry, tmp_path), "1", required=True)
    with pytest.raises(ValueError, match="another one must approve it"):
        desk_over(registry, tmp_path).approve("1", by_another=True)
    assert desk_over(registry, tmp_path).approve("1").effect is Effect.IN_EFFECT


@pytest.mark.parametrize("policy", [None, POLICY_FILE, Path("my rules.yaml")])
def test_the_command_that_approves_names_the_policy_unless_it_is_the_default(policy: Path | None) -> None:
    own = " --policy 'my rules.yaml'" if policy and policy != POLICY_FILE else ""
    assert approval_command("shop", "4", policy) == f"march approve shop 4{own}"
