"""What a request may change, within the server's bounds."""

import pytest
from pydantic import ValidationError

from reward.config import AuditConfig
from reward.serving.config import AuditOverrides, OverrideBounds, OverrideRefused, apply_overrides

CONFIG = AuditConfig()


def test_what_is_left_out_stays() -> None:
    assert apply_overrides(CONFIG, None, bounds=OverrideBounds()) is CONFIG
    assert apply_overrides(CONFIG, AuditOverrides(), bounds=OverrideBounds()) is CONFIG
    changed = apply_overrides(CONFIG, AuditOverrides(voters=5, seed=0), bounds=OverrideBounds())
    assert changed == CONFIG.model_copy(update={"voters": 5, "seed": 0})


@pytest.mark.parametrize(
    ("overrides", "bounds", "words"),
    [
        ({"voters": 11}, {}, ["overrides.voters: 11", "bound 9", "max_voters"]),
        ({"voters": 1}, {"max_voters": 0}, ["overrides.voters: 1", "bound 0"]),
        ({"max_claims": 512}, {}, ["overrides.max_claims: 512", "bound 128"]),
        ({"voters": 4}, {}, ["overrides.voters: 4 is even", "use 5"]),
        ({"min_valid_voters": 5}, {}, ["overrides.min_valid_voters: 5 exceeds voters: 3"]),
    ],
)
def test_a_refusal_names_field_value_and_bound(overrides, bounds, words) -> None:
    with pytest.raises(OverrideRefused) as caught:
        apply_overrides(CONFIG, AuditOverrides(**overrides), bounds=OverrideBounds(**bounds))
    assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"voters": 0}, {"reward_supported": 1.0}, {"prompts": "x"}, {"seed": -1}])
def test_nothing_else_can_be_overridden(wrong) -> None:
    with pytest.raises(ValidationError):
        AuditOverrides(**wrong)
