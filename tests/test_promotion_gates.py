"""The gates: who is promoted, who is refused and by which gate, and that nothing passes in doubt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.promotion import gates
from orchestration.promotion.answers import is_refusal, num_chars, refusal_rate
from orchestration.promotion.comparable import judge_gate, scored_gate
from orchestration.promotion.gates import run_gates
from orchestration.promotion.policy import POLICY_FILE, GatePolicy, read_policy
from orchestration.promotion.quality import primary_gate
from orchestration.promotion.records import (
    Contest,
    Evidence,
    GateReport,
    GateResult,
    GateState,
    by_interval,
    read_evidence,
)
from pipeline.evaluate.results import Counts
from pipeline.statistics import OVERALL, judge_agreement
from reward.offline.bootstrap import Interval
from reward.types import Span
from tests.promotion_evidence import (
    CANDIDATE,
    CHAMPION,
    better,
    contest,
    evidence,
    item,
    worse,
    write_evidence,
)

POLICY = GatePolicy()
PASSED, FAILED = GateState.PASSED, GateState.FAILED
INCONCLUSIVE, ERROR = GateState.INCONCLUSIVE, GateState.ERROR


@pytest.fixture(scope="module")
def champion() -> Evidence:
    return evidence(worse, weights=CHAMPION)


def states(report: GateReport) -> dict[str, GateState]:
    return {one.gate: one.state for one in report.gates}


def not_passed(report: GateReport) -> dict[str, GateState]:
    return {gate: state for gate, state in states(report).items() if state is not PASSED}


def test_a_better_candidate_passes_every_gate(champion: Evidence) -> None:
    report = run_gates(contest(evidence(better), champion), POLICY)
    assert report.state is PASSED and not_passed(report) == {}
    named = ["weights", "yardstick", "scored", "primary", "numbers", "uncovered", "refusals", "length"]
    assert set(named) | {"no claims", "judge calibration", "slice shops/east"} <= states(report).keys()


REFUSED: dict[str, tuple[dict[str, Any], dict[str, GateState]]] = {
    "fewer numbers": ({"num_mentions": 1}, {"numbers": FAILED}),
    "no numbers": ({"num_mentions": 0}, {"numbers": FAILED, "no claims": FAILED, "uncovered": INCONCLUSIVE}),
    "refuses": ({"text": "I cannot answer that."}, {"refusals": FAILED}),
    "says almost nothing": ({"text": "5"}, {"length": FAILED}),
    "drowns it": ({"text": "It is 5 euros. " * 9}, {"length": FAILED}),
    "other weights": ({"weights": "b" * 64}, {"weights": FAILED}),
    "unknown weights": ({"weights": None}, {"weights": INCONCLUSIVE}),
    "another judge": ({"settings": {"judge": {"model": "kind"}}}, {"yardstick": FAILED}),
    "other sampling": ({"settings": {"generation": {"temperature": 0, "seed": 0}}}, {"yardstick": FAILED}),
    "another seed": ({"settings": {"generation": {"temperature": 0.6, "seed": 1}}}, {"yardstick": FAILED}),
    "another audit": ({"settings": {"audit_settings": {"voters": 5}}}, {"yardstick": FAILED}),
    "a judge like a coin": ({"kappa_errors": 20}, {"judge calibration": FAILED}),
    "a judge in doubt": ({"kappa_errors": 8}, {"judge calibration": INCONCLUSIVE}),
    "unread replies": (
        {"counts": Counts(num_items=200, num_generations=200, num_unread=20)},
        {"scored": FAILED},
    ),
    "failed audits": (
        {"counts": Counts(num_items=200, num_generations=200, num_unaudited=20)},
        {"scored": FAILED},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_better_score_alone_does_not_promote(name: str, champion: Evidence) -> None:
    changes, expected = REFUSED[name]
    report = run_gates(contest(evidence(better, **changes), champion), POLICY)
    assert report.state is not PASSED and not_passed(report) == expected
    assert states(report)["primary"] is PASSED


def test_a_worse_candidate_fails(champion: Evidence) -> None:
    report = run_gates(contest(evidence(worse), evidence(better, weights=CHAMPION)), POLICY)
    assert states(report)["primary"] is FAILED and states(report)["slice shops/east"] is FAILED


def test_an_equal_candidate_is_not_promoted(champion: Evidence) -> None:
    assert not_passed(run_gates(contest(evidence(worse), champion), POLICY)) == {"primary": FAILED}


def test_a_slice_that_is_worse_is_not_hidden_by_the_rest() -> None:
    def half(index: int) -> float:
        return float(index % 5 != 0) if index % 2 else 1.0  # 80% where the champion has 100%

    champion = evidence(lambda index: float(index % 2 == 1 or index % 4 == 0), weights=CHAMPION)
    report = run_gates(contest(evidence(half), champion), POLICY)
    assert not_passed(report) == {"slice shops/west": FAILED}
    exempt = GatePolicy.model_validate({"slices": {"exempt": ["shops/west"]}})
    assert run_gates(contest(evidence(half), champion), exempt).state is PASSED


SLICES = dict.fromkeys(("slice shops/east", "slice shops/west"), INCONCLUSIVE)
ANSWERS = dict.fromkeys(("uncovered", "no claims", "refusals"), INCONCLUSIVE)


@pytest.mark.parametrize(
    ("num_items", "expected"),
    [
        (30, {"primary": INCONCLUSIVE, **SLICES, **ANSWERS}),
        (58, SLICES | ANSWERS),
        (60, ANSWERS),  # of a rise by 5 points, 60 documents show none once in 22 times
        (80, {}),
    ],
)
def test_too_few_documents_are_inconclusive(num_items: int, expected: dict[str, GateState]) -> None:
    candidate = evidence(better, num_items=num_items)
    report = run_gates(contest(candidate, evidence(worse, num_items=num_items, weights=CHAMPION)), POLICY)
    assert not_passed(report) == expected


@pytest.mark.parametrize(
    ("num_documents", "num_lost", "state"),
    [(30, 0, INCONCLUSIVE), (30, 1, INCONCLUSIVE), (60, 1, PASSED), (60, 2, INCONCLUSIVE), (60, 20, FAILED)],
)
def test_losses_of_a_slice_are_rare_only_if_that_is_known(
    num_documents: int, num_lost: int, state: GateState
) -> None:
    """A candidate that loses one document of ten loses at most one of 30 in 18 evaluations of a hundred."""
    size = 2 * num_documents
    candidate = evidence(lambda index: float(index % 2 == 1 or index >= 2 * num_lost), num_items=size)
    champion = evidence(lambda _: 1.0, num_items=size, weights=CHAMPION)
    assert states(run_gates(contest(candidate, champion), POLICY))["slice shops/east"] is state


def test_few_more_refusals_of_a_hundred_answers_are_not_known_to_be_few() -> None:
    found = evidence(better, num_items=100)
    refused = [
        item(index, passed=1.0, text="I cannot answer that.") if index < 2 else one
        for index, one in enumerate(found.items["shops"])
    ]
    candidate = replace(found, items={**found.items, "shops": refused})
    report = run_gates(contest(candidate, evidence(better, num_items=100, weights=CHAMPION)), POLICY)
    assert states(report)["refusals"] is INCONCLUSIVE


def test_few_differing_documents_are_inconclusive() -> None:
    """A bootstrap alone is sure of five that rose and none that fell, where chance does so once in 32."""
    champion = evidence(lambda index: float(index % 40 != 0), weights=CHAMPION)
    report = run_gates(contest(evidence(lambda _: 1.0), champion), POLICY)
    primary = next(one for one in report.gates if one.gate == "primary")
    assert (primary.state, primary.figures["changed"]) == (INCONCLUSIVE, 5)
    assert primary.figures["low"] is not None and primary.figures["low"] > 0


def test_missing_scores_are_counted_and_never_passed_over(champion: Evidence) -> None:
    some = evidence(lambda index: None if index % 10 == 0 else 1.0)
    assert not_passed(run_gates(contest(some, champion), POLICY)) == {"scored": FAILED}
    nothing = run_gates(contest(evidence(lambda _: None), champion), POLICY)
    assert states(nothing)["primary"] is INCONCLUSIVE and nothing.state is FAILED


def test_the_score_that_decides_is_counted_where_it_is_missing(champion: Evidence) -> None:
    """The policy's score, and not the benchmark's own alone."""
    found = evidence(better)
    items = [
        one.model_copy(update={"scores": {**one.scores, "strict": None if index > 60 else 1.0}})
        for index, one in enumerate(found.items["shops"])
    ]
    candidate = replace(found, items={**found.items, "shops": items})
    policy = GatePolicy.model_validate({"primary": {"benchmark": "shops", "score": "strict"}})
    assert scored_gate(contest(candidate, champion), POLICY)[0].state is PASSED
    assert scored_gate(contest(candidate, champion), policy)[0].state is FAILED


def test_numbers_that_no_claim_covers_count_where_the_champion_states_none() -> None:
    def states_some(weights: str, *, elsewhere: int) -> Evidence:
        """Three covered numbers in each third answer, and in the others some that no claim covers."""
        found = evidence(better, weights=weights)
        items = []
        for index in range(200):
            one = item(index, passed=better(index), num_mentions=elsewhere if index % 3 else 3)
            (made,) = one.generations
            assert made.verdict is not None
            spans = (Span(start=0, end=1),) * (elsewhere if index % 3 else 0)
            made = made.model_copy(update={"verdict": made.verdict.model_copy(update={"uncovered": spans})})
            items.append(one.model_copy(update={"generations": (made,)}))
        return replace(found, items={**found.items, "shops": items})

    found = contest(states_some(CANDIDATE, elsewhere=2), states_some(CHAMPION, elsewhere=0))
    results = states(run_gates(found, POLICY))
    assert results["uncovered"] is FAILED and results["numbers"] is PASSED


def test_an_average_is_as_sure_as_its_smallest_benchmark() -> None:
    """Two of three documents that rose are worth little, though their error is small beside the rise."""
    few = {
        name: {"few": [item(i, passed=float(i < n)) for i in range(3)]} for name, n in (("a", 3), ("b", 1))
    }
    candidate = evidence(worse, also=few["a"])
    champion = evidence(lambda index: worse(index + index % 2), weights=CHAMPION, also=few["b"])
    (found,) = primary_gate(contest(candidate, champion), POLICY)
    assert found.figures["changed"] > 10 and found.figures["difference"] > 0.3
    assert found.state is INCONCLUSIVE and found.figures["low"] < -0.2  # the normal one is above 0


def test_the_first_champion_meets_floors() -> None:
    assert run_gates(contest(evidence(better), None), POLICY).state is PASSED
    bad = run_gates(contest(evidence(lambda index: float(index % 5 == 0)), None), POLICY)
    assert not_passed(bad) == {"floor": FAILED}
    unsure = run_gates(contest(evidence(lambda index: float(index % 2 == 0)), None), POLICY)
    assert not_passed(unsure) == {"floor": INCONCLUSIVE}
    silent = run_gates(contest(evidence(better, num_mentions=0), None), POLICY)
    assert not_passed(silent) == {"no claims": FAILED}
    few = run_gates(contest(evidence(better, num_items=20), None), POLICY)
    assert not_passed(few) == {"floor": INCONCLUSIVE}


def test_a_gate_that_breaks_is_closed(champion: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(contest: Contest, policy: GatePolicy) -> list[GateResult]:
        raise ZeroDivisionError("no documents")

    monkeypatch.setitem(gates._AGAINST_A_CHAMPION, "judge", breaks)  # type: ignore[index]
    monkeypatch.setitem(gates._AGAINST_A_CHAMPION, "slices", lambda *_: [])  # type: ignore[index]
    report = run_gates(contest(evidence(better), champion), POLICY)
    assert not_passed(report) == {"judge": ERROR, "slices": ERROR} and report.state is ERROR
    assert "ZeroDivisionError: no documents" in report.reasons[0]


def test_a_policy_about_another_benchmark_is_an_error(champion: Evidence) -> None:
    policy = GatePolicy.model_validate({"primary": {"benchmark": "hotpotqa"}})
    report = run_gates(contest(evidence(better), champion), policy)
    assert not_passed(report) == {"primary": ERROR} and "'hotpotqa' was not evaluated" in report.reasons[0]


@given(low=st.floats(-1, 1), width=st.floats(0, 1), bound=st.floats(-1, 1))
def test_a_state_is_passed_only_when_the_whole_interval_is(low: float, width: float, bound: float) -> None:
    high = low + width
    for state, is_right, is_wrong in (
        (by_interval(Interval(low=low, high=high), least=bound), low >= bound, high < bound),
        (by_interval(Interval(low=low, high=high), most=bound), high <= bound, low > bound),
    ):
        assert (state is PASSED, state is FAILED) == (is_right, is_wrong)
    assert by_interval(None, least=bound) is INCONCLUSIVE


@settings(max_examples=10)
@given(before=st.lists(st.booleans(), min_size=4, max_size=60), data=st.data())
def test_no_pair_of_small_evaluations_breaks_a_gate(before: list[bool], data: st.DataObject) -> None:
    after = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before)))
    size = len(before)
    found = contest(
        evidence(lambda index: float(after[index]), num_items=size),
        evidence(lambda index: float(before[index]), num_items=size, weights=CHAMPION),
    )
    report = run_gates(found, POLICY)
    assert ERROR not in states(report).values()
    assert report.state is not PASSED or sum(after) > sum(before)


@given(st.lists(st.sampled_from(list(GateState)), max_size=6))
def test_a_report_is_as_bad_as_its_worst_gate(found: list[GateState]) -> None:
    gates = tuple(GateResult(gate=str(i), state=state, reason="") for i, state in enumerate(found))
    report = GateReport(gates=gates, policy_sha256="")
    assert (report.state is PASSED) == (bool(found) and set(found) == {PASSED})
    assert len(report.reasons) == sum(state is not PASSED for state in found)


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("", True),
        ("I cannot answer this question.", True),
        ("The documents do not contain enough information.", True),
        ("The passage doesn't mention any details.", True),
        ("I don't know.", True),
        ("It costs 5 euros.", False),
        ("They could not find the ship until 1912.", False),
    ],
)
def test_refusals_are_known_by_their_words(text: str, refuses: bool) -> None:
    assert is_refusal(text) is refuses


def test_the_shipped_policy_says_the_defaults_and_all_of_them() -> None:
    assert read_policy(None) == GatePolicy()
    assert yaml.safe_load(POLICY_FILE.read_text()) == GatePolicy().model_dump(mode="json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slices: {marign: 0.2}", "marign"),
        ("primary: {alpha: 0.9}", "alpha"),
        ("primary: {score: em}", "name it under benchmark"),
        ("- 1", "no mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_bad_policy_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    with pytest.raises(ValueError, match=says):
        read_policy(tmp_path / "policy.yaml")


def test_evidence_is_read_with_its_digests(tmp_path: Path) -> None:
    folder = write_evidence(tmp_path, evidence(better, num_items=4))
    assert read_evidence(folder).items["shops"][0] == item(0, passed=0.0)
    with (folder / "shops" / "items.jsonl").open("a") as file:
        file.write(item(4, passed=1.0).model_dump_json() + "\n")
    with pytest.raises(ValueError, match="has changed since"):
        read_evidence(folder)


def test_answers_that_failed_are_missing_too() -> None:
    counts = Counts(num_items=200, num_generations=800, num_failed=800)
    found = scored_gate(contest(evidence(better, counts=counts), None), GatePolicy())
    assert found[0].state is GateState.FAILED and "answers: 50.0%" in found[0].reason


def test_a_judge_is_not_known_by_two_documents() -> None:
    known = evidence(better, kappa_errors=0)
    figures = dict(known.manifest.benchmarks)
    few = [
        one.model_copy(update={"cluster": str(int(one.item) // 2 % 2)}) for one in known.items["calibration"]
    ]
    estimates = {OVERALL: judge_agreement(few)}
    figures["calibration"] = figures["calibration"].model_copy(update={"estimates": estimates})
    manifest = known.manifest.model_copy(update={"benchmarks": figures})
    found = judge_gate(contest(replace(known, manifest=manifest), None), GatePolicy())
    assert found[0].state is GateState.INCONCLUSIVE and "2 documents, too few" in found[0].reason


def test_notes_and_thought_are_no_length_and_no_refusal() -> None:
    notes = "Document 2 does not mention the date.\n" * 20
    one = item(0, passed=1.0, text=f"<think>{notes}</think>It is 5 euros.")
    assert num_chars(one) == len("It is 5 euros.") and refusal_rate(one) == 0.0
