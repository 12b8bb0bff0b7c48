"""What a world is: rows with their truth, in two splits that share nothing, and a judge of answers.

    for row in WikiWorld().rows("held_out"):
        judge(row, answer).right

The truth is for demonstrations, for monitoring and for measuring. It is never a reward.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from reward.config import AuditConfig
from reward.samplers import Message
from reward.types import RagQuery, Record, Role

Split = Literal["train", "held_out"]
SPLITS: tuple[Split, ...] = ("train", "held_out")
NUM_MEASURED = 400  # held-out rows, the first ones, of a measurement before and after a training
ALL_KINDS = AuditConfig(kinds=("number", "name", "date"))


class Asked(Record):
    """One fact that a query asks for.

    Example: `Asked(question="When was Sam Wood born?", subject="Sam Wood", kind="date", value="1883")`.
    """

    question: str = Field(description="As a Proposer would ask for it.")
    subject: str = Field(description="What the fact is about, as an answer would name it.")
    kind: str = Field(description='"number", "name" or "date": which rules compare it.')
    value: str | None = Field(description="As a document writes it; None where no document says it.")
    relation: str = Field(default="", description="What is said of the subject: the world's own word for it.")
    document: str = Field(default="", description="Id of the document that says it; empty where none does.")


class WorldRow(Record):
    """A query and what its maker knows about it."""

    query: RagQuery
    asked: tuple[Asked, ...] = Field(min_length=1, description="In the order of the query.")

    @property
    def is_answerable(self) -> bool:
        """Whether the documents say what is asked; all of it or nothing."""
        return self.asked[0].value is not None


class StatedValue(Record):
    """A number, name or date that an answer claims, and what the documents say of it."""

    start: int = Field(description="It is `response[start:end]`.")
    end: int
    is_true: bool
    truth: str | None = Field(default=None, description="What the documents say instead, where it is known.")


class Judgement(Record):
    """What the truth says of one answer."""

    right: bool = Field(description="Every asked fact and nothing wrong beside it; or a right abstention.")
    faithful: bool = Field(description="Nothing that it says is wrong, though something may be missing.")
    stated: tuple[bool, ...] = Field(description="Of each asked fact: whether it is stated rightly.")
    abstained: bool = Field(description="It says that the documents do not say, and nothing else.")
    answerable: bool = Field(description="The documents say what is asked.")
    values: tuple[StatedValue, ...] = Field(description="What it claims, in order.")

    @property
    def coverage(self) -> float:
        """Share of the asked facts that it states rightly, in [0, 1]; 0 where nothing is asked for."""
        return sum(self.stated) / max(len(self.stated), 1)


@dataclass(frozen=True)
class Demonstration:
    """One turn to learn from; the completion ends before the end token."""

    role: Role
    messages: list[Message]
    completion: str
    row_id: str = ""  # of the row that it was made of
