"""The bench of audits: the counts by hand, and that an answer which claims nothing is in none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import auditors, measure
from bench.auditors import Audited
from pipeline.demo.evaluate import rows_of
from pipeline.demo.evaluation import Evaluation, EvaluationSetup, JudgedAnswer, summarise
from reward.config import AuditConfig
from reward.types import Outcome

SUPPORTED, REFUTED, UNSCORED = Outcome.SUPPORTED, Outcome.REFUTED, Outcome.UNSCORED


def test_shares_are_those_counted_by_hand() -> None:
    found = auditors.figures(
        [
            Audited(True, by_model=REFUTED, by_lookup=SUPPORTED),
            Audited(True, by_model=UNSCORED, by_lookup=SUPPORTED),
            Audited(True, by_model=SUPPORTED, by_lookup=REFUTED),
            Audited(True, by_model=REFUTED, by_lookup=REFUTED),
            Audited(False, by_model=REFUTED, by_lookup=SUPPORTED),
        ]
    )
    assert {name: (one["value"], one["num_rows"]) for name, one in found.items()} == {
        "wrong_accepted_by_model": (0.25, 4),
        "wrong_accepted_by_lookup": (0.5, 4),
        "right_accepted_by_model": (0.0, 1),
        "right_accepted_by_lookup": (1.0, 1),
        "caught": (0.5, 2),  # an audit that failed has caught nothing
    }


def test_a_measurements_answers_are_looked_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = EvaluationSetup(model="m", num_rows=4, audit=AuditConfig(kinds=("number",)))
    rows = rows_of(setup)
    says = [row.query.documents[0].text for row in rows[:2]] + ["It raised 1234567 euros.", "Nobody knows."]
    answers = [
        JudgedAnswer(
            query_id=row.query.id,
            response=response,
            outcome=SUPPORTED,
            reward=0.0,
            faithful=place == 0,
            num_faithful=int(place == 0),
            false_accept=place > 0,
            false_reject=False,
            coverage=1.0,
            truncated=False,
            num_mentions=1,
            num_claims=1,
            num_questions=1,
            num_votes=1,
            num_votes_right=1,
            num_consensus_right=1,
        )
        for place, (row, response) in enumerate(zip(rows, says, strict=True))
    ]
    file = tmp_path / "evaluation_before.json"
    measured: Evaluation = summarise(answers, (), setup=setup, prompt_digest="0")
    file.write_text(measured.model_dump_json())
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    auditors.run([file])
    found = json.loads((tmp_path / "auditors.json").read_text())["evaluation_before"]
    shares = {name: (one["value"], one["num_rows"]) for name, one in found.items() if "lookup" in name}
    assert shares == {"wrong_accepted_by_lookup": (0.5, 2), "right_accepted_by_lookup": (1.0, 1)}
