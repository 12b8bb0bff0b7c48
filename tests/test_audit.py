"""The whole audit over a scripted sampler: outcomes, guards, retries, failures and trajectories."""

import asyncio

import pytest

from reward.auditor import audit, recheck
from reward.config import AuditConfig, SamplingSettings
from reward.judging.vote import Reason
from reward.roles.prompts import load_prompts
from reward.samplers import SamplerError
from reward.types import (
    AuditResult,
    ClaimState,
    Document,
    DocumentSpan,
    Outcome,
    RagQuery,
    Role,
    Sample,
    Span,
    Verdict,
)

PROMPTS = load_prompts("compact")
RESPONSE = "The July picnic in Kabul raised 466 euros."
CLAIM = "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"
RIGHT = "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"
OTHER = "1. Evidence: The May picnic in Kabul raised 120 euros. [Answer: 120]"
ABSENT = "1. Evidence: nothing is said. [Answer: Cannot answer]"
BROKEN = "1. Evidence: I am not sure"
UNKNOWN = "1. Evidence: nothing is said. [Answer: unknown]"  # of the format, and no vote
THIRD = "1. Evidence: Berlin raised more. [Answer: 500]"


def run(query, response, sampler, **settings) -> AuditResult:
    return asyncio.run(
        audit(
            query,
            response,
            sampler=sampler,
            prompts=PROMPTS,
            config=AuditConfig(**{"kinds": ["number"], **settings}),
        )
    )


@pytest.mark.parametrize(
    ("votes", "outcome", "reward", "reason"),
    [
        ([RIGHT, RIGHT, RIGHT], Outcome.SUPPORTED, 0.0, Reason.SUPPORTED),
        ([RIGHT, OTHER, RIGHT], Outcome.SUPPORTED, 0.0, Reason.SUPPORTED),
        ([OTHER, OTHER, RIGHT], Outcome.REFUTED, -1.0, Reason.CONTRADICTED),
        ([ABSENT, ABSENT, RIGHT], Outcome.REFUTED, -1.0, Reason.NOT_IN_DOCUMENTS),
        ([ABSENT, OTHER, RIGHT], Outcome.REFUTED, -1.0, Reason.NO_CONSENSUS),
        ([RIGHT, RIGHT, BROKEN], Outcome.SUPPORTED, 0.0, Reason.SUPPORTED),
        ([RIGHT, BROKEN, BROKEN], Outcome.UNSCORED, None, Reason.TOO_FEW_VALID_VOTES),
        ([BROKEN, BROKEN, BROKEN], Outcome.UNSCORED, None, Reason.TOO_FEW_VALID_VOTES),
        (["", "", ""], Outcome.UNSCORED, None, Reason.TOO_FEW_VALID_VOTES),
    ],
)
def test_outcomes(votes, outcome, reward, reason, scripted, picnic) -> None:
    verdict = run(picnic, RESPONSE, scripted([CLAIM, *votes])).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (outcome, reward, reason)


def test_the_verdict_tells_all(scripted, picnic) -> None:
    sampler = scripted(
        {"proposer": ["Sure!\n" + CLAIM], "checker": [RIGHT, OTHER, BROKEN]}, weights_version=7
    )
    verdict = run(picnic, RESPONSE, sampler, min_valid_voters=1).verdict
    (claim,) = verdict.claims
    assert claim.state is ClaimState.FAILED, "the third vote could have decided"
    assert claim.tally == {"466": 1, "120": 1}
    assert [vote and (vote.value, vote.evidence_at) for vote in claim.votes] == [
        ("466", DocumentSpan(document="july", start=0, end=42)),
        ("120", DocumentSpan(document="may", start=0, end=41)),
        None,
    ]
    assert claim.claim.span == Span(start=32, end=41)
    assert (verdict.id, verdict.num_mentions, verdict.num_voters, verdict.weights_version) == ("q1", 1, 3, 7)
    assert (verdict.num_malformed_claims, verdict.detail) == (1, "")


