"""`march doctor`: the artifact store, by made-up answers; tests/test_doctor_live.py asks real servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from orchestration.doctor.report import State
from orchestration.doctor.s3_store import check_conditions, check_rights, fix_of


def refusal(status: int) -> Exception:
    from botocore.exceptions import ClientError

    error: Exception = ClientError(
        {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": status}}, "HeadBucket"
    )
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (refusal(404), "make the bucket"),
        (refusal(403), "AWS_SECRET_ACCESS_KEY"),
        (refusal(403), "this machine's clock"),  # S3 refuses what was signed a quarter of an hour ago
        (ValueError("Unable to locate credentials"), "set AWS_ACCESS_KEY_ID"),
        (ValueError("Could not connect"), "fix AWS_ENDPOINT_URL"),
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
    lacking: Any = SimpleNamespace(can_compare_and_set=False, describe=lambda: "the endpoint lacks IfMatch")
    found = check_conditions(lacking, has_lock=False)
    assert found.state is State.FAILED and "MARCH_ARTIFACTS_LOCK" in found.fix
    assert check_conditions(lacking, has_lock=True).state is State.OK
