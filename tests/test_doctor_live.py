"""`march doctor` against real servers: Swift's and moto's S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.doctor.report import Finding, State
from orchestration.doctor.s3_store import check_store
from pipeline.artifacts.s3 import make_client
from pipeline.artifacts.settings import StoreSettings
from tests.s3_server import S3Server, credentials, serve_moto, serve_swift

pytestmark = pytest.mark.slow


def by_check(settings: StoreSettings) -> dict[str, Finding]:
    return {one.check: one for one in check_store(settings, timeout_s=30.0)}


def bucket_of(server: S3Server, monkeypatch: pytest.MonkeyPatch, name: str = "doctor") -> Any:
    """A client that made a bucket."""
    be_somebody(monkeypatch, **server.environment)
    client = make_client(server.settings(name))
    client.create_bucket(Bucket=name)
    return client


def be_somebody(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Other credentials."""
    for key, value in variables.items():
        monkeypatch.setenv(key, value)


def test_moto_is_left_without_an_object_or_an_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_moto(tmp_path) as server:
        client = bucket_of(server, monkeypatch)
        settings = server.settings("doctor")
        found = by_check(settings)
        assert {name: one.state for name, one in found.items()} == {
            "S3 bucket": State.OK,
            "S3 rights": State.OK,
            "S3 conditions": State.OK,
        }, found
        assert not client.list_objects_v2(Bucket="doctor").get("Contents")
        assert not client.list_multipart_uploads(Bucket="doctor").get("Uploads")


def test_swift_lacks_conditions_and_a_bucket_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_swift(tmp_path) as server:
        client = bucket_of(server, monkeypatch)
        found = by_check(server.settings("doctor"))
        assert found["S3 rights"].state is State.OK, found["S3 rights"]
        assert found["S3 conditions"].state is State.FAILED
        assert not client.list_objects_v2(Bucket="doctor").get("Contents")
        gone = by_check(server.settings("no-such"))
        assert "make the bucket" in gone["S3 bucket"].fix
        be_somebody(monkeypatch, AWS_SECRET_ACCESS_KEY="wrong")
        shut = by_check(server.settings("doctor"))
        assert "AWS_SECRET_ACCESS_KEY" in shut["S3 bucket"].fix


def test_an_s3_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    be_somebody(monkeypatch, **credentials("key", "secret"))
    server = S3Server("http://127.0.0.1:9", {})
    found = by_check(server.settings("doctor"))
    assert found["S3 bucket"].state is State.FAILED and "AWS_ENDPOINT_URL" in found["S3 bucket"].fix
