"""The bench of credits pays each turn what the trainer pays it; its rollouts are in `tests/data/credit`.

Three voters on each answer, and what the picnic raised is 466:

| query | answer | votes | verdict |
|---|---|---|---|
| q1 | 466 | 466, 466, 600 | SUPPORTED |
| q1 | 500 | 466, 466, 500 | REFUTED, and the consensus is right |
| q2 | 500 | 500, 500, cannot answer | SUPPORTED, and wrong |
| q2 | 700 | 700, unreadable, unreadable | UNSCORED |
| q3 | 500 | 500, 500, 500 | of a query that is known to be unanswerable: not counted |
| q4 | 466 and 9 | 466, 466, 466 | two claims: not counted |
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bench import credit, measure
from pipeline.record.rollout_record import turn_reward
from pipeline.settings.ppo import CheckerCredit
from reward.auditor import audit
from reward.config import AuditConfig
from reward.types import Document, RagQuery, Role, Sample, SampleGroup

RUN = Path(__file__).parent / "data" / "credit"
ANSWER, VOTE, UNDISPUTED = CheckerCredit.ANSWER, CheckerCredit.VOTE, CheckerCredit.UNDISPUTED_VOTE


@pytest.mark.parametrize(
    ("name", "paid_right", "paid_wrong", "refuted_right", "refuted_wrong", "not_trained"),
    [
        (ANSWER, 2, 4, 2, 1, 1),
        (VOTE, 2, 3, 2, 2, 1),
        (UNDISPUTED, 2, 3, 0, 2, 3),
    ],
)
def test_each_credit_pays_as_counted_by_hand(
    name: CheckerCredit,
    paid_right: int,
    paid_wrong: int,
    refuted_right: int,
    refuted_wrong: int,
    not_trained: int,
) -> None:
    found = credit.figures(list(credit.turns_of(RUN)), name)
    del found["correlation"]
    assert found == {
        "paid_right": paid_right,
        "paid_wrong": paid_wrong,
        "refuted_right": refuted_right,
        "refuted_wrong": refuted_wrong,
        "not_trained": not_trained,
    }


def test_an_unscored_answer_pays_nobody() -> None:
    last = list(credit.turns_of(RUN))[-1]
    assert last.paid == dict.fromkeys(CheckerCredit) and not last.is_right


class Voters:
    """Proposes the answer's number; the voters say 466, 466 and 500."""

    model = "voters"

    async def sample(self, messages, *, n, settings, pattern=None) -> SampleGroup:
        says = ["- Question: How much did it raise? [Answer: 500]"]
        says = says if n == 1 else [f"1. Evidence: x [Answer: {one}]" for one in (466, 466, 500)]
        samples = tuple(Sample(text=text, finish_reason="stop", token_ids=(1,)) for text in says)
        return SampleGroup(samples=samples, prompt_token_ids=(1,))


def test_a_turn_is_paid_what_the_trainer_pays_it() -> None:
    query = RagQuery(id="q1", query="How much?", documents=(Document(id="d", text="It raised 466 euros."),))
    config = AuditConfig(kinds=("number",))
    result = asyncio.run(audit(query, "It raised 500 euros.", sampler=Voters(), config=config))  # type: ignore[arg-type]
    trained = [turn for turn in result.trajectories if turn.role is Role.CHECKER]
    second = list(credit.turns_of(RUN))[3:6]  # the same votes on the same answer
    for name in CheckerCredit:
        assert [turn.paid[name] for turn in second] == [
            turn_reward(turn, result.verdict, name) for turn in trained
        ]
    assert [turn.paid[UNDISPUTED] for turn in second] == [None, None, 0.0]


def test_the_result_names_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    credit.run([RUN])
    result = json.loads((tmp_path / "credit.json").read_text())
    assert result["command"] == "python -m bench credit --data credit" and result["votes"] == 10
    assert result["credits"].keys() == {"answer", "vote", "undisputed_vote"}
    (tmp_path / "run.json").write_text((RUN / "run.json").read_text())
    with pytest.raises(ValueError, match="no turns with a known truth"):
        credit.run([tmp_path])
