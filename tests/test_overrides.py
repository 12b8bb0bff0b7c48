"""What a request may change, within the server's bounds."""

import pytest
from pydantic import ValidationError

from reward.config import AuditConfig
from reward.serving.config import AuditOverrides, InvalidRequest, OverrideBounds, apply_overrides

CONFIG = AuditConfig()


def test_what_is_left_out_stays() -> None:
    assert apply_overrides(CONFIG, None, bounds=OverrideBounds()) is CONFIG
    assert apply_overrides(CONFIG, AuditOverrides(), bounds=OverrideBounds()) is CONFIG
    changed = apply_overrides(CONFIG, AuditOverrides(voters=5, seed=0), bounds=OverrideBounds())
    assert changed == CONFIG.model_copy(update={"voters": 5, "seed": 0})


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"voters": 4}, ["overrides.voters: 4 is even", "use 5"]),
        ({"min_valid_voters": 5}, ["overrides.min_valid_voters: 5 exceeds voters: 3"]),
        ({"voters": 1}, ["overrides.voters: 1 is weaker than this server's 3", "may_weaken"]),
        ({"min_valid_voters": 1}, ["overrides.min_valid_voters: 1 is weaker than this server's 2"]),
        ({"voters": 5, "min_valid_voters": 2}, ["min_valid_voters: 2 is weaker than this server's 3"]),
        ({"early_stop": True}, ["overrides.early_stop: True is weaker than this server's False"]),
        ({"min_claims": 1}, ["overrides.min_claims: 1 is weaker than this server's 3"]),
        ({"max_claims": 65}, ["overrides.max_claims: 65 is weaker than this server's 64"]),
        ({"relative_tolerance": 0.1}, ["overrides.relative_tolerance: 0.1 is weaker"]),
        (
            {"uncovered": "unscored"},
            ["overrides.uncovered: unscored is weaker than this server's refute"],
        ),
        ({"kinds": ["spells"]}, ["overrides.kinds"]),
    ],
)
def test_a_refusal_names_field_value_and_bound(overrides, words) -> None:
    with pytest.raises(InvalidRequest) as caught:
        apply_overrides(CONFIG, AuditOverrides(**overrides), bounds=OverrideBounds())
    assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value)


STRICT = AuditConfig(verbatim_evidence=True, uncovered="ignore", min_claims=2, relative_tolerance=0.1)


@pytest.mark.parametrize(
    "overrides",
    [
        {"voters": 5},
        {"voters": 5, "min_valid_voters": 4},
        {"early_stop": False},
        {"verbatim_evidence": True},
        {"uncovered": "refute"},
        {"uncovered": "ignore"},
        {"min_claims": 5},
        {"relative_tolerance": 0.0},
        {"max_claims": 3, "seed": 1},
    ],
)
def test_a_request_may_ask_for_a_stricter_audit(overrides) -> None:
    changed = apply_overrides(STRICT, AuditOverrides(**overrides), bounds=OverrideBounds())
    assert all(getattr(changed, name) == value for name, value in overrides.items())


@pytest.mark.parametrize(
    ("name", "value"), [("verbatim_evidence", False), ("voters", 1), ("relative_tolerance", 0.5)]
)
def test_a_weaker_one_only_where_the_server_allows_it(name, value) -> None:
    overrides = AuditOverrides(**{name: value})
    with pytest.raises(InvalidRequest, match=rf"overrides\.{name}"):
        apply_overrides(STRICT, overrides, bounds=OverrideBounds())
    allowed = apply_overrides(STRICT, overrides, bounds=OverrideBounds(may_weaken=(name,)))
    assert getattr(allowed, name) == value


def test_with_more_voters_as_large_a_share_of_them_must_be_readable() -> None:
    own = AuditConfig(voters=3, min_valid_voters=3)
    changed = apply_overrides(own, AuditOverrides(voters=9), bounds=OverrideBounds())
    assert (changed.voters, changed.num_valid_voters_needed) == (9, 9)
    with pytest.raises(InvalidRequest, match=r"min_valid_voters: 5 is weaker than this server's 9"):
        apply_overrides(own, AuditOverrides(voters=9, min_valid_voters=5), bounds=OverrideBounds())


class KindsConfig(AuditConfig):
    kinds: tuple[str, ...] = ("number", "name")


def test_kinds_of_claims_may_be_added_and_not_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward.serving.config.AuditConfig", KindsConfig)
    more = AuditOverrides(kinds=("name", "date", "number"))
    assert apply_overrides(KindsConfig(), more, bounds=OverrideBounds()).kinds == more.kinds
    with pytest.raises(InvalidRequest, match=r"overrides\.kinds: number is weaker than .* number, name"):
        apply_overrides(KindsConfig(), AuditOverrides(kinds=("number",)), bounds=OverrideBounds())


@pytest.mark.parametrize(
    "wrong",
    [
        {"voters": 0},
        {"voters": 11},
        {"max_claims": 129},
        {"reward_supported": 1.0},
        {"prompts": "x"},
        {"seed": -1},
    ],
)
def test_nothing_else_can_be_overridden(wrong) -> None:
    with pytest.raises(ValidationError):
        AuditOverrides(**wrong)
