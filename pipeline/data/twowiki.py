"""2WikiMultihopQA: questions over ten Wikipedia paragraphs of which two to four are needed.

https://github.com/Alab-NII/2wikimultihop, Apache-2.0; Ho et al. 2020. A JSON list, or one row a line:

    {"_id": "1e20ce89089d11ebbd78ac1f6bf848b6", "type": "bridge_comparison",
     "question": "Which film has the director who died first, Lola (1981 Film) or One Minute To Play?",
     "context": [["Abhishek Saxena", ["Abhishek Saxena is an Indian Bollywood and Punjabi film ...",
                                      "The Phullu movie was released in theaters on 16 June ..."]], ...],
     "supporting_facts": [["Lola (1981 film)", 0], ...], "evidences": [...], "answer": "...", ...}

The sentences of a paragraph carry no spaces at their ends and are joined with one.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipeline.data.rows import MultiHopRow
from reward.offline.rows import RowId
from reward.types import Document


class ParagraphsRow(MultiHopRow):
    """A question over paragraphs of sentences, as 2WikiMultihopQA and HotpotQA lay them out."""

    joined_by: ClassVar[str]  # what is between two sentences of a paragraph

    id: RowId = Field(alias="_id")
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(
        min_length=1, description="Title and sentences of each paragraph."
    )
    supporting_facts: tuple[tuple[str, int], ...] | None = None

    def to_documents(self) -> list[Document]:
        """The paragraphs."""
        return [
            Document(id=f"{self.id}#{i}", title=title, text=self.joined_by.join(sentences).strip())
            for i, (title, sentences) in enumerate(self.context)
        ]

    def irrelevant(self) -> list[int] | None:
        """Places of the paragraphs that no supporting fact is in."""
        if self.supporting_facts is None:
            return None
        needed = {title for title, _ in self.supporting_facts}
        return [place for place, (title, _) in enumerate(self.context) if title not in needed]


class TwoWikiRow(ParagraphsRow):
    """A row of 2WikiMultihopQA."""

    joined_by = " "
