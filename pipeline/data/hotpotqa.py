"""HotpotQA: questions over ten Wikipedia paragraphs of which two are needed.

https://hotpotqa.github.io, CC BY-SA 4.0; Yang et al. 2018. In the distractor setting, a JSON list:

    {"_id": "5a8510a25542994c784ddaf0", "answer": "writer", "type": "comparison", "level": "medium",
     "question": "What profession does Stephen Jay Gould and Ann Beattie have in common?",
     "supporting_facts": [["Stephen Jay Gould", 1], ["Ann Beattie", 0]],
     "context": [["Jay Gould House", ["The Jay Gould House was a mansion located at 857 Fifth Avenue ...",
                                      " It was constructed for Jay Gould in the French ..."]], ...]}

The copies on model hubs have the same rows in another layout, as JSON lines:

    {"id": "5a8510a25542994c784ddaf0", "question": "...", "answer": "...",
     "supporting_facts": {"title": ["Stephen Jay Gould", "Ann Beattie"], "sent_id": [1, 0]},
     "context": {"title": ["Jay Gould House", ...], "sentences": [["The Jay Gould House was ...", ...], ...]}}

Sentences carry their own leading spaces and are joined as they stand.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from pipeline.data.twowiki import Paragraphs, ParagraphsRelevance, ParagraphsRow
from reward.offline.rows import RowId


def _pairs(first: str, second: str) -> BeforeValidator:
    """Two parallel lists as a list of pairs; anything else is left for the check."""

    def turn(value: Any) -> Any:
        if not isinstance(value, dict) or not {first, second} <= value.keys():
            return value
        firsts, seconds = value[first], value[second]
        if not isinstance(firsts, list) or not isinstance(seconds, list) or len(firsts) != len(seconds):
            raise ValueError(f"{first} and {second} are not two lists of one length")
        return tuple(zip(firsts, seconds, strict=True))

    return BeforeValidator(turn)


_Context = Annotated[Paragraphs, _pairs("title", "sentences")]


class HotpotRow(ParagraphsRow):
    """A row of HotpotQA, in either layout, without what tells the answer."""

    joined_by = ""

    id: RowId = Field(validation_alias=AliasChoices("_id", "id"))
    context: _Context = Field(min_length=1)


class HotpotRelevance(ParagraphsRelevance):
    """The same count, in either layout."""

    context: _Context
    supporting_facts: Annotated[tuple[tuple[str, int], ...] | None, _pairs("title", "sent_id")] = None
