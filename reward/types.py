"""What crosses the audit's borders: frozen records for queries, claims, votes, trajectories and verdicts.

Every state is an enum and every failure has a name. The one invariant is enforced here, not by convention: a
`Verdict` with outcome UNSCORED has no reward, and any other verdict has one (see `Verdict`).
"""

from collections import Counter
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

_Reward = Annotated[float | None, Field(ge=-1, le=0, allow_inf_nan=False)]
MOST_ID_CHARS = 2048  # verdicts that are kept and lines of logs bear ids; a URL fits
_Id = Annotated[str, Field(max_length=MOST_ID_CHARS)]


class Record(BaseModel):
    """A frozen record that refuses unknown keys, so that a misspelt field is an error and not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Role(StrEnum):
    """The three roles that one policy plays (paper section 2.2)."""

    SOLVER = "solver"
    PROPOSER = "proposer"
    CHECKER = "checker"


class Outcome(StrEnum):
    """What an audit found about a whole response."""

    SUPPORTED = "SUPPORTED"  # the consensus of the voters equals every claim
    REFUTED = "REFUTED"  # some claim's consensus is another number, "cannot answer", or there is none
    NO_CLAIMS = "NO_CLAIMS"  # the response holds nothing to check: an abstention, or an evasion
    UNSCORED = "UNSCORED"  # the audit itself failed; never a reward


class ClaimState(StrEnum):
    """What the voters found about one claim; the states are kept apart on purpose."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"  # the consensus is another number
    NOT_IN_DOCUMENTS = "not_in_documents"  # the consensus is "cannot answer"
    NO_CONSENSUS = "no_consensus"  # the first place of the vote is shared
    FAILED = "failed"  # too few valid votes


class Document(Record):
    """One retrieved passage."""

    id: _Id = Field(description="Unique among the documents of its query.")
    title: str = Field(default="", description="Shown to the roles before the text; may be empty.")
    text: str = Field(description="The passage itself, never cut by the audit.")


class RagQuery(Record):
    """A question and what was retrieved for it; no reference answer, so none can leak into training."""

    id: _Id
    query: str
    documents: tuple[Document, ...] = Field(min_length=1)
    unanswerable: bool = Field(
        default=False,
        exclude_if=lambda unanswerable: not unanswerable,
        description="The documents are known not to answer it, since what does was taken away on purpose: "
        "saying so is right, and any claim is wrong.",
    )

    @model_validator(mode="after")
    def _document_ids_are_unique(self) -> Self:
        ids = [d.id for d in self.documents]
        if len(set(ids)) != len(ids):
            twice = Counter(ids).most_common(1)[0][0]
            raise ValueError(f"documents: id {twice!r} is used twice; give every document its own id")
        return self


class Span(Record):
    """A half-open range of characters, `text[start:end]`."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)


class DocumentSpan(Record):
    """A half-open range of characters of one document's text."""

    document: str = Field(description="Id of the document.")
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class ClaimSource(StrEnum):
    """Who asked the question of a claim."""

    PROPOSER = "proposer"
    TEMPLATE = "template"  # in earlier files alone: the number's own sentence without its numbers
    LEXICAL = "lexical"  # nobody: the number was looked up


class Claim(Record):
    """A question whose answer is one number, name or date of the response (paper section 2.2, the Proposer).

    Example: `Claim(index=1, question="How many euros did the July picnic in Kabul raise?", answer="466")`.
    """

    index: int = Field(
        ge=1, description="Place among the claims, from 1; the number the Checker answers under."
    )
    question: str
    answer: str = Field(description="The number, name or date as the Proposer wrote it.")
    kind: str = Field(
        default="number",
        description='"number", "name" or "date": which rules compare it; "field": a check did.',
    )
    span: Span | None = Field(default=None, description="Where it is in the response.")
    source: ClaimSource = ClaimSource.PROPOSER


class Answer(Record):
    """One voter's answer to one question: a number, name or date, or None for "cannot answer"."""

    value: str | None = Field(description="The answer as written; None when the voter says it cannot answer.")
    unproven: str | None = Field(
        default=None,
        exclude_if=lambda unproven: unproven is None,
        description="What it answered, where evidence is required and no document has it; `value` is None.",
    )
    evidence: str = Field(default="", description="What the voter quoted or said before its answer.")
    evidence_at: DocumentSpan | None = Field(
        default=None, description="Where a document holds the evidence verbatim; None when none does."
    )
    evidence_says: str = Field(
        default="",
        description="The document's own number, name or date at that place, if it is the one of the answer.",
    )


class Sample(Record):
    """One completion of a sampler, with the exact tokens when the sampler knows them."""

    text: str
    finish_reason: str = Field(description='"stop" when the model ended by itself, "length" when it was cut.')
    token_ids: tuple[int, ...] | None = Field(
        default=None, description="(A,) sampled ids, the end token included."
    )
    logprobs: tuple[float, ...] | None = Field(
        default=None, description="(A,) log-probabilities under the sampler."
    )


class TokenUse(Record):
    """What one request cost, in tokens."""

    num_prompt: int = Field(ge=0, description="Once, however many completions were asked for.")
    num_completion: int = Field(ge=0, description="Of all completions together.")
    num_cached: int | None = Field(
        default=None,
        ge=0,
        description="How much of the prompt the engine's prefix cache held, for one of the completions, as "
        "vLLM reports it; None when it is not known.",
    )