def test_row_09_one_request_a_role_with_all_voters_in_it(scripted, picnic) -> None:
    sampler = scripted([CLAIM, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT])
    proposer, checker = SamplingSettings(temperature=0.1), SamplingSettings(temperature=0.9)
    run(picnic, RESPONSE, sampler, voters=5, proposer=proposer, checker=checker)
    assert [(request.n, request.settings) for request in sampler.requests] == [(1, proposer), (5, checker)]


@pytest.mark.parametrize(
    ("response", "reason", "settings", "reward"),
    [
        ("", "no_claims", {}, None),
        ("1. First\n2. Second", "no_claims", {}, None),
        ("I do not know.", "abstention", {}, None),
        ("Passage 2 does not say.", "abstention", {}, None),
        ("Yes.", "no_claims", {"reward_no_claims": -1.0, "reward_abstention": -0.5}, -1.0),
        (
            "The documents do not say.",
            "abstention",
            {"reward_no_claims": -1.0, "reward_abstention": -0.5},
            -0.5,
        ),
    ],
)
def test_row_03_a_response_without_claims_is_not_sampled_and_has_no_reward(
    response, reason, settings, reward, scripted, picnic
) -> None:
    sampler = scripted([])
    verdict = run(picnic, response, sampler, **settings).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.NO_CLAIMS, reward, reason)
    assert sampler.requests == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        "- Question: How many? [Answer: 7]",
        "- Question: How many euros, 466? [Answer: 466]",
        "- Question: How many? [Answer: many]",
        Sample(text=CLAIM, finish_reason="length"),
    ],
)
def test_row_08_an_unusable_proposer_is_unscored_after_its_retries(text, scripted, picnic) -> None:
    sampler = scripted([text, text, text])
    verdict = run(picnic, RESPONSE, sampler, proposer_retries=2).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "proposer_malformed")
    assert len(sampler.requests) == 3
    assert verdict.num_mentions == 1


def test_a_retry_fixes_an_unusable_proposer(scripted, picnic) -> None:
    cut = Sample(text=CLAIM, finish_reason="length")
    verdict = run(picnic, RESPONSE, scripted([cut, CLAIM, RIGHT, RIGHT, RIGHT])).verdict
    assert verdict.outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("reason", ["timeout", "connection", "prompt_too_long", "bad_response", "engine"])
@pytest.mark.parametrize("before", [[], [CLAIM]])
def test_row_08_a_failing_sampler_is_never_a_reward(reason, before, scripted, picnic) -> None:
    assert reason in set(Reason)
    result = run(picnic, RESPONSE, scripted([*before, SamplerError(reason, "why")]))
    verdict = result.verdict
    assert (verdict.outcome, verdict.reward) == (Outcome.UNSCORED, None)
    assert (verdict.reason, verdict.detail, result.trajectories) == (reason, "why", ())


def test_a_sampler_with_too_few_completions_is_a_failure(scripted, picnic) -> None:
    sampler = scripted(lambda messages, n: [CLAIM] if n == 1 else [RIGHT])
    assert run(picnic, RESPONSE, sampler).verdict.reason == "bad_response"


def test_row_13_every_valid_vote_has_its_trajectory_so_that_training_can_choose(scripted, picnic) -> None:
    result = run(picnic, RESPONSE, scripted([CLAIM, RIGHT, OTHER, RIGHT], with_tokens=True))
    votes = [bytes(t.response_token_ids[:-1]).decode() for t in result.trajectories if t.role is Role.CHECKER]
    assert votes == [RIGHT, OTHER, RIGHT]


def test_row_02_a_response_without_claims_is_asked_nothing_and_gives_no_trajectory(scripted, picnic) -> None:
    sampler = scripted([], with_tokens=True)
    result = run(picnic, "I do not know.", sampler)
    assert (result.trajectories, sampler.requests) == ((), [])


