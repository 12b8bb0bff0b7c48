"""The Terraform module: read as HCL, held against the provider's arguments, its policies tried on the store.

No provider can be had without a network, so nothing is planned. The policies are rendered and given to users
of moto, a simulation of Amazon's S3 and IAM that refuses what no policy allows, and the store does its work.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from string import Template
from typing import Any

import hcl2
import pytest
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count

from pipeline.artifacts.backend import StoreError
from pipeline.artifacts.s3 import S3Backend, make_client
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_garbage, remove

MODULE = Path(__file__).parents[1] / "infra" / "terraform"
ARGUMENTS = json.loads((Path(__file__).parent / "data" / "terraform" / "aws-6.25.0.json").read_text())
META = {"lifecycle", "depends_on", "count", "for_each", "provider"}
BUCKET, PREFIX = "march-artifacts", "march"

Block = dict[str, Any]


def parsed(name: str) -> Block:
    return dict(hcl2.loads((MODULE / name).read_text()))


def bare(text: str) -> str:
    return text.strip('"')


def own(body: Block) -> Block:
    """Without what the parser adds."""
    return {name: value for name, value in body.items() if not name.startswith("__")}


def resources() -> dict[str, Block]:
    """Resources by `type.name`."""
    found = {}
    for one in parsed("main.tf")["resource"]:
        for kind, bodies in one.items():
            found |= {
                f"{bare(kind)}.{bare(name)}": body for name, body in bodies.items() if name != "__is_block__"
            }
    return found


def blocks_of(body: Block) -> Iterator[tuple[str, Any]]:
    """Arguments and blocks, dynamic ones as the blocks that they make."""
    for name, value in own(body).items():
        if name != "dynamic":
            yield name, value
            continue
        for one in value:
            yield from ((bare(made), inside["content"]) for made, inside in own(one).items())


def strange(body: Block, known: Block, where: str) -> list[str]:
    """Arguments that the provider does not know, and required ones that are missing."""
    given = [(name, value) for name, value in blocks_of(body) if name not in META]
    found = [f"{where}.{name}: unknown" for name, _ in given if name not in known]
    names = {name for name, _ in given}
    found += [
        f"{where}.{name}: missing" for name, one in known.items() if one["required"] and name not in names
    ]
    for name, value in given:
        if name in known and isinstance(value, list) and "block" in known[name]:
            found += [line for one in value for line in strange(one, known[name]["block"], f"{where}.{name}")]
    return found


def test_every_argument_is_the_providers() -> None:
    found = [
        line
        for name, body in resources().items()
        for line in strange(body, ARGUMENTS[name.partition(".")[0]], name)
    ]
    assert found == [] and len(resources()) == 9


def test_what_is_no_argument_is_found() -> None:
    body = {"bucket": "b", "versioning_configuration": [{"state": "Enabled"}]}
    found = strange(body, ARGUMENTS["aws_s3_bucket_versioning"], "v")
    assert found == [
        "v.versioning_configuration.state: unknown",
        "v.versioning_configuration.status: missing",
    ]


def test_variables_are_declared_and_used() -> None:
    text = "".join(path.read_text() for path in MODULE.glob("*.tf"))
    used = set(re.findall(r"var\.(\w+)", text))
    declared = {bare(name): body for one in parsed("variables.tf")["variable"] for name, body in one.items()}
    assert used == set(declared)
    assert all("description" in body and "type" in body for body in declared.values())


@pytest.mark.skipif(not shutil.which("terraform"), reason="no terraform (HashiCorp's package; not in Debian)")
def test_terraform_finds_its_files_in_form() -> None:
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", "-recursive", str(MODULE)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_bucket_is_closed_versioned_and_encrypted() -> None:
    found = resources()
    assert found["aws_s3_bucket.artifacts"]["lifecycle"][0]["prevent_destroy"] is True
    (versioning,) = found["aws_s3_bucket_versioning.artifacts"]["versioning_configuration"]
    assert bare(versioning["status"]) == "Enabled"
    block = found["aws_s3_bucket_public_access_block.artifacts"]
    assert all(value is True for name, value in own(block).items() if name != "bucket")
    assert "aws_s3_bucket_server_side_encryption_configuration.artifacts" in found
    assert (
        'templatefile("${path.module}/policies/tls-only' in found["aws_s3_bucket_policy.artifacts"]["policy"]
    )


def test_no_rule_removes_a_current_version() -> None:
    """Only unfinished uploads and former contents go; those of objects only where removed_days is given."""
    body = resources()["aws_s3_bucket_lifecycle_configuration.artifacts"]
    actions = {name for key, value in blocks_of(body) if key == "rule" for one in value for name in own(one)}
    assert actions - {"id", "status", "filter"} == {
        "abort_incomplete_multipart_upload",
        "noncurrent_version_expiration",
    }
    always, removed = (one for made in body["dynamic"] for one in own(made).values())
    assert set(map(bare, always["for_each"])) == {"leases", "probe", "pointers"}
    (former,) = removed["content"][0]["noncurrent_version_expiration"]
    assert former["newer_noncurrent_versions"] == "${var.removed_days == null ? 1 : null}"


def policy(name: str) -> Block:
    text = (MODULE / "policies" / f"{name}.json.tftpl").read_text()
    names = {"bucket_arn": f"arn:aws:s3:::{BUCKET}", "prefix": PREFIX, "key_arn": "arn:aws:kms:::key/1"}
    return dict(json.loads(Template(text).substitute(names)))


def actions(name: str) -> set[str]:
    return {one for statement in policy(name)["Statement"] for one in statement["Action"]}


def test_policies_are_narrow() -> None:
    for path in (MODULE / "policies").glob("*.tftpl"):
        for statement in policy(path.name.partition(".")[0])["Statement"]:
            if statement["Effect"] == "Allow":
                assert "*" not in str(statement["Action"]) and statement["Resource"] != "*"
    assert not {"s3:DeleteObjectVersion", "s3:PutBucketPolicy"} & (actions("trainer") | actions("gc"))
    assert not [one for one in actions("auditor") if not one.startswith(("s3:Get", "s3:List"))]
    (removing,) = [one for one in policy("trainer")["Statement"] if "s3:DeleteObject" in one["Action"]]
    assert removing["Resource"] == f"arn:aws:s3:::{BUCKET}/{PREFIX}/probe/*"


def test_nobody_may_do_what_no_request_of_the_store_does() -> None:
    """boto3's transfer manager begins an upload again from its first part, so it lists no parts."""
    assert set().union(*map(actions, ROLES)) == {
        *("s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:AbortMultipartUpload"),
        *("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
    }


DENIED = "AccessDenied|Forbidden|forbidden"
ROLES = ("trainer", "promoter", "gc", "auditor")
_FREE = 2 + 3 * len(ROLES)  # requests that make bucket and users, before rights count


def stores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ArtifactStore]:
    """The store as each role sees it; under a lock, since of moto's writers at once several may win."""
    from boto3 import Session

    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3, iam = map(Session().client, ("s3", "iam"))
    s3.create_bucket(Bucket=BUCKET)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    found = {}
    for role in ROLES:
        iam.create_user(UserName=role)
        iam.put_user_policy(UserName=role, PolicyName=role, PolicyDocument=json.dumps(policy(role)))
        key = iam.create_access_key(UserName=role)["AccessKey"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        lock = folder / "pointers.lock"
        settings = StoreSettings(location=f"s3://{BUCKET}/{PREFIX}", part_mib=5, pointer_lock=lock)
        found[role] = ArtifactStore(S3Backend(settings, make_client(settings)))
    return found


@mock_aws
@set_initial_no_auth_action_count(_FREE)
def test_each_role_can_do_its_work_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = stores(tmp_path, monkeypatch)
    trainer, promoter, gc, auditor = (roles[name] for name in ROLES)
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"rows")
    large.write_bytes(b"weights" * 1_000_000)  # above a part: a multipart upload

    kept = trainer.publish(small, kind="rows").digest
    lost = trainer.publish(large, kind="model").digest
    trainer.move("champion", kept, expected=None)
    assert trainer.publish(small, kind="rows").digest == kept  # found there, and made young

    with pytest.raises(StoreError, match=DENIED):
        trainer.move("decisions/solver", kept, expected=None)
    promoter.move("decisions/solver", kept, expected=None)
    trainer.move("retrain/solver/1", kept, expected=None)
    with pytest.raises(StoreError, match=DENIED):
        trainer.backend.delete("pointers/retrain/solver/1")
    gc.backend.delete("pointers/retrain/solver/1")

    assert auditor.resolve("champion") == kept
    auditor.get(kept, tmp_path / "copy")
    assert (tmp_path / "copy" / "small").read_bytes() == b"rows"

    garbage = find_garbage(gc, grace=timedelta(0))
    assert {entry.key.rpartition("/")[2] for entry in garbage.manifests} == {lost}
    for one in (trainer, auditor):
        with pytest.raises(StoreError, match=DENIED):
            remove(one, garbage, grace=timedelta(0))
    assert remove(gc, garbage, grace=timedelta(0)) == len(garbage.manifests) + len(garbage.objects)
    with pytest.raises(StoreError, match=DENIED):
        auditor.publish(small, kind="other")
    with pytest.raises(StoreError, match=DENIED):
        gc.backend.delete("pointers/champion")
    with pytest.raises(StoreError, match=DENIED):
        gc.backend.delete("pointers/decisions/solver")
    assert auditor.resolve("champion") == kept
