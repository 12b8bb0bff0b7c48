"""`march doctor`: the artifact store in S3, by made-up facts; tests/test_doctor_live.py asks real servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from orchestration.doctor.report import Finding, State
from orchestration.doctor.s3_store import S3Facts, check_s3, check_store
from pipeline.artifacts.conditions import Conditions
from pipeline.artifacts.settings import StoreSettings
from tests.canned_server import Canned, serve_canned

T = 10.0


def by_check(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {one.check: one for one in findings}


GOOD = S3Facts(
    "s3://b/p", "http://s3:8333", took_s=0.012,
    conditions=Conditions(),
)  # fmt: skip


def s3(facts: S3Facts = GOOD, *, has_lock: bool = False, **changes: Any) -> dict[str, Finding]:
    return by_check(check_s3(replace(facts, **changes), has_lock=has_lock))


@pytest.mark.parametrize(
    ("changes", "check", "state", "says"),
    [
        ({}, "S3 bucket", State.OK, "s3://b/p at http://s3:8333; answers in 12 ms"),
        ({}, "S3 conditions", State.OK, "has conditional writes"),
        ({"problem": "404: Not Found", "status": 404}, "S3 bucket", State.FAILED, "make the bucket"),
        ({"problem": "403: Forbidden", "status": 403}, "S3 bucket", State.FAILED, "AWS_SECRET_ACCESS_KEY"),
        (
            {"problem": "403: Forbidden", "status": 403, "skew_s": 1800.0},
            "S3 bucket",
            State.FAILED,
            "synchronise the clock, which is 30 minutes behind the server's",
        ),
        ({"problem": "Unable to locate credentials"}, "S3 bucket", State.FAILED, "set AWS_ACCESS_KEY_ID"),
        ({"problem": "Could not connect"}, "S3 bucket", State.FAILED, "fix AWS_ENDPOINT_URL"),
        (
            {"refused": {"delete": "AccessDenied"}},
            "S3 rights",
            State.FAILED,
            "allow s3:DeleteObject on s3://b/p/*",
        ),
        (
            {"conditions": Conditions(("IfMatch", "atomic conditions"))},
            "S3 conditions",
            State.FAILED,
            "lacks IfMatch",
        ),
    ],
)
def test_a_bucket(changes: dict[str, Any], check: str, state: State, says: str) -> None:
    found = s3(**changes)[check]
    assert found.state is state and says in f"{found.found} {found.fix}"


def test_a_lock_stands_in_for_conditional_writes() -> None:
    conditions = Conditions(("IfMatch", "atomic conditions"))
    assert s3(conditions=conditions, has_lock=True)["S3 conditions"].state is State.OK


def test_a_clock_that_s3_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    in_2001 = formatdate(1_000_000_000, usegmt=True)
    with serve_canned(Canned({"/b": (403, "")}, date=in_2001)) as canned:
        settings = StoreSettings(location="s3://b", endpoint=canned.address)
        (found,) = check_store(settings, timeout_s=T)
    assert found.state is State.FAILED and "403" in found.found
    assert found.fix.startswith("synchronise the clock") and "ahead of the server's" in found.fix