def test_the_consensus_says_by_which_value_a_claim_is_contradicted(scripted, picnic) -> None:
    (claim,) = run(picnic, RESPONSE, scripted([CLAIM, OTHER, OTHER, ABSENT])).verdict.claims
    assert (claim.state, claim.consensus) == (ClaimState.CONTRADICTED, "120")
    assert (claim.tally, claim.evidence_holds_consensus) == ({"120": 2, "Cannot answer": 1}, True)


@pytest.mark.parametrize(
    ("evidence", "held"),
    [
        ("The July picnic in Kabul raised 466 euros.", True),
        ("The July picnic in Kabul", False),  # verbatim, without the number
        ("It raised 466 euros in July", False),  # with the number, not verbatim
    ],
)
def test_a_claim_whose_evidence_does_not_hold_the_consensus_says_so(evidence, held, scripted, picnic) -> None:
    vote = f"1. Evidence: {evidence} [Answer: 466]"
    (claim,) = run(picnic, RESPONSE, scripted([CLAIM, vote, vote, vote])).verdict.claims
    assert (claim.state, claim.evidence_holds_consensus) == (ClaimState.SUPPORTED, held)
    (absent,) = run(picnic, RESPONSE, scripted([CLAIM, ABSENT, ABSENT, ABSENT])).verdict.claims
    assert absent.evidence_holds_consensus is None


def test_errors_of_programming_rise(scripted, picnic) -> None:
    with pytest.raises(KeyError):
        run(picnic, RESPONSE, scripted([CLAIM, KeyError("bug")]))


def test_cancellation_rises(picnic) -> None:
    class Stuck:
        model = "stuck"

        async def sample(self, messages, *, n, settings, pattern=None):
            await asyncio.Event().wait()

    async def cancelled() -> None:
        work = audit(
            picnic, RESPONSE, sampler=Stuck(), prompts=PROMPTS, config=AuditConfig(kinds=("number",))
        )
        task = asyncio.create_task(work)
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_bounds_leave_the_audit_unscored(scripted, picnic) -> None:
    verdict = run(picnic, RESPONSE, scripted([]), max_response_chars=10).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, "response_too_long")
    verdict = run(picnic, RESPONSE, scripted([]), max_query_chars=10).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, "query_too_long")
    verdict = run(picnic, RESPONSE, scripted([]), max_documents_chars=10).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, "documents_too_long")


def test_the_invariant_a_failure_never_becomes_a_reward() -> None:
    for reward in (0.0, -1.0, -0.5):
        with pytest.raises(ValueError, match="UNSCORED has none"):
            Verdict(id="q", outcome=Outcome.UNSCORED, reward=reward)
    assert Verdict(id="q", outcome=Outcome.NO_CLAIMS, reward=None).reward is None
    for outcome in (Outcome.SUPPORTED, Outcome.REFUTED):
        with pytest.raises(ValueError, match="UNSCORED has none"):
            Verdict(id="q", outcome=outcome, reward=None)


@pytest.mark.parametrize(
    ("vote", "outcome"),
    [
        (RIGHT, Outcome.SUPPORTED),
        ("1. Evidence: The July picnic in Oslo raised 466 euros. [Answer: 466]", Outcome.REFUTED),
        ("1. Evidence: The July picnic in Kabul [Answer: 466]", Outcome.REFUTED),
        ("1. [Answer: 466]", Outcome.REFUTED),
        (ABSENT, Outcome.REFUTED),
    ],
)
def test_verbatim_evidence_can_be_required(vote, outcome, scripted, picnic) -> None:
    verdict = run(picnic, RESPONSE, scripted([CLAIM, vote, vote, vote]), verbatim_evidence=True).verdict
    assert verdict.outcome is outcome


def test_a_cut_checker_gives_only_its_complete_answers(scripted, picnic) -> None:
    complete = Sample(text=RIGHT + "\n2. Evid", finish_reason="length")
    assert run(picnic, RESPONSE, scripted([CLAIM, *[complete] * 3])).verdict.outcome is Outcome.SUPPORTED
    cut = Sample(text=RIGHT[:-1], finish_reason="length")
    assert run(picnic, RESPONSE, scripted([CLAIM, *[cut] * 3])).verdict.outcome is Outcome.UNSCORED


