"""BioASQ's retrieved sets: the share of distractors, what they must not be, and the same by the same seed."""

from pathlib import Path

import pytest

from pipeline.data.bioasq import make_distractors
from reward.types import Document, RagQuery
from tests.benchmark_rows import queries_of, write_bioasq


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.6])
def test_the_share_of_distractors_is_the_noise(noise: float, tmp_path: Path) -> None:
    queries = queries_of("bioasq", write_bioasq(tmp_path, 400))
    distractors = make_distractors((d for q in queries for d in q.documents), noise=noise, seed=0)
    made = [distractors.add_to(query) for query in queries]
    num_irrelevant = sum(num for _, num in made)
    assert num_irrelevant / sum(len(query.documents) for query, _ in made) == pytest.approx(noise, abs=0.03)


def test_distractors_are_of_other_questions_and_other_abstracts(tmp_path: Path) -> None:
    queries = queries_of("bioasq", write_bioasq(tmp_path))
    documents = {document.id: document for query in queries for document in query.documents}
    distractors = make_distractors(documents.values(), noise=0.5, seed=0)
    places = []
    for query in queries:
        made, num_irrelevant = distractors.add_to(query)
        added = [document for document in made.documents if document not in query.documents]
        assert len(added) == num_irrelevant
        assert not {document.id for document in added} & {document.id for document in query.documents}
        assert all(document == documents[document.id] for document in added)
        assert set(query.documents) <= set(made.documents)
        assert (made.id, made.query) == (query.id, query.query)
        places += [made.documents.index(document) for document in added]
    assert 0 in places  # they do not all stand at the end


def test_nothing_of_the_same_abstract_or_the_same_text_is_added() -> None:
    own = Document(id="7", text="It has 50 exons.")
    query = RagQuery(id="a", query="How many exons?", documents=(own,))
    pool = (own, Document(id="7", text="Another part."), Document(id="8", text="It has 50 exons."))
    for seed in range(20):
        distractors = make_distractors(pool, noise=0.9, seed=seed)
        assert distractors.add_to(query) == (query, 0)


def test_a_seed_decides(tmp_path: Path) -> None:
    queries = queries_of("bioasq", write_bioasq(tmp_path))
    documents = [document for query in queries for document in query.documents]
    made = [
        [make_distractors(given, noise=0.3, seed=seed).add_to(query)[0] for query in queries]
        for seed, given in ((0, documents), (0, documents[::-1]), (1, documents))
    ]
    assert made[0] == made[1] != made[2]
