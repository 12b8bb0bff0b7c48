"""`march doctor`: the artifact store, by made-up answers; tests/test_doctor_live.py asks real servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from orchestration.doctor.report import State
from orchestration.doctor.s3_store import check_conditions, check_rights, fix_of


def refusal(status: int) -> Exception:
    from botocore.exceptions import ClientError

<<<<<<< HEAD
    return ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": status}}, "HeadBucket")
=======

GOOD = S3Facts(
    "s3://b/p", "http://s3:8333", took_s=0.012,
    conditions=Conditions(),
)  # fmt: skip


def s3(facts: S3Facts = GOOD, *, has_lock: bool = False, **changes: Any) -> dict[str, Finding]:
    return by_check(check_s3(replace(facts, **changes), has_lock=has_lock))
>>>>>>> registry


@pytest.mark.parametrize(
    ("error", "says"),
    [
<<<<<<< HEAD
        (refusal(404), "make the bucket"),
        (refusal(403), "AWS_SECRET_ACCESS_KEY"),
        (refusal(403), "this machine's clock"),  # S3 refuses what was signed a quarter of an hour ago
        (ValueError("Unable to locate credentials"), "set AWS_ACCESS_KEY_ID"),
        (ValueError("Could not connect"), "fix AWS_ENDPOINT_URL"),
=======
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
>>>>>>> registry
    ],
)
def test_what_to_do_about_a_bucket(error: Exception, says: str) -> None:
    assert says in fix_of(error)


def test_a_right_that_is_refused_is_named() -> None:
    found = check_rights({"delete": "AccessDenied"}, "s3://b/p")
    assert (found.state, found.found) == (State.FAILED, "delete: AccessDenied")
    assert found.fix == "allow s3:DeleteObject on s3://b/p/*"
    assert check_rights({}, "s3://b/p").state is State.OK


def test_a_lock_stands_in_for_conditional_writes() -> None:
<<<<<<< HEAD
    lacking: Any = SimpleNamespace(can_compare_and_set=False, describe=lambda: "the endpoint lacks IfMatch")
    found = check_conditions(lacking, has_lock=False)
    assert found.state is State.FAILED and "MARCH_ARTIFACTS_LOCK" in found.fix
    assert check_conditions(lacking, has_lock=True).state is State.OK
=======
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
>>>>>>> registry
