"""Demonstrations of the three roles: what they show is what the audit reads, and it is true."""

from collections import Counter

import pytest

from pipeline.settings.warmup import RoleShares, WarmupSettings
from pipeline.warmup.demonstrations import Lesson, demonstrations, quotation
from pipeline.worlds.judge import judge
from pipeline.worlds.wiki.world import WikiWorld
from pipeline.worlds.world import Demonstration
from reward.claims import kinds_for, targets_of
from reward.config import AuditConfig
from reward.judging.coverage import cover
from reward.roles.formats import parse_answers, parse_claims
from reward.roles.prompts import load_prompts
from reward.types import Role

WORLD = WikiWorld()
PROMPTS = load_prompts("full")
AUDIT = AuditConfig(kinds=("number", "name", "date"))
NUMBERS = AuditConfig(kinds=("number",))
LESSON = Lesson(WORLD.part("warmup"), PROMPTS, AUDIT, RoleShares(), 0.1)
SHOWN = list(demonstrations(LESSON, 640, seed=0))


def of(role: Role, shown: list[Demonstration] = SHOWN) -> list[Demonstration]:
    return [one for one in shown if one.role is role]


def test_shares_are_kept_and_equal_seeds_show_the_same() -> None:
    counts = Counter(one.role for one in SHOWN)
    assert len(SHOWN) == 640 and counts[Role.CHECKER] > counts[Role.SOLVER] > counts[Role.PROPOSER] > 50
    assert list(demonstrations(LESSON, 640, seed=0)) == SHOWN
    assert list(demonstrations(LESSON, 640, seed=1)) != SHOWN


def test_the_solver_says_what_is_true_in_several_wordings() -> None:
    for one in of(Role.SOLVER):
        assert judge(WORLD.by_id[one.row_id], one.completion).right, one.completion
    first_words = Counter(" ".join(one.completion.split()[:3]) for one in of(Role.SOLVER))
    assert first_words["The date of"] > 10 and sum(one.completion.endswith(".") for one in of(Role.SOLVER))


def test_the_proposer_asks_about_everything_that_the_audit_checks() -> None:
    for one in of(Role.PROPOSER):
        response = one.messages[-1]["content"].removeprefix("Text:\n")
        kinds = kinds_for(AUDIT, WORLD.by_id[one.row_id].query, response)
        parsed = parse_claims(one.completion, max_claims=8, kinds=kinds)
        assert not parsed.num_malformed and not parsed.too_many, one.completion
        coverage = cover(response, targets_of(response, kinds), parsed.claims)
        assert not coverage.uncovered and not coverage.num_dropped, (response, one.completion)


def test_the_proposer_copies_values_that_are_not_those_of_the_subject() -> None:
    true = {(asked.subject, asked.value) for row in LESSON.rows for asked in row.asked}
    copied = [one.messages[-1]["content"] for one in of(Role.PROPOSER)]
    assert sum(any(str(s) in text and str(v) in text for s, v in true) for text in copied) < len(copied) / 2


def test_the_checker_quotes_verbatim_and_answers_every_question() -> None:
    cannot = 0
    for one in of(Role.CHECKER):
        asked = one.messages[-1]["content"].rpartition("Questions:")[2].strip().splitlines()
        answers = parse_answers(one.completion, len(asked))
        documents = one.messages[-1]["content"]
        for answer in answers:
            assert answer is not None, one.completion
            if answer.value is None:
                cannot += 1
            else:
                quoted = answer.evidence.strip('"')
                assert quoted in documents and answer.value in quoted, one.completion
    assert 0.02 < cannot / len(of(Role.CHECKER)) < 0.3


def test_what_nobody_says_is_asked_of_nobody_in_the_documents() -> None:
    for one in of(Role.CHECKER):
        text, _, asked = one.messages[-1]["content"].rpartition("Questions:")
        for question, line in zip(asked.strip().splitlines(), one.completion.splitlines(), strict=True):
            subjects = [a.subject for row in LESSON.rows for a in row.asked if a.subject in question]
            if "Cannot answer" in line:
                assert subjects and max(subjects, key=len) not in text


def test_kinds_decide_what_is_asked() -> None:
    lesson = Lesson(LESSON.rows, PROMPTS, NUMBERS, RoleShares(solver=0, proposer=1, checker=1), 0)
    shown = list(demonstrations(lesson, 200, seed=0))
    assert not of(Role.SOLVER, shown)
    assert not any("nationality" in one.completion or "directed" in one.completion for one in shown)


def test_all_rows_are_shown_before_one_is_shown_again() -> None:
    lesson = Lesson(LESSON.rows[:50], PROMPTS, AUDIT, RoleShares(solver=1, proposer=0, checker=0), 0)
    prompts = [str(one.messages) for one in demonstrations(lesson, 100, seed=3)]
    assert len(set(prompts[:50])) == 50 and set(prompts[50:]) == set(prompts[:50])


def test_no_row_that_can_be_shown_is_an_error() -> None:
    row = next(row for row in LESSON.rows if {one.kind for one in row.asked} == {"name"})
    lesson = Lesson([row], PROMPTS, NUMBERS, RoleShares(solver=0, proposer=1, checker=1), 0)
    with pytest.raises(ValueError, match="no row can be demonstrated"):
        list(demonstrations(lesson, 4, seed=0))


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (
            "He was Greek. Sam S. Wood (July 10, 1883).",
            "July 10, 1883",
            "Sam S. Wood (July 10, 1883",
        ),
        ('Dus Lakh ("One Million") is a 1966 film.', "1966", "is a 1966"),
        ("x " * 80 + "in 1966.", "1966", ("x " * 43 + "in 1966")),
    ],
)
def test_quotations_begin_with_the_sentence_and_are_bounded(text: str, value: str, expected: str) -> None:
    assert quotation(text, value) == expected


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"batch_size": 6, "micro_batch_size": 4}, "no multiple of micro_batch_size"),
        ({"num_demonstrations": 4}, "less than one batch"),
        ({"shares": {"solver": 0, "proposer": 0, "checker": 0}}, "all shares are 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        WarmupSettings.model_validate(changes)
