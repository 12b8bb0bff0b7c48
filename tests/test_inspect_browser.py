"""The page of a run in a real browser: addresses of filters filter, and an address opens its claim."""

from pathlib import Path

import pytest

from orchestration.inspect.page import render_run
from orchestration.inspect.run import open_run, read_answers, read_entries, totals
from reward.types import Outcome
from tests.browser import BROWSER, MISSING, articles, opened_page, panel
from tests.rollout_runs import EVIL, trained_answer, write_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason=MISSING)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    steps = [
        [trained_answer(Outcome.REFUTED, query_id="Kabul", faithful=False)],
        [
            trained_answer(Outcome.SUPPORTED, query_id=EVIL, faithful=False),
            trained_answer(Outcome.UNSCORED, query_id="lost", faithful=True),
        ],
    ]
    run = open_run(write_run(folder / "run", steps))
    entries = read_entries(run)
    path = folder / "run.html"
    path.write_text(render_run(run, read_answers(run, entries), totals(entries)), encoding="utf-8")
    return path


FIRST, SECOND, THIRD = "row-1-1", "row-2-1", "row-2-2"


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ("step=2", [SECOND, THIRD]),
        ("step=2&outcome=UNSCORED", [THIRD]),
        ("text=KABUL", [FIRST]),  # the documents' text is not searched
        ("text=lost", [THIRD]),
        ("truth=wrong, but accepted", [SECOND]),
        ("state=contradicted&outcome=REFUTED", [FIRST]),
        ("text=nothing like it", []),
    ],
)
def test_an_address_of_filters_filters(page: Path, filters: str, left: list[str]) -> None:
    html = opened_page(page, f"?{filters.replace(' ', '%20')}")
    assert [name for name, is_shown in articles(html) if is_shown] == left
    assert f"{len(left)} of 3 answers" in html


def test_a_claim_of_a_step_opens_with_its_votes_and_evidence(page: Path) -> None:
    html = opened_page(page, f"{SECOND}/1")
    assert "How many, 1?" in panel(html) and "2 of 3" in panel(html)
    assert "raised 466 euros</mark>" in panel(html)
    assert "<img" not in html
