"""Which optional checks `march audit` turns on, and what it says of that."""

from pathlib import Path

import pytest

from orchestration.settings.audit import audit_job
from orchestration.settings.serve import server_config
from reward.config import CheckName
from reward.offline.run import AuditJob
from tests.audit_jobs import RAGTRUTH

BOTH = (CheckName.OPENING_HOURS, CheckName.RATINGS)
ALL = tuple(CheckName)
SAID = (
    "march: RAGTruth's rows, so checks=[opening_hours, ratings, yes_no_fields] is set; "
    "--set checks=[] leaves them out\n"
)


def job(source: Path, *assignments: str, model: str | None = None) -> AuditJob:
    return audit_job(
        source, None, row_format=None, model=model, model_name=None, named={}, assignments=assignments
    )


@pytest.mark.parametrize(
    ("source", "assignments", "checks", "said"),
    [
        (RAGTRUTH, (), ALL, SAID),
        (RAGTRUTH / "response.jsonl", (), ALL, SAID),
        (RAGTRUTH, ("checks=[]",), (), ""),
        (RAGTRUTH, ("checks=[ratings]",), (CheckName.RATINGS,), ""),
        (Path("rows.jsonl"), (), (), ""),
        (Path("rows.jsonl"), ("checks=[opening_hours, ratings]",), BOTH, ""),
    ],
)
def test_ragtruth_has_its_checks_and_other_rows_those_that_are_named(
    source: Path,
    assignments: tuple[str, ...],
    checks: tuple[CheckName, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert job(source, *assignments).audit.checks == checks
    assert capsys.readouterr().err == said


def test_a_model_has_no_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert job(RAGTRUTH, "checks=[ratings]", model="some/model").audit.checks == ()
    assert capsys.readouterr().err == "march: --set checks has no effect with --model\n"


def test_a_policy_on_uncovered_numbers_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"uncovered\n.*should be 'refute', 'unscored' or 'ignore'"):
        job(Path("rows.jsonl"), "uncovered=template", model="some/model")


def test_the_server_takes_kinds_with_commas_between_them() -> None:
    config = server_config(None, lexical=True, options={"kinds": "number, name"})
    assert config.audit.kinds == ("number", "name")
    with pytest.raises(ValueError, match=r"kinds\.0"):
        server_config(None, lexical=True, options={"kinds": "colour"})
