"""MuSiQue: questions of two to four hops over twenty Wikipedia paragraphs.

https://github.com/StonyBrookNLP/musique, CC BY 4.0; Trivedi et al. 2022. One row a line, in the answerable
set (`musique_ans_v1.0_train.jsonl`) as in the full one:

    {"id": "2hop__85463_33311",
     "question": "During which span of years was the war where UN troops approached the Yalu River?",
     "paragraphs": [{"idx": 0, "title": "American Revolutionary War", "is_supporting": false,
                     "paragraph_text": "The last British troops departed New York City on ..."}, ...],
     "question_decomposition": [...], "answer": "...", "answer_aliases": [...], "answerable": true}

Rows of the full set that cannot be answered are rows like others: the documents then do not hold the answer.
"""

from __future__ import annotations

from pydantic import Field

from pipeline.data.rows import QuestionRow
from reward.offline.rows import InputRecord
from reward.types import Document


class MusiqueParagraph(InputRecord):
    """One paragraph, without whether it is needed."""

    idx: int
    title: str
    paragraph_text: str


class MusiqueRow(QuestionRow):
    """A row of MuSiQue without what tells the answer."""

    paragraphs: tuple[MusiqueParagraph, ...] = Field(min_length=1)

    def to_documents(self) -> list[Document]:
        """The paragraphs."""
        return [
            Document(id=f"{self.id}#{paragraph.idx}", title=paragraph.title, text=paragraph.paragraph_text)
            for paragraph in self.paragraphs
        ]


class MusiqueSupport(InputRecord):
    """Whether a paragraph is needed."""

    is_supporting: bool | None = None


class MusiqueRelevance(InputRecord):
    """Which paragraphs are not needed; for the data card and for `Choices.unanswerable`."""

    paragraphs: tuple[MusiqueSupport, ...]

    def irrelevant(self) -> list[int] | None:
        """Their places, for the row's one query; None where the file does not tell."""
        told = [paragraph.is_supporting for paragraph in self.paragraphs]
        return None if None in told else [place for place, is_needed in enumerate(told) if not is_needed]
