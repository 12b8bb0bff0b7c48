"""2WikiMultihopQA and HotpotQA: questions over ten Wikipedia paragraphs of which two to four are needed.

2WikiMultihopQA, https://github.com/Alab-NII/2wikimultihop, Apache-2.0; Ho et al. 2020. A JSON list, or one
row a line:

    {"_id": "1e20ce89089d11ebbd78ac1f6bf848b6", "type": "bridge_comparison",
     "question": "Which film has the director who died first, Lola (1981 Film) or One Minute To Play?",
     "context": [["Abhishek Saxena", ["Abhishek Saxena is an Indian Bollywood and Punjabi film ...",
                                      "The Phullu movie was released in theaters on 16 June ..."]], ...],
     "supporting_facts": [["Lola (1981 film)", 0], ...], "evidences": [...], "answer": "...", ...}

The sentences of a paragraph carry no spaces at their ends and are joined with one.

HotpotQA, https://hotpotqa.github.io, CC BY-SA 4.0; Yang et al. 2018. In the distractor setting, a JSON list:

    {"_id": "5a8510a25542994c784ddaf0", "answer": "writer", "type": "comparison", "level": "medium",
     "question": "What profession does Stephen Jay Gould and Ann Beattie have in common?",
     "supporting_facts": [["Stephen Jay Gould", 1], ["Ann Beattie", 0]],
     "context": [["Jay Gould House", ["The Jay Gould House was a mansion located at 857 Fifth Avenue ...",
                                      " It was constructed for Jay Gould in the French ..."]], ...]}

Sentences carry their own leading spaces and are joined as they stand.
"""

from typing import ClassVar

from pydantic import Field

from pipeline.data.rows import MultiHopRow
from reward.offline.rows import RowId
from reward.types import Document


class ParagraphsRow(MultiHopRow):
    """What the rows of both share."""

    joined_by: ClassVar[str]  # what is between two sentences of a paragraph

    id: RowId = Field(alias="_id")
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)  # titles and sentences
    supporting_facts: tuple[tuple[str, int], ...] | None = None

    def to_documents(self) -> list[Document]:
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
    joined_by = " "


class HotpotRow(ParagraphsRow):
    joined_by = ""
