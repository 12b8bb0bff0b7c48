"""MLflow's side of the registry: model versions by content, the log's entries, aliases.

    MODEL            one version a set of weights; aliases candidate, champion, previous; tags march.*
    MODEL.history    one version an entry of the log (`log.py`), in the tag march.entry

The source of a stored model is what MLflow's clients load (`mlflow_model.py`). The server refuses any other
local path as a version's source, which is written as march-local://PATH. The address of the weights that our
own commands read is the tag march.weights_uri in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from orchestration.registry.log import Entry
from orchestration.registry.logged import StoredModel, log_stored_model
from orchestration.registry.server import pages, past_races, require_credentials, told, unless_missing
from pipeline.artifacts.address import located
from pipeline.record.tracking import LINEAGE_RUN_TAG, refuse_password

CANDIDATE, CHAMPION, PREVIOUS = "candidate", "champion", "previous"
URI_TAG, SHA256_TAG, LINEAGE_TAG = "march.weights_uri", "march.weights_sha256", "march.lineage_sha256"
REPORT_TAG, EVALUATION_TAG = "march.gate_report", "march.evaluation_uri"
CHAMPION_EVALUATION_TAG = "march.champion_evaluation_uri"
HISTORY_SUFFIX = ".history"
_ENTRY_TAG = "march.entry"
_MOST_TAG_CHARS = 100_000  # of MLflow 3


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
        ValueError: the server is remote and nothing says who asks, or the address holds a password.
    """

    def __init__(self, uri: str, *, has_key: bool = False) -> None:
        from mlflow import MlflowClient

        refuse_password("--registry", uri)
        require_credentials(uri, has_key=has_key)
        self.uri = uri
        self._client = MlflowClient(tracking_uri=uri, registry_uri=uri)

    def models(self) -> list[str]:
        """Names of the models that have versions of ours."""
        with told(self.uri):
            found = pages(self._client.search_registered_models)
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

    def register(
        self,
        model: str,
        *,
        uri: str,
        sha256: str,
        tags: Mapping[str, str],
        run_id: str | None = None,
        stored: StoredModel | None = None,
    ) -> tuple[str, bool]:
        """Registers weights by their address; the same content is the same version.

        Of a version that is there already the address becomes the new one, but for one in the artifact store,
        which no other replaces; tags that it has stay.

        Args:
            model: Its name.
            uri: Of the weights.
            sha256: Of the weights.
            tags: Kept with the version.
            run_id: MLflow run of their training; passed over where this server has none of that id.
            stored: The weights as MLflow's clients load them; None of weights that they cannot.

        Returns:
            The version, and whether it is new.
        """
        there, made = self._with_digest(model, sha256), None
        if there:
            self._add_tags(model, there[0], {**tags, URI_TAG: uri})
        else:
            kept = {key: value[:_MOST_TAG_CHARS] for key, value in tags.items()}
            kept |= {URI_TAG: uri, SHA256_TAG: sha256}
            made = self._create(model, uri, kept, run_id, stored)
            there = self._with_digest(model, sha256)
        first, *twins = (str(one.version) for one in there)
        # Two at once, or a retry of a lost answer, make two versions: the lower number stays.
        self._delete(model, twins)
        self._become_candidate(model, first)
        return first, first == made

    def lineages_of_runs(self) -> list[str]:
        """Addresses of the lineages that MLflow's runs name."""
        with told(self.uri):
            experiments = [one.experiment_id for one in pages(self._client.search_experiments)]
            if not experiments:
                return []
            wanted = f"tags.`{LINEAGE_RUN_TAG}` != ''"
            runs = pages(self._client.search_runs, experiment_ids=experiments, filter_string=wanted)
            return sorted({one.data.tags[LINEAGE_RUN_TAG] for one in runs})

    def append(self, model: str, entry: Entry) -> None:
        """Appends an entry to the history; the server gives it the next number."""
        history = model + HISTORY_SUFFIX
        with told(self.uri):
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
        with told(self.uri):
            found = unless_missing(self._client.get_registered_model, model)
        return {alias: str(version) for alias, version in found.aliases.items()} if found else {}

    def set_alias(self, model: str, alias: str, version: str | None) -> None:
        """Points an alias at a version, or takes it away."""
        with told(self.uri):
            if version is None:
                past_races(self._client.delete_registered_model_alias, model, alias)
            else:
                past_races(self._client.set_registered_model_alias, model, alias, version)

    def set_tag(self, model: str, version: str, key: str, value: str) -> None:
        """Sets a tag of a version; what is too long is left out, with a word that says so."""
        if len(value) > _MOST_TAG_CHARS:
            value = f"{len(value)} characters; in the history file"
        with told(self.uri):
            past_races(self._client.set_model_version_tag, model, version, key, value)

    def _with_digest(self, model: str, sha256: str) -> list[_Version]:
        """Versions of this content, the lowest number first."""
        return [one for one in self._search(model) if one.tags.get(SHA256_TAG) == sha256]

    def _add_tags(self, model: str, one: _Version, tags: Mapping[str, str]) -> None:
        moves = located(tags[URI_TAG]) is not None or located(one.tags.get(URI_TAG, "")) is None
        for name, value in tags.items():
            if name not in one.tags or (name == URI_TAG and moves and value != one.tags[name]):
                self.set_tag(model, str(one.version), name, value)

    def _create(
        self, model: str, uri: str, tags: dict[str, str], run_id: str | None, stored: StoredModel | None
    ) -> str:
        with told(self.uri):
            self._make(model)
            source, run_id, model_id = _as_source(uri), self._run(run_id), None
            if stored is not None:
                has_server = urlsplit(self.uri).scheme in ("http", "https")
                logged = log_stored_model(self._client, model, stored, run_id=run_id, has_server=has_server)
                source, model_id = logged.source, logged.model_id
            made = self._client.create_model_version(
                model, source, run_id=run_id, tags=tags, await_creation_for=0, model_id=model_id
            )
        return str(made.version)

    def _run(self, run_id: str | None) -> str | None:
        """A run's id, if the server has it."""
        return run_id if run_id and unless_missing(self._client.get_run, run_id) else None

    def _delete(self, model: str, twins: list[str]) -> None:
        """Takes away second versions of a content, but for those that somebody has decided about."""
        decided = {entry.version for _, entry in self.entries(model)} if twins else set()
        with told(self.uri):
            for version in twins:
                if version not in decided:
                    unless_missing(self._client.delete_model_version, model, version)

    def _become_candidate(self, model: str, version: str) -> None:
        """The version that was registered last is the candidate, unless it is something already."""
        is_last = str(self._search(model)[-1].version) == version
        if is_last and version not in self.aliases(model).values():
            self.set_alias(model, CANDIDATE, version)

    def _make(self, model: str) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._client.create_registered_model(model)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _search(self, model: str) -> list[_Version]:
        with told(self.uri):
            found = pages(self._client.search_model_versions, filter_string=f"name = '{_checked(model)}'")
            return sorted(found, key=lambda one: int(one.version))


class _Version:
    """What is read of MLflow's own model version."""

    name: str
    version: str
    source: str
    tags: Mapping[str, str]
    creation_timestamp: int


def _as_source(uri: str) -> str:
    is_local = urlsplit(uri).scheme in ("", "file")
    return f"march-local://{urlsplit(uri).path}" if is_local else uri


def _checked(model: str) -> str:
    if not model or any(letter in model for letter in "'/:@\\"):
        raise ValueError(f"MODEL: {model!r} cannot name a model; leave out quotes, / : @ and \\")
    return model
