"""Why a row was left out, one line each in `removed.jsonl` beside the rows."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reward.types import Record

REMOVED_FILE = "removed.jsonl"


class Reason(StrEnum):
    """Why a row is not trained on; in the order in which they are looked for."""

    NO_DOCUMENTS = "no_documents"
    OVERLAP_QUESTION = "overlap_question"  # an evaluation set asks it, or nearly
    OVERLAP_DOCUMENT = "overlap_document"  # an evaluation set has a document of it, or nearly
    DUPLICATE = "duplicate"  # the same question and documents stand before
    NEAR_DUPLICATE = "near_duplicate"  # the question stands before, with nearly the same documents
    OVERLONG = "overlong"  # more prompt tokens than the limit


class Match(Record):
    """What a row is too much like."""

    id: str = Field(description="Of the other row, and of its document if that is what matched.")
    dataset: str = Field(description="Evaluation set, or source of the row that stands before.")
    similarity: float = Field(description="1 for equal words, else the estimate of the Jaccard similarity.")
    num_documents: int | None = Field(default=None, description="Documents of the row that matched.")


class Removal(Record):
    """One row that was left out."""

    id: str
    source: str
    place: str = Field(description="FILE:LINE; the file's name alone.")
    reason: Reason
    match: Match | None = None
    num_prompt_tokens: int | None = Field(default=None, description="Of an overlong prompt.")
