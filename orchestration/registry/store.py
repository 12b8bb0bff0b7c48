"""MLflow's side of the registry: model versions by content, the log's entries, aliases.

    MODEL            one version a set of weights; aliases candidate, champion, previous; tags march.*
    MODEL.history    one version an entry of the log (`log.py`), in the tag march.entry

The server refuses a local path as a version's source, so such a source is written as march-local://PATH; the
true address of the weights is the tag march.weights_uri in any case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from orchestration.registry.log import Entry

CANDIDATE, CHAMPION, PREVIOUS = "candidate", "champion", "previous"
URI_TAG, SHA256_TAG, LINEAGE_TAG = "march.weights_uri", "march.weights_sha256", "march.lineage_sha256"
REPORT_TAG = "march.gate_report"
HISTORY_SUFFIX = ".history"
_ENTRY_TAG = "march.entry"
_PAGE = 1_000
_MOST_TAG_CHARS = 5_000  # MLflow's databases before 2.18 hold no more
_CREDENTIALS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_CLIENT_CERT_PATH")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class ModelVersion:
    """One set of weights."""

    version: str
    uri: str
    sha256: str
    aliases: tuple[str, ...]
    tags: Mapping[str, str]
    created_ms: int


class Registry:
    """The registry of one MLflow server.

    Args:
        uri: Its address, or sqlite:///FILE.
        has_key: Whether entries are signed.

    Raises:
        ValueError: the server is remote, and nothing says who asks.
    """

    def __init__(self, uri: str, *, has_key: bool = False) -> None:
        from mlflow import MlflowClient

        _require_credentials(uri, has_key=has_key)
        self.uri = uri
        self._client = MlflowClient(tracking_uri=uri, registry_uri=uri)

    def models(self) -> list[str]:
        """Names of the models that have versions of ours."""
        with _told(self.uri):
            found = _pages(self._client.search_registered_models)
            names = {one.name for one in found}
        return sorted(name for name in names if not name.endswith(HISTORY_SUFFIX))

    def versions(self, model: str) -> list[ModelVersion]:
        """All versions of a model, from the first to the last.

        Raises:
            ValueError: the server cannot be reached.
        """
        found = [
            ModelVersion(
                version=str(one.version),
                uri=one.tags.get(URI_TAG, one.source),
                sha256=one.tags.get(SHA256_TAG, ""),
                aliases=(),
                tags=one.tags,
                created_ms=one.creation_timestamp,
            )
            for one in self._search(model)
        ]
        aliases = self.aliases(model) if found else {}
        return [
            ModelVersion(
                **{**vars(one), "aliases": tuple(sorted(k for k, v in aliases.items() if v == one.version))}
            )
            for one in found
        ]

    def register(self, model: str, *, uri: str, sha256: str, tags: Mapping[str, str]) -> tuple[str, bool]:
        """Registers weights by their address; the same content is the same version.

        Returns:
            The version, and whether it is new.
        """
        existing = self._with_digest(model, sha256)
        if existing:
            return existing[0], False
        kept = {key: value[:_MOST_TAG_CHARS] for key, value in tags.items()}
        kept |= {URI_TAG: uri, SHA256_TAG: sha256}
        with _told(self.uri):
            self._make(model)
            made = self._client.create_model_version(model, _as_source(uri), tags=kept, await_creation_for=0)
            # Two at once make two versions; both writers see the lower number, and the higher one goes.
            first = self._with_digest(model, sha256)[0]
            if first != str(made.version):
                self._client.delete_model_version(model, made.version)
                return first, False
            self._client.set_registered_model_alias(model, CANDIDATE, first)
        return first, True

    def append(self, model: str, entry: Entry) -> None:
        """Appends an entry to the history; the server gives it the next number."""
        history = model + HISTORY_SUFFIX
        with _told(self.uri):
            self._make(history)
            self._client.create_model_version(
                history,
                f"march-history:///{entry.id}",
                tags={_ENTRY_TAG: entry.model_dump_json()},
                await_creation_for=0,
            )

    def entries(self, model: str) -> list[tuple[int, Entry]]:
        """Numbers and entries of the history, in order.

        Raises:
            ValueError: an entry cannot be read, or one is missing: nothing is promoted on such a history.
        """
        from pydantic import ValidationError

        history = model + HISTORY_SUFFIX
        found = []
        for one in self._search(history):
            try:
                found.append((int(one.version), Entry.model_validate_json(one.tags.get(_ENTRY_TAG, ""))))
            except ValidationError as error:
                raise ValueError(
                    f"{history}/{one.version}: is no entry of this version; restore its tag {_ENTRY_TAG}"
                ) from error
        missing = set(range(1, len(found) + 1)) - {number for number, _ in found}
        if missing:
            raise ValueError(f"{history}: entry {min(missing)} was deleted; restore the registry's database")
        return found

    def aliases(self, model: str) -> dict[str, str]:
        """Aliases of a model and their versions."""
        from mlflow.exceptions import MlflowException

        with _told(self.uri):
            try:
                found = self._client.get_registered_model(model)
            except MlflowException as error:
                if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                    return {}
                raise
        return {alias: str(version) for alias, version in found.aliases.items()}

    def set_alias(self, model: str, alias: str, version: str | None) -> None:
        """Points an alias at a version, or takes it away."""
        with _told(self.uri):
            if version is None:
                self._client.delete_registered_model_alias(model, alias)
            else:
                self._client.set_registered_model_alias(model, alias, version)

    def set_tag(self, model: str, version: str, key: str, value: str) -> None:
        """Sets a tag of a version; what is too long is left out, with a word that says so."""
        fits = len(value) <= _MOST_TAG_CHARS
        with _told(self.uri):
            self._client.set_model_version_tag(
                model, version, key, value if fits else f"{len(value)} characters; in the history file"
            )

    def _with_digest(self, model: str, sha256: str) -> list[str]:
        """Versions of this content, the lowest number first."""
        return [str(one.version) for one in self._search(model) if one.tags.get(SHA256_TAG) == sha256]

    def _make(self, model: str) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._client.create_registered_model(model)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _search(self, model: str) -> list[_Version]:
        with _told(self.uri):
            pages = _pages(self._client.search_model_versions, filter_string=f"name = '{_checked(model)}'")
            return sorted(pages, key=lambda one: int(one.version))


class _Version:
    """What is read of MLflow's own model version."""

    name: str
    version: str
    source: str
    tags: Mapping[str, str]
    creation_timestamp: int


