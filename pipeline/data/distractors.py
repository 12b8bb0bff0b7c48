"""Documents that have nothing to do with a question, added to the ones that do.

BioASQ gives only what is relevant, and the paper trains on retrieved sets of which 30.1% of the documents are
irrelevant (Table 1) without saying how they were retrieved. Here they are abstracts of other questions'
snippets, drawn by a seed and put in any place among the relevant ones. None is of an abstract, or holds the
text, that the question itself has.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Iterable
from dataclasses import dataclass

from reward.types import Document, RagQuery

NOISE = 0.3  # paper, Table 1: 30.14%
_POOL_SIZE = 20_000  # what all workers hold; a sample of larger files


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
    """Reads all documents and keeps those to draw from.

    Args:
        documents: Relevant ones of all questions.
        noise: Share of irrelevant documents to reach, in [0, 1).
        seed: Of the sample and of every draw.

    Raises:
        ValueError: the noise is not such a share.
    """
    if not 0 <= noise < 1:
        raise ValueError(
            f"--noise: {noise:g} is no share of irrelevant documents; give one from 0 to below 1"
        )
    keyed = ((_key(document, seed), document) for document in documents)
    kept = heapq.nsmallest(_POOL_SIZE, keyed, key=lambda pair: pair[0])
    return Distractors(tuple(document for _, document in kept), noise, seed)


def _key(document: Document, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{document.id}:{document.text}".encode()).digest()
