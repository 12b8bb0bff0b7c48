"""The reward server's wire and token, without a server."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from reward import problems
from reward.serving.config import InvalidRequest, RequestLimits
from reward.serving.tokens import presented_token, read_token
from reward.serving.wire import (
    AuditRequest,
    BatchRequest,
    RewardRequest,
    check_values,
    read_record,
    read_samples,
    reward_reply,
)
from reward.types import Document, Outcome, RagQuery, Verdict

QUERY = RagQuery(id="q1", query="How many?", documents=(Document(id="d", text="466 euros."),))
LABEL = QUERY.model_dump_json()
PROMPT = "<|user|>How many?<|end|><|assistant|>"


@given(st.text())
def test_any_authorization_header_can_be_read(header: str) -> None:
    presented_token(header)
    assert presented_token("Bearer " + header) == header.strip()


@given(response=st.text(), suffixes=st.lists(st.text(max_size=3), max_size=3))
def test_a_response_is_what_follows_its_prompt(response: str, suffixes: list[str]) -> None:
    request = RewardRequest(query=(PROMPT + response,), prompts=(PROMPT,), labels=(LABEL,))
    ((query, read),) = read_samples(request, strip_suffixes=suffixes)
    assert query == QUERY and response.startswith(read)
    assert not any(suffix and read.endswith(suffix) for suffix in suffixes)


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        (
            [{"id": "a", "text": "60", "score": 1}],
            "query.documents.0.score: unknown key; remove it or fix its name",
        ),
        ([60], "query.documents.0: is no object, keys with values"),
        ([{}], "query.documents.0.id: missing; add it (and 1 more)"),
        ([], "query.documents: is empty; give one at least"),
        (50, "query.documents: is no list"),
        ([{"id": "d" * 2_049, "text": "60"}], "query.documents.0.id: has over 2048 characters; shorten it"),
    ],
)
def test_each_problem_of_a_request_is_counted_once(documents: JsonValue, says: str) -> None:
    body = {"query": {"id": "1", "query": "q", "documents": documents}, "response": "60"}
    for data in (body, json.dumps(body)):
        with pytest.raises(InvalidRequest) as caught:
            read_record(AuditRequest, data)
        assert str(caught.value) == says


def test_problems_beyond_what_anyone_reads_are_only_counted() -> None:
    with pytest.raises(InvalidRequest, match=r"^500\d problems; send what GET /openapi\.json describes$"):
        read_record(BatchRequest, json.dumps({"audits": [0] * 5_000}))


def test_commas_and_brackets_of_texts_are_no_values() -> None:
    limits = RequestLimits(max_values=1_000)
    texts = ["1,2,[3,4], " * 1_000, '\\","[' * 1_000]
    check_values(json.dumps({"documents": texts}).encode(), "body", limits)
    with pytest.raises(InvalidRequest, match="body: over max_values 1000 JSON values"):
        check_values(json.dumps({"documents": ["1"] * 1_001}).encode(), "body", limits)


def test_a_reply_cannot_be_made_of_a_failure() -> None:
    failed = Verdict(id="q", outcome=Outcome.UNSCORED, reward=None, reason="engine")
    with pytest.raises(ValueError, match="has no reward"):
        reward_reply([failed], without_claims=-1.0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "is not set; set at least 16 characters"),
        ("short", "has 5 characters; set at least 16 characters"),
        ("a-token-with-an-\u00e4-in-it", "has characters that are not ASCII; set others"),
    ],
)
def test_a_missing_or_short_token_is_one_clear_line(
    value: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MARCH_REWARD_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("MARCH_REWARD_TOKEN", value)
    with pytest.raises(ValueError, match=f"MARCH_REWARD_TOKEN {words}"):
        read_token()


def test_a_flood_of_unknown_keys_is_not_searched_for_nearest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = list[str]()

    def search(key: str, *_: object, **__: object) -> list[str]:
        searched.append(key)
        return []

    monkeypatch.setattr(problems, "get_close_matches", search)
    flood = {"k" * 100_000: 1, **{f"key{number}": 1 for number in range(1_000)}}
    with pytest.raises(InvalidRequest, match=r"and 1002 more\)"):
        read_record(AuditRequest, json.dumps(flood))
    assert len(searched) <= 10 and max(map(len, searched)) < 100
