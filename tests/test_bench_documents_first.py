"""Both orders of a prompt have the same words; only with the documents first do two roles share them."""

from itertools import takewhile

import pytest

from bench.reward_server.documents_first import WAYS, Samples, answers, lengthened, messages
from pipeline.tiny.world import worlds
from reward.samplers.token_ids import load_tokenizer
from reward.types import Role

QUERIES = [lengthened(query, 300, ("boats", "sold", "The")) for query in worlds(3, 1, "train")]


def text(way: str, role: Role) -> str:
    return "\n".join(one["content"] for one in messages(way, role, QUERIES[0].documents, "How many?"))


def test_documents_have_as_many_words_as_are_wanted_and_are_the_same_again() -> None:
    for query in QUERIES:
        assert sum(len(document.text.split()) for document in query.documents) == 300
    assert [lengthened(query, 300, ("boats", "sold", "The")) for query in worlds(3, 1, "train")] == QUERIES
    assert QUERIES[0].documents[0] != QUERIES[1].documents[0]


@pytest.mark.parametrize("role", [Role.SOLVER, Role.CHECKER])
def test_both_orders_have_the_same_words(role: Role) -> None:
    one, other = (sorted(text(way, role).split()) for way in WAYS)
    assert one == other


def test_roles_share_the_documents_where_these_come_first() -> None:
    tokenizer = load_tokenizer("pipeline/tiny/checkpoint", field="model")
    shared = {}
    for way in WAYS:
        solver, proposer, checker = answers(way, QUERIES, tokenizer)[0]
        pairs = zip(solver.prompt, checker.prompt, strict=False)
        shared[way] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        assert len(proposer.lengths) == len(solver.lengths) == 1 and len(checker.lengths) == 3
    assert shared["role_first"] < 10 and shared["documents_first"] > 300


def test_the_hit_rate_is_of_all_prompts() -> None:
    samples = Samples([2.0, 4.0, 4.0], num_prompt_tokens=4000, num_cached_tokens=3000)
    figures = samples.figures()
    assert figures["prefix_hit_rate"] == 0.75 and figures["audits_per_s"] == 32
