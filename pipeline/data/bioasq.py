"""BioASQ task B: questions of biomedical experts, with snippets of PubMed abstracts that hold the answer.

http://participants-area.bioasq.org/datasets, after registration; Krithara et al. 2023. Its paper gives CC BY
2.5 for the questions; other copies name the terms of the U.S. National Library of Medicine, whose abstracts
the snippets quote. The official page was not read for this project, so the terms are to be confirmed. A row,
made up here in the official layout, of `training11b.json` = {"questions": [row, ...]}:

    {"id": "55031181e9bde69634000014", "type": "factoid", "body": "How many exons has the gene ABC1?",
     "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/10000001", ...],
     "snippets": [{"document": "http://www.ncbi.nlm.nih.gov/pubmed/10000001",
                   "text": "The gene has 50 exons.",
                   "beginSection": "abstract", "endSection": "abstract",
                   "offsetInBeginSection": 131, "offsetInEndSection": 153}],
     "ideal_answer": ["It has 50 exons."], "exact_answer": [["50"]], "concepts": [...], "triples": [...]}

`documents` are links without text, so a query's documents are the abstracts that have snippets, each with its
snippets a line each. They are all relevant; `pipeline/data/distractors.py` adds others to make the retrieved
set. Some questions have no snippets: they ask nothing of any document, and are counted and left out.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipeline.data.rows import QuestionRow
from reward.offline.rows import InputRecord
from reward.types import Document


class Snippet(InputRecord):
    """A passage of a PubMed abstract."""

    document: Annotated[str, Field(min_length=1, description="Link to the abstract.")]
    text: Annotated[str, Field(min_length=1)]

    @property
    def pubmed_id(self) -> str:
        """The last part of the link."""
        return self.document.rstrip("/").rsplit("/", 1)[-1]


class BioasqRow(QuestionRow):
    """A row of BioASQ task B without what tells the answer."""

    list_key: ClassVar[str | None] = "questions"

    question: Annotated[str, Field(alias="body", min_length=1)]
    snippets: tuple[Snippet, ...] = ()

    def to_documents(self) -> list[Document]:
        """The abstracts in the order of their first snippets; a snippet that is listed twice stands once."""
        texts: dict[str, dict[str, None]] = {}
        for snippet in self.snippets:
            texts.setdefault(snippet.pubmed_id, {})[snippet.text.strip()] = None
        return [Document(id=pubmed_id, text="\n".join(parts)) for pubmed_id, parts in texts.items()]
