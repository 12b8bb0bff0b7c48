"""The frozen Checker gets the same questions, its gap shows what only the live one supports, and it never
touches a reward."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import RayActorError

from pipeline.settings.guards import CanarySettings
from pipeline.settings.recipe import load_recipe
from pipeline.training.canary import Canary, FrozenChecker, canary_metrics
from reward.auditor import audit, recheck
from reward.config import LocalSamplerConfig, OpenAISamplerConfig
from reward.roles.prompts import load_prompts
from reward.samplers import SamplerError
from reward.types import Claim, ClaimState, ClaimVerdict, Outcome, RagQuery, Verdict
from tests.kinds import numbers

PROMPTS = load_prompts("compact")
RESPONSE = "The July picnic in Kabul raised 466 euros and drew 60 people."
CLAIMS = (
    "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]\n"
    "- Question: How many people did the July picnic draw? [Answer: 60]"
)
RAISED = "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"
INVENTED = f"{RAISED}\n2. Evidence: It drew 60 people. [Answer: 60]"
TRUE = f"{RAISED}\n2. Evidence: It drew 50 people. [Answer: 50]"


def live_verdict(picnic: RagQuery, scripted: Any) -> Verdict:
    sampler = scripted({"proposer": [CLAIMS], "checker": [INVENTED] * 3})
    return asyncio.run(audit(picnic, RESPONSE, sampler=sampler, prompts=PROMPTS, config=numbers())).verdict


def rechecked(picnic: RagQuery, live: Verdict, sampler: Any, response: str = RESPONSE) -> Verdict:
    return asyncio.run(recheck(picnic, response, live, sampler=sampler, prompts=PROMPTS, config=numbers()))


def test_another_checker_gets_the_same_questions_and_no_proposer_is_asked(
    picnic: RagQuery, scripted: Any
) -> None:
    live = live_verdict(picnic, scripted)
    frozen = scripted({"checker": [TRUE] * 3})
    verdict = rechecked(picnic, live, frozen)
    assert [claim.claim for claim in verdict.claims] == [claim.claim for claim in live.claims]
    assert (live.outcome, verdict.outcome) == (Outcome.SUPPORTED, Outcome.REFUTED)
    (request,) = frozen.requests
    assert request.n == 3 and "60" not in request.text  # as blind as the first one


def test_a_second_look_by_an_equal_checker_is_the_same_verdict(picnic: RagQuery, scripted: Any) -> None:
    live = live_verdict(picnic, scripted)
    assert rechecked(picnic, live, scripted({"checker": [INVENTED] * 3})) == live


def test_what_the_first_audit_left_uncovered_still_refutes(picnic: RagQuery, scripted: Any) -> None:
    first_only = CLAIMS.partition("\n")[0]
    sampler = scripted({"proposer": [first_only] * 2, "checker": [RAISED] * 3})
    live = asyncio.run(audit(picnic, RESPONSE, sampler=sampler, prompts=PROMPTS, config=numbers())).verdict
    verdict = rechecked(picnic, live, scripted({"checker": [RAISED] * 3}))
    assert verdict == live
    assert verdict.reason == "uncovered"


def test_a_failed_second_look_is_unscored(picnic: RagQuery, scripted: Any) -> None:
    live = live_verdict(picnic, scripted)
    verdict = rechecked(picnic, live, scripted([SamplerError("timeout", "asleep")]))
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "timeout")


def test_a_verdict_on_another_response_is_refused(picnic: RagQuery, scripted: Any) -> None:
    live = live_verdict(picnic, scripted)
    with pytest.raises(ValueError, match="this response does not say"):
        rechecked(picnic, live, scripted([]), response="Nobody came.")


def verdict(*states: ClaimState, consensus: str = "7") -> Verdict:
    claims = tuple(
        ClaimVerdict(
            claim=Claim(index=i, question="?", answer="5"),
            state=state,
            consensus=consensus if state is ClaimState.CONTRADICTED else None,
        )
        for i, state in enumerate(states, start=1)
    )
    supported = set(states) == {ClaimState.SUPPORTED}
    outcome = Outcome.SUPPORTED if supported else Outcome.REFUTED
    return Verdict(id="q", outcome=outcome, reward=0.0 if supported else -1.0, claims=claims)


YES, NO, ABSENT = ClaimState.SUPPORTED, ClaimState.CONTRADICTED, ClaimState.NOT_IN_DOCUMENTS
FAILED = Verdict(id="q", outcome=Outcome.UNSCORED, reward=None, reason="timeout")


def test_collusion_shows_as_a_gap() -> None:
    live = [verdict(YES, YES), verdict(YES, YES), verdict(YES), verdict(NO)]
    frozen = [verdict(YES, YES), verdict(YES, NO), verdict(ABSENT), verdict(NO)]
    assert canary_metrics(live, frozen) == {
        "canary/num_answers": 4,
        "canary/failed_rate": 0,
        "canary/support_gap": 0.5,
        "canary/only_live_rate": 0.5,
        "canary/consensus_gap": pytest.approx(2 / 6),
    }


def test_disagreement_both_ways_is_no_gap_of_support() -> None:
    metrics = canary_metrics([verdict(YES), verdict(NO)], [verdict(NO), verdict(YES)])
    assert (metrics["canary/support_gap"], metrics["canary/only_live_rate"]) == (0, 0.5)
    assert metrics["canary/consensus_gap"] == 1


def test_two_consensuses_on_different_numbers_disagree() -> None:
    metrics = canary_metrics([verdict(NO)], [verdict(NO, consensus="8")])
    assert (metrics["canary/support_gap"], metrics["canary/consensus_gap"]) == (0, 1)


def test_what_a_checker_could_not_decide_is_in_no_gap() -> None:
    metrics = canary_metrics([verdict(YES), verdict(NO, YES)], [FAILED, verdict(NO, ClaimState.FAILED)])
    assert metrics == {
        "canary/num_answers": 1,
        "canary/failed_rate": 0.5,
        "canary/support_gap": 0,
        "canary/only_live_rate": 0,
        "canary/consensus_gap": 0,
    }
    assert canary_metrics([verdict(YES)], [FAILED]) == {"canary/num_answers": 0, "canary/failed_rate": 1}


class Checker:
    """Stands for the Ray actor's handle and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.verdicts = SimpleNamespace(remote=self._ask)

    def _ask(self, asked: Any) -> str:
        self.asked.append(asked)
        return "a reference"


