"""The agent: what an engine or a server that fails leaves behind is no reward."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import cpu
from pipeline.settings.ppo import CheckerCredit
from reward.serving.client import RewardServerError
from reward.types import AuditResult, Document, Outcome, RagQuery, Role, Trajectory, Verdict
from tests.rollout_runs import agent_settings
from tests.serving import KEY, RESPONSE, TOKEN, serve_picnic
from tests.serving import QUERY as PICNIC

cpu.install()

from pipeline.record.rollout_record import RolloutRecord  # noqa: E402
from pipeline.training.rollout import AgentExecutor, choose_turn  # noqa: E402

QUERY = RagQuery(id="q", query="?", documents=(Document(id="d", text="It raised 5 euros."),))


NOBODY = "http://127.0.0.1:9"


def set_up(monkeypatch: pytest.MonkeyPatch, url: str, *overrides: str) -> None:
    for name, value in agent_settings(url, overrides=overrides).items():
        monkeypatch.setenv(name, value)


class Tokenizer:
    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [1, 2, 3]}

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return "It raised 5 euros."


class Engine:
    weights_version = 3

    def __init__(self, finish_reason: str) -> None:
        self.output = SimpleNamespace(token_ids=[4, 5], finish_reason=finish_reason, logprobs=None)

    async def generate(self, prompt_ids: list[int], params: Any) -> Any:
        return SimpleNamespace(outputs=[self.output])


class Client:
    """Supports everything, or is not there."""

    def __init__(self, up: bool) -> None:
        self.up = up

    async def audit(self, query: RagQuery, response: str, *, include_trajectories: bool) -> AuditResult:
        if not self.up:
            raise RewardServerError("gone")
        verdict = Verdict(id=query.id, outcome=Outcome.SUPPORTED, reward=0.0)
        return AuditResult(verdict=verdict, trajectories=(turn_of(4), turn_of(5)))


def turn_of(version: int) -> Trajectory:
    return Trajectory(
        role=Role.CHECKER,
        prompt_token_ids=(1,),
        response_token_ids=(2,),
        finish_reason="stop",
        weights_version=version,
    )


@pytest.mark.parametrize(
    ("finish_reason", "up", "reward", "reason"),
    [
        ("stop", True, 0.0, ""),
        ("length", True, 0.0, ""),
        ("abort", True, None, "engine"),
        ("error", True, None, "engine"),
        ("stop", False, None, "reward_server"),
    ],
)
def test_only_an_answer_that_ended_and_was_audited_has_a_reward(
    monkeypatch: pytest.MonkeyPatch, finish_reason: str, up: bool, reward: float | None, reason: str
) -> None:
    set_up(monkeypatch, NOBODY)
    agent = AgentExecutor()
    agent.client = Client(up)  # type: ignore[assignment]
    params = SimpleNamespace(max_tokens=8)
    arguments = ("p", QUERY.model_dump_json(), params, 64, Tokenizer(), Engine(finish_reason))
    result = asyncio.run(agent.execute(*arguments))
    assert result["reward"] == reward
    assert result["rollout"].verdict.reason == reason
    checked = {Role.CHECKER: (4, 5)} if reward is not None else {}
    assert result["rollout"].weights_versions == {Role.SOLVER: (3,), **checked}


def record_of(monkeypatch: pytest.MonkeyPatch, told: AuditResult, credit: str) -> RolloutRecord:
    """What the agent keeps of an answer whose audit says this."""

    class Voters:
        async def audit(self, *arguments: Any, **settings: Any) -> AuditResult:
            return told

    set_up(monkeypatch, NOBODY, f"ppo.checker_credit={credit}")
    agent = AgentExecutor()
    agent.client = Voters()  # type: ignore[assignment]
    return asyncio.run(agent._audit(QUERY, "It raised 5 euros.", finish_reason="stop"))


@pytest.mark.parametrize(
    ("credit", "own", "reward", "paid"),
    [
        ("answer", (-1.0, None, 0.0), 0.0, [0.0] * 2),  # what cannot be read is not paid for the others
        ("answer", (0.0, None, 0.0), -1.0, [-1.0] * 2),
        ("answer", (None, None, None), -1.0, []),
        ("vote", (-1.0, None, 0.0), 0.0, [-1.0, 0.0]),  # an outvoted voter is not paid for the majority
        ("vote", (-1.0, None, 0.0), -1.0, [-1.0, 0.0]),
        ("vote", (None, None, None), -1.0, []),
        ("vote", (0.0, 0.0, 0.0), None, []),  # UNSCORED: whatever the votes say
        ("answer", (0.0, 0.0, 0.0), None, []),
        ("undisputed_vote", (-1.0, None, 0.0), -1.0, [-1.0, 0.0]),
        ("undisputed_vote", (0.0, 0.0, 0.0), None, []),
    ],
)
def test_a_checkers_turn_is_paid_for_the_answer_or_for_its_own_votes(
    monkeypatch: pytest.MonkeyPatch, credit: str, own: Any, reward: float | None, paid: list[float]
) -> None:
    outcome = {0.0: Outcome.SUPPORTED, -1.0: Outcome.REFUTED, None: Outcome.UNSCORED}[reward]
    field, other = "own_reward", "undisputed_reward"
    if credit == "undisputed_vote":
        field, other = other, field
    turns = [turn_of(1).model_copy(update={field: one, other: -0.5}) for one in own]
    told = AuditResult(verdict=Verdict(id="q", outcome=outcome, reward=reward), trajectories=tuple(turns))
    record = record_of(monkeypatch, told, credit)
    could_be_trained = [*record.turns.values(), *record.spare_turns.get(Role.CHECKER, ())]
    assert sorted(map(record.turn_reward, could_be_trained)) == paid  # type: ignore[type-var]
    assert len(record.turns) == bool(paid)


@pytest.mark.parametrize("credit", list(CheckerCredit))
@pytest.mark.parametrize("reward", [0.0, -1.0, None])
def test_a_turn_that_cannot_be_read_is_refuted_whatever_became_of_the_audit(
    monkeypatch: pytest.MonkeyPatch, credit: CheckerCredit, reward: float | None
) -> None:
    outcome = {0.0: Outcome.SUPPORTED, -1.0: Outcome.REFUTED, None: Outcome.UNSCORED}[reward]
    garbled = turn_of(1).model_copy(update={"own_reward": -1.0, "unreadable": True})
    told = AuditResult(verdict=Verdict(id="q", outcome=outcome, reward=reward), trajectories=(garbled,))
    record = record_of(monkeypatch, told, credit)
    assert [record.turn_reward(turn) for turn in record.turns.values()] == [-1.0]
    assert record.verdict.reward == reward  # the Solver's is what it was


@pytest.mark.parametrize("votes", [(-1.0, None), (0.0, None), (-1.0, 0.0)])
def test_a_vote_that_is_missing_is_not_paid_for_what_others_said(votes: tuple[float | None, ...]) -> None:
    turn = turn_of(1).model_copy(update={"own_reward": -1.0, "answer_rewards": votes})
    verdict = Verdict(id="q", outcome=Outcome.SUPPORTED, reward=0.0)
    record = RolloutRecord(query_id="q", response="r", verdict=verdict, checker_credit=CheckerCredit.ANSWER)
    assert record.turn_reward(turn) == (None if None in votes else 0.0)


def test_a_proposers_turn_is_paid_for_the_answer_whatever_pays_votes() -> None:
    turn = turn_of(1).model_copy(update={"role": Role.PROPOSER})
    verdict = Verdict(id="q", outcome=Outcome.REFUTED, reward=-1.0)
    record = RolloutRecord(query_id="q", response="r", verdict=verdict, checker_credit=CheckerCredit.VOTE)
    assert record.turn_reward(turn) == -1.0


def test_the_agent_believes_signed_answers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, forger = serve_picnic(signing_key=KEY), serve_picnic(signing_key=KEY[::-1])
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
    try:
        for server, reward, reason in ((honest, 0.0, "supported"), (forger, None, "untrusted_answer")):
            set_up(monkeypatch, server.url)
            record = asyncio.run(AgentExecutor()._audit(PICNIC, RESPONSE, finish_reason="stop"))
            assert (record.verdict.reward, record.verdict.reason) == (reward, reason)
            seen = ("march_audits_total", "march_audits_joined_total")
            assert sum(map(server.metric, seen)) == 1  # it was not asked again
    finally:
        honest.close()
        forger.close()


def test_an_agent_without_the_key_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch, NOBODY)
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.delenv("MARCH_SIGNING_KEY", raising=False)
    with pytest.raises(KeyError, match="MARCH_SIGNING_KEY"):
        _ = AgentExecutor().client


def test_a_prompt_that_leaves_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch, NOBODY)
    arguments = ("p", QUERY.model_dump_json(), SimpleNamespace(max_tokens=8), 10, Tokenizer(), Engine("stop"))
    with pytest.raises(ValueError, match="--max-prompt-tokens"):
        asyncio.run(AgentExecutor().execute(*arguments))


def test_a_turn_that_its_engine_gave_up_is_never_trained() -> None:
    turn = Trajectory(
        role=Role.CHECKER, prompt_token_ids=(1,), response_token_ids=(2,), finish_reason="abort"
    )
    assert choose_turn([turn], seed="0") is None
