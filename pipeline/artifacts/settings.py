"""Which store, and how it is spoken to. Credentials are never among the settings: boto3 has its own chain."""

import os
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from pipeline.redaction import redact, refuse_password
from reward.config import Settings

MIB = 1 << 20
STORE_VARIABLE, DEFAULT_STORE = "MARCH_ARTIFACTS", "runs/artifacts"
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_LOCK_VARIABLE = "MARCH_ARTIFACTS_LOCK"
_FIX = "give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"


class StoreSettings(Settings):
    """A store: `s3://bucket/prefix`, or a folder."""

    location: str = DEFAULT_STORE
    endpoint: str | None = Field(default=None, description="Of an S3 that is not Amazon's; path addressing.")
    part_mib: int = Field(default=16, ge=5, le=5120, description="Of a multipart upload; S3's least is 5.")
    workers: int = Field(default=4, ge=1, le=64, description="Parts at once; memory is workers x part.")
    retries: Literal["standard", "adaptive"] = "adaptive"
    max_attempts: int = Field(default=8, ge=1, le=50, description="Of one request, by botocore.")
    timeout_s: float = Field(default=60.0, gt=0, description="To connect, and between two bytes.")
    pointer_lock: Path | None = Field(
        default=None,
        description="Where the endpoint cannot compare and set (`march doctor`): a file on a "
        "disk that all who move pointers share, which serialises them. None: by IfMatch and IfNoneMatch.",
    )

    @model_validator(mode="after")
    def _names_a_store(self) -> Self:
        scheme = urlsplit(self.location).scheme
        if scheme == "s3" and not self.bucket:
            raise ValueError(f"location: {self.location!r} names no bucket; give s3://BUCKET/PREFIX")
        if self.is_s3 and self.endpoint and not self.endpoint.lower().startswith(("http://", "https://")):
            raise ValueError(
                f"endpoint: {redact(self.endpoint)!r} is no address; write http://HOST:PORT or https://HOST "
                "(AWS_ENDPOINT_URL)"
            )
        if "://" in self.location and not self.is_s3:  # a scheme in capitals is none
            raise ValueError(
                f"location: {redact(self.location)!r} is no store; give s3://BUCKET/PREFIX or a folder"
            )
        return self

    @property
    def is_s3(self) -> bool:
        return self.location.startswith("s3://")

    @property
    def bucket(self) -> str:
        return urlsplit(self.location).netloc

    @property
    def prefix(self) -> str:
        """What comes before every key of an S3 store: nothing, or a path that ends in "/"."""
        path = urlsplit(self.location).path.strip("/")
        return f"{path}/" if path else ""


def settings_from_environment(location: str | None = None, endpoint: str | None = None) -> StoreSettings:
    """The store that is named, else MARCH_ARTIFACTS's, else the local folder."""
    found = (os.environ.get(name) for name in ENDPOINT_VARIABLES)
    lock = os.environ.get(_LOCK_VARIABLE)
    endpoint = endpoint or next(filter(None, found), None)
    location = location or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
    for field, url in (("endpoint", endpoint), ("location", location)):
        refuse_password(field, url, fix=_FIX)
    return StoreSettings(location=location, endpoint=endpoint, pointer_lock=Path(lock) if lock else None)
