"""The server's log: an id for every request, in all that is told of it, and never a token or a text."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from reward.serving.client import RewardServerError, SyncRewardClient
from reward.serving.logs import (
    Caller,
    TextFormatter,
    caller,
    configure_logging,
    json_formatter,
    name_request,
    request_id_of,
)
from tests.role_server import (
    LABEL,
    QUERY,
    RESPONSE,
    TOKEN,
    Spawn,
    Start,
    spawn_processes,  # noqa: F401
    start_servers,  # noqa: F401
)


def lines_of(told: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.splitlines()]


def test_a_line_a_request_and_its_id_in_all_of_its_lines(spawn: Spawn) -> None:
    server = spawn(access_log=True, deadline_s=0.2, pause_s=0.5)
    url, wrong = "/v1/audit", {"Authorization": "Bearer knock-knock", "X-Request-ID": "stranger"}
    server.http.get("/healthz")
    server.http.post(f"{url}?token=a-secret-in-the-address", headers=wrong, auth=None, json={})
    body = {"query": json.loads(LABEL), "response": RESPONSE}
    answer = server.http.post(url, json=body, headers={"X-Request-ID": "mine-7"})
    assert answer.headers["x-request-id"] == "mine-7" and answer.json()["verdict"]["reason"] == "deadline"
    server.http.get("/version%0A2026-01-01 INFO forged")
    server.process.terminate()
    _, told = server.end()
    lines = lines_of(told)
    asked = [
        line for line in lines if line["logger"] == "uvicorn.access" and "/healthz" not in line["message"]
    ]
    first, second, third = [line["message"].partition(" - ")[2] for line in asked]
    assert (first, second) == ('"POST /v1/audit HTTP/1.1" 401', '"POST /v1/audit HTTP/1.1" 200')
    assert third == '"GET /version%0A2026-01-01%20INFO%20forged HTTP/1.1" 404'
    assert asked[0]["message"].startswith("127.0.0.1:")
    assert [line["request_id"] for line in asked[:2]] == ["stranger", "mine-7"]
    (warned,) = [line for line in lines if line["level"] == "WARNING"]
    assert "UNSCORED" in warned["message"] and warned["request_id"] == "mine-7"
    for text in (TOKEN, "knock-knock", "picnic raised", "a-secret-in-the-address"):
        assert text not in told


def test_no_line_a_request_unless_asked_for(spawn: Spawn) -> None:
    server = spawn()
    assert server.audit().status_code == 200
    server.process.terminate()
    assert "uvicorn.access" not in server.end()[1]


def test_the_clients_errors_name_the_request(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(
        "reward.serving.middleware.request_id_of", lambda given: seen.append(given) or request_id_of(given)
    )
    running = start()
    with (
        SyncRewardClient(running.url, "not the token") as client,
        pytest.raises(RewardServerError, match="answered 401") as caught,
    ):
        client.audit(QUERY, RESPONSE)
    assert f"(request {seen[0]})" in str(caught.value)


def test_an_error_of_ours_has_an_id_too(start: Start) -> None:
    running = start()

    @running.app.get("/boom")
    async def boom() -> None:
        raise RuntimeError("secret words")

    answer = running.http.get("/boom", headers={"X-Request-ID": "b"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "b")
    assert answer.json() == {"detail": "internal error; see the server's log", "reason": "internal"}
    assert running.metric('march_requests_refused_total{reason="internal"}') == 1


def record(message: str) -> logging.LogRecord:
    made = logging.LogRecord("reward.x", logging.INFO, __file__, 1, message, (), None)
    caller.set(Caller("r-1", trace_id="a" * 32))
    name_request(made)
    return made


def test_json_has_no_second_message_for_terminals() -> None:
    record = logging.LogRecord("uvicorn.error", logging.INFO, "", 0, "Started process [%d]", (7,), None)
    record.color_message = "Started process [\x1b[36m%d\x1b[0m]"
    assert "color_message" not in json.loads(json_formatter().format(record))


def test_text_is_one_line_and_json_too() -> None:
    forged = "audit of q\n2026-01-01 INFO reward: all is well\x1b[2J \u202egnp.exe\u2066"
    text = TextFormatter("%(levelname)s %(message)s").format(record(forged))
    assert (
        text == "INFO audit of q\\x0a2026-01-01 INFO reward: all is well\\x1b[2J \\u202egnp.exe\\u2066 [r-1]"
    )
    line = json_formatter().format(record(forged))
    assert "\n" not in line
    told = json.loads(line)
    assert told["message"] == forged and told["time"].count(":") >= 2
    assert (told["level"], told["logger"], told["request_id"]) == ("INFO", "reward.x", "r-1")
    assert told["trace_id"] == "a" * 32


@pytest.mark.parametrize(
    ("log_format", "is_terminal", "kind"),
    [
        ("auto", True, "TextFormatter"),
        ("auto", False, "JsonFormatter"),
        ("text", False, "TextFormatter"),
        ("json", True, "JsonFormatter"),
    ],
)
def test_people_get_text_and_machines_json(
    monkeypatch: pytest.MonkeyPatch, log_format: Any, is_terminal: bool, kind: str
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    configure_logging(log_format)
    assert type(root.handlers[0].formatter).__name__ == kind