def _require_credentials(uri: str, *, has_key: bool) -> None:
    """Refuses to change who is champion on another machine's server as nobody.

    Who may write is the server's to decide (MLflow's basic-auth, or a proxy before it); a check in this
    process alone would stop nobody who has the server's address.

    Raises:
        ValueError: the server is remote, and neither credentials nor a promotion key are set.
    """
    parts = urlsplit(uri)
    is_remote = parts.scheme in ("http", "https") and parts.hostname not in _LOOPBACK
    if is_remote and not has_key and not any(os.environ.get(name) for name in _CREDENTIALS):
        raise ValueError(
            f"--registry: {parts.hostname} is another machine, and nothing says who you are; set "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN, or "
            "MARCH_PROMOTION_KEY"
        )


def _as_source(uri: str) -> str:
    is_local = urlsplit(uri).scheme in ("", "file")
    return f"march-local://{urlsplit(uri).path}" if is_local else uri


def _checked(model: str) -> str:
    if not model or any(letter in model for letter in "'/:@\\"):
        raise ValueError(f"MODEL: {model!r} cannot name a model; leave out quotes, / : @ and \\")
    return model


def _pages(search: object, **arguments: object) -> Iterator[_Version]:
    """All results of one of the client's searches."""
    assert callable(search)
    token: str | None = None
    while True:
        page = search(max_results=_PAGE, page_token=token, **arguments)
        yield from page
        token = page.token
        if not token:
            return


@contextmanager
def _told(uri: str) -> Iterator[None]:
    """Gives MLflow's errors, and a server that is not there, one line."""
    from mlflow.exceptions import MlflowException

    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    try:
        yield
    except MlflowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"--registry {uri}: {problem:.300}; mend the address or the name") from error