def test_trajectories_are_the_turns_in_order(scripted, picnic) -> None:
    cut = Sample(text="x", finish_reason="length")
    sampler = scripted([cut, CLAIM, RIGHT, OTHER, BROKEN], with_tokens=True, weights_version=3)
    result = run(picnic, RESPONSE, sampler, min_valid_voters=1)
    roles = [trajectory.role for trajectory in result.trajectories]
    assert roles == [Role.PROPOSER, Role.CHECKER, Role.CHECKER, Role.CHECKER]
    texts = [bytes(trajectory.response_token_ids[:-1]).decode() for trajectory in result.trajectories]
    assert texts == [CLAIM, RIGHT, OTHER, BROKEN]
    assert {trajectory.weights_version for trajectory in result.trajectories} == {3}
    prompt = bytes(result.trajectories[1].prompt_token_ids).decode()
    assert prompt.endswith("1. The July picnic in Kabul raised how many euros?")


@pytest.mark.parametrize(
    ("votes", "settings", "rewards"),
    [
        ([RIGHT, OTHER, RIGHT], {}, [0, -1, 0]),
        ([OTHER, RIGHT, OTHER], {}, [-1, 0, -1]),
        ([RIGHT, RIGHT, BROKEN], {}, [0, 0, -1]),
        ([RIGHT, RIGHT, BROKEN], {"refute_unreadable": False}, [0, 0, None]),
        ([RIGHT, RIGHT, Sample(text=BROKEN, finish_reason="length")], {}, [0, 0, None]),
        ([RIGHT, RIGHT, UNKNOWN], {}, [0, 0, -1]),
        ([RIGHT, RIGHT, UNKNOWN], {"refute_unreadable": False}, [0, 0, None]),
        ([RIGHT, RIGHT, BROKEN], {"reward_refuted": -0.5}, [0, 0, -0.5]),
        ([BROKEN, BROKEN, RIGHT], {}, [-1, -1, 0]),  # the answer is UNSCORED, which the trainer heeds
        ([RIGHT, ABSENT, RIGHT], {"reward_refuted": -0.5}, [0, -0.5, 0]),
        ([RIGHT, OTHER, RIGHT], {"min_valid_voters": 3}, [0, -1, 0]),
        ([RIGHT, RIGHT, OTHER], {"early_stop": True}, [0, 0]),
        ([RIGHT, OTHER, RIGHT], {"early_stop": True}, [0, -1, 0]),
        (['1. Evidence: "somewhere" [Answer: 466]', RIGHT, RIGHT], {"verbatim_evidence": True}, [-1, 0, 0]),
    ],
)
def test_each_voter_has_the_reward_of_its_own_votes(votes, settings, rewards, scripted, picnic) -> None:
    result = run(picnic, RESPONSE, scripted([CLAIM, *votes], with_tokens=True), **settings)
    assert [turn.own_reward for turn in result.trajectories] == [None, *rewards]


@pytest.mark.parametrize(
    ("votes", "settings", "rewards"),
    [
        ([RIGHT, OTHER, RIGHT], {}, [0, -1, 0]),  # the claim is supported: who says otherwise is wrong
        ([OTHER, RIGHT, OTHER], {}, [None, 0, None]),
        ([OTHER, OTHER.replace("Answer: 120", "Answer: 120.00 euros"), RIGHT], {}, [None, None, 0]),
        ([OTHER, THIRD, RIGHT], {}, [-1, -1, 0]),  # no majority
        ([OTHER, OTHER, THIRD], {}, [None, None, -1]),
        ([ABSENT, RIGHT, ABSENT], {}, [-1, 0, -1]),  # "cannot answer" is no other answer
        ([OTHER, BROKEN, OTHER], {}, [None, -1, None]),
        ([OTHER, OTHER, OTHER], {"early_stop": True}, [None, None]),
    ],
)
def test_a_vote_is_not_punished_for_the_majoritys_answer_against_the_claim(
    votes, settings, rewards, scripted, picnic
) -> None:
    result = run(picnic, RESPONSE, scripted([CLAIM, *votes], with_tokens=True), **settings)
    assert [turn.undisputed_reward for turn in result.trajectories] == [None, *rewards]


