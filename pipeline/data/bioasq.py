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
snippets a line each. Questions without snippets ask nothing of any document; they are counted and left out.

All of these documents are relevant, and the paper trains on retrieved sets of which 30.1% are irrelevant
(Table 1) without saying how they were retrieved. Here distractors are abstracts of other questions' snippets,
drawn by a seed and put in any place among the relevant ones. None is of an abstract, or holds the text, that
the question itself has.
"""

import hashlib
import heapq
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from pipeline.data.rows import QuestionRow
from reward.offline.rows import InputRecord
from reward.types import Document, RagQuery

_POOL_SIZE = 20_000  # what all workers hold; a sample of larger files


class Snippet(InputRecord):
    document: Annotated[str, Field(min_length=1, description="Link to the abstract.")]
    text: Annotated[str, Field(min_length=1)]

    @property
    def pubmed_id(self) -> str:
        return self.document.rstrip("/").rsplit("/", 1)[-1]


class BioasqRow(QuestionRow):
    """A row of BioASQ task B without what tells the answer."""

    list_key: ClassVar[str | None] = "questions"

    question: Annotated[str, Field(alias="body", min_length=1)]
    snippets: tuple[Snippet, ...] = ()

    def to_documents(self) -> list[Document]:
        """The abstracts in the order of their first snippets; a snippet that occurs twice is listed once."""
        texts: dict[str, dict[str, None]] = {}
        for snippet in self.snippets:
            texts.setdefault(snippet.pubmed_id, {})[snippet.text.strip()] = None
        return [Document(id=pubmed_id, text="\n".join(parts)) for pubmed_id, parts in texts.items()]


@dataclass(frozen=True)
class Distractors:
    """What is drawn from, and how much."""

    pool: tuple[Document, ...]
    noise: float
    seed: int

    def add_to(self, query: RagQuery) -> tuple[RagQuery, int]:
        """The query with distractors among its documents, and how many; the same for the same seed.

        So many are added that their share is `noise` in the mean over queries.
        """
        draw = random.Random(f"{self.seed}:{query.id}")
        wanted = len(query.documents) * self.noise / (1 - self.noise)
        num_wanted = int(wanted) + (draw.random() < wanted % 1)
        ids = {document.id for document in query.documents}
        texts = {document.text for document in query.documents}
        chosen: list[Document] = []
        for document in draw.sample(self.pool, min(len(self.pool), num_wanted + len(ids) + 64)):
            if len(chosen) < num_wanted and document.id not in ids and document.text not in texts:
                chosen.append(document)
                ids.add(document.id)
                texts.add(document.text)
        documents = [*query.documents, *chosen]
        draw.shuffle(documents)
        return query.model_copy(update={"documents": tuple(documents)}), len(chosen)


def make_distractors(documents: Iterable[Document], *, noise: float, seed: int) -> Distractors:
    """Reads the documents of all questions and keeps those to draw from; `noise` is in [0, 1)."""

    def key(document: Document) -> bytes:
        return hashlib.sha256(f"{seed}:{document.id}:{document.text}".encode()).digest()

    return Distractors(tuple(heapq.nsmallest(_POOL_SIZE, documents, key=key)), noise, seed)
