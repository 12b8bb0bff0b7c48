"""TAT-QA: questions over a table of a financial report and the paragraphs around it.

https://nextplusplus.github.io/TAT-QA, CC BY 4.0; Zhu et al. 2021. A JSON list of contexts:

    {"table": {"uid": "5127ef77-...", "table": [["", "Fiscal Year 2018", ""], ["", "Net Sales", "% of Total"],
                                                ["APAC", "$479,987", "40.0%"], ...]},
     "paragraphs": [{"uid": "e6f273a2-...", "order": 1, "text": "Net sales"}, ...],
     "questions": [{"uid": "9ecbb204-...", "order": 1, "answer": ["2018", "2017"], "scale": "",
                    "question": "Which years does the table provide information for net sales by region?",
                    "answer_type": "multi-span", "answer_from": "table-text", "derivation": "", ...}, ...]}

The table is one document, a row a line with its cells between bars; the paragraphs follow in their order.
Scales such as "in thousands" stand where the report has them, in the table or beside it.
"""

from typing import Annotated

from pydantic import Field

from pipeline.data.rows import SourceRow
from reward.offline.rows import InputRecord, RowId, make_query
from reward.types import Document, RagQuery


class _Table(InputRecord):
    uid: RowId
    table: tuple[tuple[str, ...], ...] = Field(min_length=1)


class _Paragraph(InputRecord):
    uid: RowId
    order: int
    text: str


class TatQuestion(InputRecord):
    uid: RowId
    question: Annotated[str, Field(min_length=1)]


class TatRow(SourceRow):
    """A context of TAT-QA with its questions, without what tells the answers."""

    table: _Table
    paragraphs: tuple[_Paragraph, ...]
    questions: tuple[TatQuestion, ...]

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """Each question over the same documents: the table, then the paragraphs."""
        text = "\n".join(" | ".join(cells) for cells in self.table.table)
        paragraphs = sorted(self.paragraphs, key=lambda paragraph: paragraph.order)
        documents = [Document(id=self.table.uid, title="table", text=text)]
        documents += [Document(id=one.uid, text=one.text) for one in paragraphs]
        return tuple(make_query(place, one.uid, one.question, documents) for one in self.questions)