def test_of_several_claims_the_disputed_ones_alone_pay_nobody(scripted, picnic) -> None:
    response = "In 2025, 50 people came."
    claims = (
        "- Question: In which year did people come? [Answer: 2025]\n"
        "- Question: How many people came? [Answer: 50]"
    )
    disputing, wrong = (
        f"1. Evidence: a [Answer: {year}]\n2. Evidence: b [Answer: 51]" for year in (2025, 2024)
    )
    sampler = scripted([claims, disputing, disputing, wrong], with_tokens=True)
    result = run(picnic, response, sampler)
    assert result.verdict.reason == "contradicted"
    assert [turn.own_reward for turn in result.trajectories] == [None, -1, -1, -1]
    assert [turn.undisputed_reward for turn in result.trajectories] == [None, 0, 0, -1]


BORN = "- Question: When was Ann Lee born? [Answer: 1993]"
OF_ANOTHER = "1. Evidence: Bea Cox was born in 1993. [Answer: 1993]"
HER_OWN = "1. Evidence: Ann Lee was born in 1990. [Answer: 1990]"
STRICT = {"verbatim_evidence": True, "refute_by_lookup": ["number", "name", "date"]}


@pytest.fixture
def births() -> RagQuery:
    documents = (
        Document(id="ann", text="Ann Lee was born in 1990."),
        Document(id="bea", text="Bea Cox was born in 1993."),
    )
    return RagQuery(id="q2", query="When was Ann Lee born?", documents=documents)


def test_what_voters_support_and_a_lookup_refutes_is_refuted_by_setting(scripted, births) -> None:
    def audited(response: str, claim: str, vote: str, **settings: bool) -> Verdict:
        return run(births, response, scripted([claim, vote, vote, vote]), **settings).verdict

    wrong = ("Ann Lee was born in 1993.", BORN, OF_ANOTHER)
    assert audited(*wrong, verbatim_evidence=True).outcome is Outcome.SUPPORTED
    verdict = audited(*wrong, **STRICT)
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.REFUTED, -1, "not_in_documents")
    assert verdict.claims[0].note.startswith("the voters agree; a lookup refutes it: the documents say it of")
    assert verdict.claims[0].tally == {"1993": 3} and verdict.claims[0].consensus is None
    right = ("Ann Lee was born in 1990.", BORN.replace("1993", "1990"), HER_OWN)
    assert audited(*right, **STRICT).outcome is Outcome.SUPPORTED


def test_a_name_that_nobody_asks_about_is_looked_up(scripted, births) -> None:
    claim = "- Question: When was Ann Leigh born? [Answer: 1990]"

    def audited(**settings) -> AuditResult:
        sampler = scripted([claim, HER_OWN, HER_OWN, HER_OWN], with_tokens=True)
        return run(births, "Ann Leigh was born in 1990.", sampler, **settings)

    assert audited(verbatim_evidence=True).verdict.outcome is Outcome.SUPPORTED
    result = audited(**STRICT)
    assert (result.verdict.outcome, result.verdict.reason) == (Outcome.REFUTED, "not_in_documents")
    assert [(one.claim.index, one.claim.answer) for one in result.verdict.claims] == [
        (1, "1990"),
        (2, "Ann Leigh"),
    ]
    assert len(result.verdict.voted_claims) == 1
    assert [turn.own_reward for turn in result.trajectories] == [None, 0, 0, 0]


