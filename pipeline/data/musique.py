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

from pydantic import Field

from pipeline.data.rows import MultiHopRow
from reward.offline.rows import InputRecord
from reward.types import Document


class MusiqueParagraph(InputRecord):
    idx: int
    title: str
    paragraph_text: str
    is_supporting: bool | None = None


class MusiqueRow(MultiHopRow):
    paragraphs: tuple[MusiqueParagraph, ...] = Field(min_length=1)
    answerable: bool = True

    @property
    def answers(self) -> tuple[str, ...]:
        """None of a row of the full set that cannot be answered."""
        return super().answers if self.answerable else ()

    @property
    def slice(self) -> str:
        """The number of hops: "2hop__85463_33311" is of "2hop"."""
        return self.id.partition("__")[0][:4]

    def to_documents(self) -> list[Document]:
        return [
            Document(id=f"{self.id}#{one.idx}", title=one.title, text=one.paragraph_text)
            for one in self.paragraphs
        ]

    def irrelevant(self) -> list[int] | None:
        flags = [paragraph.is_supporting for paragraph in self.paragraphs]
        return None if None in flags else [place for place, is_needed in enumerate(flags) if not is_needed]
