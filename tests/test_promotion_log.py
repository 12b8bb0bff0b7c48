"""The log that decides who is champion, replayed: one of two wins, signatures, approval, the way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.registry.log import Action, Effect, Entry, State, replay, signed

KEY = "k" * 32


def entry(action: str, parent: int, version: str = "1", **more: Any) -> Entry:
    given = {"id": f"{action}{parent}{version}", "action": action, "parent": parent, "version": version}
    return Entry.model_validate({"by": "a", "at": ""} | given | more)


def state(*entries: Entry, key: str | None = None) -> State:
    return replay("m", enumerate(entries, start=1), key=key)


def effects(found: State) -> list[str]:
    return [one.effect.value for one in found.history]


def test_of_two_promotions_with_one_parent_the_first_wins_and_the_other_is_told() -> None:
    found = state(entry("promote", 0, "1"), entry("promote", 1, "2"), entry("promote", 1, "3"))
    assert (found.champion, found.previous, found.head) == ("2", "1", 2)
    assert effects(found) == ["in effect", "in effect", "lost"]
    assert (found.history[2].why, found.history[2].after) == ("entry 2 was first", 2)


def test_a_rollback_and_a_promotion_race_as_well() -> None:
    begun = (entry("promote", 0, "1"), entry("promote", 1, "2"))
    found = state(*begun, entry("rollback", 2, "1"), entry("promote", 2, "3"))
    assert (found.champion, found.previous) == ("1", "2") and effects(found)[-1] == "lost"
    back = state(*begun, entry("rollback", 2, "1"), entry("rollback", 3, "2"))
    assert (back.champion, back.previous) == ("2", "1")


def test_a_rollback_needs_a_previous_champion() -> None:
    assert effects(state(entry("rollback", 0))) == ["void"]
    assert effects(state(entry("promote", 0), entry("promote", 1))) == ["in effect", "void"]


def test_a_refusal_is_noted_and_makes_nobody_lose() -> None:
    found = state(entry("refuse", 0, "1"), entry("promote", 0, "2"))
    assert effects(found) == ["noted", "in effect"] and found.champion == "2"


def test_a_request_waits_for_approval_or_rejection() -> None:
    asked = entry("request", 0, "1")
    assert dict(state(asked).waiting) == {1: asked} and state(asked).champion is None
    approved = state(asked, entry("approve", 1, "1", request=1))
    assert (approved.champion, dict(approved.waiting)) == ("1", {})
    rejected = state(asked, entry("reject", 1, "1", request=1))
    assert (rejected.champion, dict(rejected.waiting)) == (None, {})
    twice = state(asked, entry("reject", 1, "1", request=1), entry("approve", 2, "1", request=1))
    assert effects(twice)[-1] == "void"


def test_an_approval_is_void_once_the_champion_is_another() -> None:
    asked = entry("request", 0, "1", champion=None)
    found = state(asked, entry("promote", 1, "2"), entry("approve", 2, "1", request=1))
    assert found.champion == "2" and "champion has changed" in found.history[-1].why


def test_an_append_that_was_sent_twice_is_made_once() -> None:
    once = entry("promote", 0)
    found = state(once, once)
    made = found.of(once.id)
    assert made is not None and (made.number, made.effect) == (1, Effect.IN_EFFECT)


def test_from_the_first_signed_entry_on_others_are_void() -> None:
    first, second = entry("promote", 0, "1"), signed("m", entry("promote", 1, "2"), KEY)
    forged = entry("promote", 2, "3")
    assert effects(state(first, second, forged, key=KEY)) == ["in effect", "in effect", "void"]
    assert effects(state(first, second, forged)) == ["in effect", "in effect", "void"]


def test_a_signature_from_before_requests_could_ask_another_is_right() -> None:
    kept = entry("request", 0, mac="fc509638c3d63db941755f26733bda35cc0537f25e63ef2196a240068bcf4896")
    assert effects(state(kept, key=KEY)) == ["in effect"]
    asks = signed("m", entry("request", 0, by_another=True), KEY)
    assert effects(state(Entry.model_validate_json(asks.model_dump_json()), key=KEY)) == ["in effect"]
    assert effects(state(asks.model_copy(update={"by_another": False}), key=KEY)) == ["void"]


@pytest.mark.parametrize("change", [{"version": "9"}, {"parent": 0}, {"by": "b"}, {"action": "refuse"}])
def test_a_changed_entry_is_void(change: dict[str, Any]) -> None:
    right = signed("m", entry("promote", 1, "2"), KEY)
    first = signed("m", entry("promote", 0, "1"), KEY)
    changed = Entry.model_validate(right.model_dump() | change)
    found = state(first, changed, key=KEY)
    assert (found.champion, found.history[1].why) == ("1", "its signature is wrong")
    assert replay("other", [(1, first)], key=KEY).champion is None, "of another model"


ENTRIES = st.lists(
    st.tuples(st.sampled_from(list(Action)), st.integers(0, 6), st.sampled_from("123"), st.integers(1, 6)),
    max_size=8,
)


@given(ENTRIES)
def test_no_log_has_two_winners_of_one_parent(made: list[tuple[Action, int, str, int]]) -> None:
    found = state(*(entry(a.value, parent, version, request=number) for a, parent, version, number in made))
    in_effect = [one for one in found.history if one.effect is Effect.IN_EFFECT]
    parents = [one.entry.parent for one in in_effect]
    assert len(set(parents)) == len(parents)
    assert parents == [0, *(one.number for one in in_effect)][: len(parents)]
    assert found.champion is None or found.champion != found.previous