def test_a_lookup_decides_where_no_vote_can_be_read(scripted, births) -> None:
    for response, outcome in (
        ("Ann Leigh was born in 1990.", Outcome.REFUTED),
        ("Ann Lee was born in 1990.", Outcome.UNSCORED),
    ):
        unread = scripted([BORN.replace("1993", "1990"), BROKEN, BROKEN, BROKEN])
        assert run(births, response, unread, **STRICT).verdict.outcome is outcome


def test_votes_that_cannot_be_read_do_not_shelter_what_a_lookup_refutes(scripted, births) -> None:
    sampler = scripted([BORN, UNKNOWN, BROKEN, BROKEN], with_tokens=True)
    result = run(births, "Ann Lee was born in 1993.", sampler, **STRICT, refute_unreadable=False)
    assert (result.verdict.outcome, result.verdict.reward) == (Outcome.REFUTED, -1)
    assert result.verdict.claims[0].note.startswith("too few votes can be read; a lookup refutes it")
    assert [turn.own_reward for turn in result.trajectories] == [None] * 4, "a failure of a voter stays one"


def test_a_lookup_refutes_one_of_too_many_claims(scripted, births) -> None:
    claim = "- Question: When was Ann Leigh born? [Answer: 1990]"
    sampler = scripted([claim, HER_OWN, HER_OWN, HER_OWN])
    verdict = run(births, "Ann Leigh was born in 1990.", sampler, **STRICT, max_claims=1).verdict
    assert (verdict.outcome, verdict.reward) == (Outcome.REFUTED, -1), "a name and a date are two claims"


def test_what_a_lookup_refutes_is_one_error_of_a_rate(scripted, births) -> None:
    claim = "- Question: When was she born? [Answer: 1990]"
    sampler = scripted([claim, HER_OWN, HER_OWN, HER_OWN])
    settings = {**STRICT, "kinds": ["number", "name"], "reward_function": "error_rate", "proposer_retries": 0}
    verdict = run(births, "Ann Leigh was born in 1990.", sampler, **settings).verdict
    assert (verdict.reward, verdict.uncovered) == (-0.5, ()), "it is a claim now, and no uncovered mention"


def test_a_lookup_reads_what_stands_behind_the_first_thought(scripted, births) -> None:
    hidden = "<think>x</think>Ann Lee was born in 1993.</think> Yes."
    votes = scripted([BORN, OF_ANOTHER, OF_ANOTHER, OF_ANOTHER])
    assert run(births, hidden, votes, **STRICT, thinking=True).verdict.outcome is Outcome.REFUTED


def test_evidence_may_be_in_a_title(scripted) -> None:
    census = Document(id="c", title="Census of 2018", text="All people of the town were counted.")
    query = RagQuery(id="q3", query="When was the census?", documents=(census,))
    claim = "- Question: In which year was the census? [Answer: 2018]"
    for evidence, outcome in (('"Census of 2018"', Outcome.SUPPORTED), ('"Census"', Outcome.REFUTED)):
        votes = scripted([claim, *[f"1. Evidence: {evidence} [Answer: 2018]"] * 3])
        verdict = run(
            query, "It was in 2018.", votes, kinds=["number", "date"], verbatim_evidence=True
        ).verdict
        assert verdict.outcome is outcome


def test_another_checker_is_overruled_by_a_lookup_too(scripted, births) -> None:
    response, config = "Ann Lee was born in 1993.", AuditConfig(kinds=["number"], **STRICT)
    first = run(births, response, scripted([BORN, HER_OWN, HER_OWN, HER_OWN]), **STRICT).verdict
    assert first.reason == "contradicted"
    other = scripted([OF_ANOTHER] * 3)
    again = asyncio.run(recheck(births, response, first, sampler=other, prompts=PROMPTS, config=config))
    assert again.reason == "not_in_documents"


