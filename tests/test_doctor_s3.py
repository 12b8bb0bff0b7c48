"""`march doctor`: the artifact store, by made-up answers; tests/test_doctor_live.py asks real servers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestration.doctor.report import State
from orchestration.doctor.s3_store import check_conditions, check_rights, check_store
from pipeline.artifacts.s3 import S3Backend
from pipeline.artifacts.settings import StoreSettings


def failing(error: str | int) -> Any:
    """A client whose bucket answers with this code, or which fails by this error of botocore's."""
    from botocore import exceptions

    kinds = {
        "EndpointConnectionError": exceptions.EndpointConnectionError(endpoint_url="http://h"),
        "NoCredentialsError": exceptions.NoCredentialsError(),
    }
    answer: Any = {"Error": {"Code": error, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}

    def fail(**_: object) -> None:
        raise kinds.get(str(error)) or exceptions.ClientError(answer, "ListObjectsV2")

    return SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=fail))


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ("NoSuchBucket", "make the bucket"),
        ("SignatureDoesNotMatch", "fix AWS_SECRET_ACCESS_KEY"),
        ("RequestTimeTooSkewed", "this machine's clock"),
        ("NoCredentialsError", "set AWS_ACCESS_KEY_ID"),
        ("EndpointConnectionError", "fix AWS_ENDPOINT_URL"),
    ],
)
def test_what_to_do_about_a_bucket(error: str, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.artifacts.s3.make_client", lambda _: failing(error))
    (found,) = check_store(StoreSettings(location="s3://b"), timeout_s=1)
    assert found.state is State.FAILED and found.found.startswith("s3://b: ") and fix in found.fix


def test_a_right_that_is_refused_is_named() -> None:
    found = check_rights({"delete": "AccessDenied"}, "s3://b/p")
    assert (found.state, found.found) == (State.FAILED, "delete: AccessDenied")
    assert found.fix == "allow s3:DeleteObject on s3://b/p/*"
    assert check_rights({}, "s3://b/p").state is State.OK


def test_a_lock_stands_in_for_conditional_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.artifacts.s3.missing_conditions", lambda *_: ["IfMatch"])
    backend = S3Backend(StoreSettings(location="s3://b"), client=failing("AccessDenied"))
    found = check_conditions(backend)
    assert found.state is State.FAILED and "lacks IfMatch" in found.found
    assert found.fix.startswith("set MARCH_ARTIFACTS_LOCK")
    backend.settings = StoreSettings(location="s3://b", pointer_lock=tmp_path / "lock")
    assert check_conditions(backend).state is State.OK
    (tmp_path / "file").touch()
    backend.settings = StoreSettings(location="s3://b", pointer_lock=tmp_path / "file" / "lock")
    found = check_conditions(backend)
    assert found.state is State.FAILED and "MARCH_ARTIFACTS_LOCK: " in found.found