def record(verdict: Verdict, response: str = RESPONSE) -> Any:
    """As much of a rollout's record as a canary reads."""
    return SimpleNamespace(response=response, verdict=verdict)


def samples(picnic: RagQuery, verdicts: Sequence[Verdict]) -> list[Any]:
    label = picnic.model_dump_json()
    return [
        SimpleNamespace(labels=[label], rollout=record(verdict, f"answer {i}"))
        for i, verdict in enumerate(verdicts)
    ]


def test_a_seeded_choice_of_a_steps_answers_with_claims_is_asked_about(
    picnic: RagQuery, tmp_path: Path
) -> None:
    none = Verdict(id="q", outcome=Outcome.NO_CLAIMS, reward=-1.0)
    step = samples(picnic, [FAILED, verdict(YES), none, verdict(NO), verdict(YES), verdict(NO)])
    canary = canary_without_its_actor(tmp_path)
    for number in (1, 1, 2):
        canary.ask(step, number)
    first, again, other = canary.checker.asked
    assert [asked.response for asked in first] == [asked.response for asked in again]
    assert len(first) == len(other) == 2
    assert all(asked.live.claims and asked.query == picnic for asked in first + other)


def canary_without_its_actor(folder: Path) -> Canary:
    canary = Canary.__new__(Canary)
    canary.settings, canary.seed = CanarySettings(answers=2, timeout_s=1), 0
    canary.folder, canary.checker = folder / "canary", Checker()
    return canary


def test_a_step_without_claims_has_no_figures(picnic: RagQuery, tmp_path: Path) -> None:
    canary = canary_without_its_actor(tmp_path)
    by_lookup = verdict(NO).model_copy(update={"reason": "refuted_without_claims"})  # nobody asked
    by_query = verdict(NO).model_copy(update={"reason": "unanswerable"})  # the voters did not decide
    canary.ask(samples(picnic, [FAILED, by_lookup, by_query]), 1)
    assert (canary.checker.asked, canary.metrics()) == ([], {})


def test_both_verdicts_are_kept_and_compared(
    picnic: RagQuery, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = live_verdict(picnic, scripted)
    checker = FrozenChecker.__new__(FrozenChecker)  # without its engine
    checker.sampler, checker.audit = (
        scripted({"checker": [TRUE] * 3}),
        numbers(prompts="compact"),
    )
    canary = canary_without_its_actor(tmp_path)
    canary.ask([SimpleNamespace(labels=[picnic.model_dump_json()], rollout=record(live))], 7)
    (asked,) = canary.checker.asked
    monkeypatch.setattr("ray.get", lambda *_, **__: asyncio.run(checker.verdicts(asked)))
    assert canary.metrics()["canary/support_gap"] == 1
    (row,) = map(json.loads, (tmp_path / "canary" / "step-000007.jsonl").read_text().splitlines())
    assert (row["live"]["outcome"], row["frozen"]["outcome"]) == ("SUPPORTED", "REFUTED")
    assert row["response"] == RESPONSE


def test_a_canary_that_died_costs_no_step(
    picnic: RagQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise RayActorError

    canary = canary_without_its_actor(tmp_path)
    canary.ask(samples(picnic, [verdict(YES)]), 1)
    monkeypatch.setattr("ray.get", dies)
    monkeypatch.setattr("ray.cancel", lambda request: None)
    assert canary.metrics() == {"canary/num_answers": 0, "canary/failed_rate": 1}


def test_the_frozen_checker_is_the_initial_policy_or_a_server() -> None:
    initial = load_recipe("tiny", ["canary.answers=4"])
    own = initial.canary_sampler
    assert isinstance(own, LocalSamplerConfig)
    assert (own.model, own.max_model_len) == (initial.model_path, initial.max_model_len)
    assert initial.num_gpus == load_recipe("tiny").num_gpus + 1
    served = load_recipe("tiny", ["canary={base_url: 'http://host:8000/v1', model_name: judge}"])
    assert served.num_gpus == load_recipe("tiny").num_gpus
    sampler = served.canary_sampler
    assert isinstance(sampler, OpenAISamplerConfig) and sampler.base_urls == ("http://host:8000/v1",)


@pytest.mark.parametrize("overrides", [[], ["canary.answers=0"]])
def test_no_canary_unless_asked_for(overrides: list[str]) -> None:
    assert load_recipe("tiny", overrides).canary_sampler is None


def test_the_canary_is_no_role_of_the_training() -> None:
    assert load_recipe("tiny", ["canary.answers=4"]).rows_per_step == 64 * 2