class SampleGroup(Record):
    """All completions of one request; they share the prompt and the weights."""

    samples: tuple[Sample, ...]
    prompt_token_ids: tuple[int, ...] | None = Field(
        default=None, description="(P,) ids the model really saw."
    )
    weights_version: int | None = Field(
        default=None, description="Count of weight syncs before this request."
    )
    use: TokenUse | None = Field(default=None, description="None when the server does not say.")


class Trajectory(Record):
    """The token record of one turn of one role, ready to be trained on: `prompt (P,) + response (A,)`."""

    role: Role
    prompt_token_ids: tuple[int, ...] = Field(min_length=1)
    response_token_ids: tuple[int, ...] = Field(min_length=1)
    logprobs: tuple[float, ...] | None = None
    finish_reason: str
    weights_version: int | None = None
    own_reward: _Reward = Field(
        default=None,
        description="Of a Checker's turn: the verdict's reward, were this voter alone and the claims that it "
        "was asked about the only ones; None where that would be UNSCORED, and for other roles. Of a query "
        'that is known to be unanswerable: of a supported answer for "cannot answer", else of a refuted one.',
    )
    undisputed_reward: _Reward = Field(
        default=None,
        description="`own_reward` without the claims that the consensus contradicts by the very answer that "
        "this voter gave: either the Solver or the Checkers are wrong. None where no claim is left.",
    )
    answer_rewards: tuple[float | None, ...] = Field(
        default=(), description="(Q,) of a Checker's turn: the same for each of its numbered questions alone."
    )
    unreadable: bool = Field(
        default=False,
        description="Of a Checker's turn: it ended by itself without an answer to each question, so its "
        "`own_reward` is a refuted one's, whatever became of the audit.",
    )


class ClaimVerdict(Record):
    """One claim, the votes on it and what follows."""

    claim: Claim
    state: ClaimState
    consensus: str | None = Field(
        default=None, description='The winning answer; None for "cannot answer" or none.'
    )
    votes: tuple[Answer | None, ...] = Field(
        default=(), description="One a voter, in order; None is a vote that could not be read."
    )
    tally: dict[str, int] = Field(
        default_factory=dict, description="Votes for an answer, by its canonical text in the claim's unit."
    )
    entropy: float = Field(default=0.0, ge=0, description="Shannon entropy of the tally, in nats.")
    evidence_holds_consensus: bool | None = Field(
        default=None,
        description="Whether the verbatim evidence of a vote for the consensus holds that number; None when "
        "there is no number to hold.",
    )
    note: str = Field(default="", description="For a person: why, where the state alone does not say it.")


class Provenance(Record):
    """What a verdict was made with: the same response, documents and provenance give the same verdict."""

    auditor: Literal["lexical", "model"]
    version: str = Field(description="Version of this package.")
    config_digest: str = Field(description="SHA-256 of the audit's settings.")
    prompt_digest: str = Field(default="", description="SHA-256 of the prompt set that was used.")
    model: str = Field(default="", description="What the sampler says that it samples.")
    seed: int | None = Field(default=None, description="Seed of the sampled completions, if one was set.")


class Verdict(Record):
    """What an audit says of a response.

    `reward` is None when the outcome is UNSCORED, and when it is NO_CLAIMS unless a setting gives it one;
    else it lies from -1 to 0, and below 0 when the response is refuted. Other scalars, such as 0/1, are the
    trainer's: no verdict carries them.
    """

    id: str
    outcome: Outcome
    reward: _Reward = Field(
        description="By `AuditConfig.reward_function`, or None: a failure never becomes a reward.",
    )
    reason: str = Field(
        default="",
        description="Why, in one machine-readable word: the closed set is `reward.judging.vote.Reason`.",
    )
    detail: str = Field(default="", description="For a person: what failed, with the error's own words.")
    claims: tuple[ClaimVerdict, ...] = ()
    num_mentions: int = Field(
        default=0,
        ge=0,
        validation_alias=AliasChoices("num_mentions", "num_numbers"),  # the name in earlier files
        description="What the response mentions of the kinds that are checked; each end of a range and each "
        "part of a date counts.",
    )
    uncovered: tuple[Span, ...] = Field(default=(), description="Mentions that no claim covers.")
    num_dropped_claims: int = Field(
        default=0, ge=0, description="Claims about a number that the response does not hold."
    )
    num_malformed_claims: int = Field(
        default=0, ge=0, description="Lines of the Proposer that could not be used."
    )
    unread: tuple[DocumentSpan, ...] = Field(
        default=(), description="Parts of documents that no voter was shown, for lack of space."
    )
    num_voters: int = Field(
        default=0, ge=0, description="Votes asked for a claim; with early stop, the most for any claim."
    )
    weights_version: int | None = None
    provenance: Provenance | None = None

    @property
    def voted_claims(self) -> tuple[ClaimVerdict, ...]:
        """The claims that voters were asked about; the others were looked up."""
        return tuple(one for one in self.claims if one.claim.source is not ClaimSource.LEXICAL)

    @model_validator(mode="after")
    def _a_failure_never_becomes_a_reward(self) -> Self:
        scored = self.outcome in (Outcome.SUPPORTED, Outcome.REFUTED)
        if (self.outcome is Outcome.UNSCORED and self.reward is not None) or (scored and self.reward is None):
            raise ValueError(
                f"reward: {self.reward!r} with outcome {self.outcome}; UNSCORED has none, SUPPORTED and "
                "REFUTED have one"
            )
        if self.outcome is Outcome.REFUTED and self.reward == 0:
            raise ValueError("reward: 0 with outcome REFUTED; 0 is the best reward, so it must be below")
        return self


class AuditResult(Record):
    """A verdict and, for training, the turns that led to it."""

    verdict: Verdict
    trajectories: tuple[Trajectory, ...] = ()
