"""One answer of a training beside its tokens: verdict, turns to train on, and the truth where it is known."""

from pydantic import Field

from pipeline.settings.ppo import CheckerCredit
from reward.types import Record, Role, Trajectory, Verdict


class OracleJudgement(Record):
    """What the truth says of one answer and of the consensus on its claims."""

    faithful: bool
    false_accept: bool
    false_reject: bool
    abstained: bool = False
    answerable: bool = True
    right: bool | None = None  # all that is asked for and nothing wrong; None in records of earlier versions
    num_consensus: int = 0
    num_consensus_right: int = 0


class RolloutRecord(Record):
    query_id: str
    response: str
    verdict: Verdict
    unanswerable: bool = Field(default=False, description="The query's: no claim of an answer is right.")
    turns: dict[Role, Trajectory] = Field(
        default_factory=dict, description="The turn of each other trained role to train on."
    )
    spare_turns: dict[Role, tuple[Trajectory, ...]] = Field(
        default_factory=dict, description="Turns that could be trained on and were not chosen."
    )
    checker_credit: CheckerCredit = CheckerCredit.ANSWER
    num_checker_turns: int = Field(default=0, description="Voters whose tokens came back.")
    weights_versions: dict[Role, tuple[int, ...]] = Field(
        default_factory=dict, description="Weight syncs before each role's turns, each count once, in order."
    )
    says_less: bool = Field(
        default=False, description="It mentions less than most answers to its query and is paid as refuted."
    )
    num_prompt_tokens: int = Field(default=0, description="Of the Solver's turn, as are the next two.")
    num_response_tokens: int = 0
    finish_reason: str = ""
    turn_tokens: dict[Role, tuple[int, ...]] = Field(
        default_factory=dict, description="Sampled tokens of each turn that came back, trained or not."
    )
    oracle: OracleJudgement | None = Field(default=None, description="Ground truth, for monitoring only.")
    generation_s: float = Field(
        default=0.0, description="The Solver's turn, waiting for the engine included."
    )
    audit_s: float = 0.0

    def turn_reward(self, turn: Trajectory) -> float | None:
        """What one of `turns` is paid; None where it is not to be trained."""
        return turn_reward(turn, self.verdict, self.checker_credit)


def turn_reward(turn: Trajectory, verdict: Verdict, credit: CheckerCredit) -> float | None:
    """What a turn is paid, from -1 to 0; None where it is not to be trained.

    Nothing of an UNSCORED answer is but a turn that cannot be read: that is refuted, whatever others said.
    """
    if turn.unreadable:
        return turn.own_reward
    if verdict.reward is None:
        return None
    if turn.role is not Role.CHECKER:
        return verdict.reward
    if credit is CheckerCredit.UNDISPUTED_VOTE:
        return turn.undisputed_reward
    if turn.own_reward is None or credit is CheckerCredit.VOTE:
        return turn.own_reward
    return None if None in turn.answer_rewards else verdict.reward  # what others said pays no missing vote