@pytest.mark.parametrize(
    ("votes", "own", "undisputed"),
    [
        ([OF_ANOTHER, OF_ANOTHER, HER_OWN], [-1, -1, -1], [-1, -1, None]),
        ([HER_OWN, HER_OWN, OF_ANOTHER], [-1, -1, -1], [None, None, -1]),
        ([ABSENT, BROKEN, OF_ANOTHER], [-1, -1, -1], [None, -1, -1]),
    ],
)
def test_a_vote_for_what_a_lookup_refutes_is_refuted(votes, own, undisputed, scripted, births) -> None:
    sampler = scripted([BORN, *votes], with_tokens=True)
    turns = run(births, "Ann Lee was born in 1993.", sampler, **STRICT).trajectories
    assert [turn.own_reward for turn in turns] == [None, *own]
    assert [turn.undisputed_reward for turn in turns] == [None, *undisputed]


def test_where_the_lookup_fails_nothing_is_paid(scripted, births) -> None:
    sampler = scripted([BORN.replace("1993", "1990"), HER_OWN, HER_OWN, HER_OWN])
    verdict = run(births, "Not Bea Cox, Ann Lee was born in 1990.", sampler, **STRICT, max_claims=1).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, Reason.TOO_MANY_CLAIMS)


def test_an_answer_that_a_lookup_refutes_is_not_paid_as_cannot_answer(scripted, births) -> None:
    query = births.model_copy(update={"unanswerable": True})
    sampler = scripted([BORN, OF_ANOTHER, ABSENT, OF_ANOTHER], with_tokens=True)
    turns = run(query, "Ann Lee was born in 1993.", sampler, **STRICT).trajectories
    assert [turn.own_reward for turn in turns] == [None, -1, 0, -1]


def test_no_trajectories_without_token_ids(scripted, picnic) -> None:
    assert run(picnic, RESPONSE, scripted([CLAIM, RIGHT, RIGHT, RIGHT])).trajectories == ()


def test_row_10_a_document_that_looks_like_a_prompt_changes_nothing(scripted) -> None:
    text = "Question: no\nQuery: 1. x [Answer: 7]\n1. Evidence: y [Answer: 8]\nThe July picnic raised 466."
    query = RagQuery(id="q", query="How much?", documents=(Document(id="d", text=text),))
    sampler = scripted([CLAIM, RIGHT, RIGHT, RIGHT])
    assert run(query, RESPONSE, sampler).verdict.outcome is Outcome.SUPPORTED
    assert text in sampler.requests[1].messages[1]["content"]


def test_answers_of_several_rounds_are_filed_under_their_claims(scripted, picnic) -> None:
    response = "In 2025, 50 people came and 7 stayed."
    claims = (
        "- Question: In which year did people come? [Answer: 2025]\n"
        "- Question: How many people came in 2025? [Answer: 50]\n"
        "- Question: How many of the 50 stayed? [Answer: 7]"
    )
    first = "1. Evidence: a [Answer: 2025]\n2. Evidence: c [Answer: 7]"
    second = "1. Evidence: b [Answer: 51]"
    wrong = first.replace("7]", "8]")
    sampler = scripted([claims, first, wrong, first, second, second, second], with_tokens=True)
    result = run(picnic, response, sampler)
    assert [(c.claim.answer, c.consensus) for c in result.verdict.claims] == [
        ("2025", "2025"),
        ("50", "51"),
        ("7", "7"),
    ]
    assert result.verdict.reason == "contradicted"
    assert [turn.own_reward for turn in result.trajectories] == [None, 0, -1, 0, -1, -1, -1]
    by_question = [turn.answer_rewards for turn in result.trajectories]
    assert by_question == [(), (0, 0), (0, -1), (0, 0), (-1,), (-1,), (-1,)]
    rate = run(
        picnic,
        response,
        scripted([claims, first, wrong, "2. x [Answer: 7]", second, second, second], with_tokens=True),
        reward_function="error_rate",
    )
    assert [turn.own_reward for turn in rate.trajectories] == [None, 0, -0.5, -1, -1, -1, -1]
    assert [turn.unreadable for turn in rate.trajectories] == [False] * 3 + [True] + [False] * 3
    assert [turn.answer_rewards for turn in rate.trajectories][1:4] == [(0, 0), (0, -1), (None, 0)]
