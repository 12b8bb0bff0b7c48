"""MLflow's side of the registry: model versions by content, their aliases and tags.

Who is champion is decided in the artifact store (`chain.py`); MLflow shows it. A version's source is what
MLflow's clients load (`mlflow_model.py`); our own commands read the weights by the tag march.weights_uri.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestration.registry.logged import StoredModel, log_stored_model
from orchestration.registry.server import EXISTS, MISSING, one_line_errors, pages, past_races, unless
from pipeline.record.tracking import LINEAGE_RUN_TAG, registry_address

if TYPE_CHECKING:
    from mlflow import MlflowClient

CANDIDATE, CHAMPION, PREVIOUS = "candidate", "champion", "previous"
URI_TAG, SHA256_TAG, LINEAGE_TAG = "march.weights_uri", "march.weights_sha256", "march.lineage_sha256"
REPORT_TAG, DECISION_TAG = "march.gate_report", "march.decision_uri"
MOST_TAG_CHARS = 100_000  # of MLflow 3


@dataclass(frozen=True)
class ModelVersion:
    """One set of weights."""

    version: str
    uri: str
    sha256: str
    aliases: tuple[str, ...]
    tags: Mapping[str, str]
    created_ms: int


def require_name(model: str) -> None:
    """Raises ValueError for what cannot name a model."""
    if not _can_be_ours(model):
        raise ValueError(f"MODEL: {model!r} cannot name a model; leave out quotes, / : @ and \\")


def _can_be_ours(model: str) -> bool:
    return bool(model) and not any(letter in model for letter in "'/:@\\")


class Registry:
    """The registry of one MLflow server; None: the file that a retraining without an address keeps here.

    An SQLite file must be there, unless this is what `creates` the registry.
    """

    def __init__(self, uri: str | None, *, creates: bool = False) -> None:
        self.uri = registry_address(uri, creates=creates)

    @cached_property
    def _client(self) -> "MlflowClient":
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)

    def models(self) -> list[str]:
        """Names of the models that can be ours."""
        return [name for name in self._names() if _can_be_ours(name)]

    def other_models(self) -> list[str]:
        return [name for name in self._names() if not _can_be_ours(name)]

    def versions(self, model: str) -> list[ModelVersion]:
        """All versions of a model, from the first to the last."""
        require_name(model)
        return self._versions(model)

    def all_versions(self) -> list[ModelVersion]:
        """Of all models, also of those whose names cannot be ours: they may have been renamed."""
        return [one for model in self._names() for one in self._versions(model)]

    def _names(self) -> list[str]:
        with one_line_errors(self.uri):
            return sorted(one.name for one in pages(self._client.search_registered_models))

    def _versions(self, model: str) -> list[ModelVersion]:
        quote = '"' if "'" in model else "'"
        with one_line_errors(self.uri):
            wanted = (
                {} if "\\" in model or quote in model else {"filter_string": f"name = {quote}{model}{quote}"}
            )
            entries = pages(self._client.search_model_versions, **wanted)
            found = sorted((one for one in entries if one.name == model), key=lambda one: int(one.version))
        aliases = self.aliases(model) if found else {}
        return [
            ModelVersion(
                version=str(one.version),
                uri=one.tags.get(URI_TAG, one.source),
                sha256=one.tags.get(SHA256_TAG, ""),
                aliases=tuple(sorted(k for k, v in aliases.items() if v == str(one.version))),
                tags=one.tags,
                created_ms=one.creation_timestamp,
            )
            for one in found
        ]

    def register(self, model: str, stored: StoredModel) -> tuple[str, bool]:
        """Registers weights, the same content as the same version; returns it, and whether it is new.

        Of a version that is there already the address becomes the new one; a lineage that it has stays. The
        run of the training is linked where this server has it.
        """
        tags = {URI_TAG: stored.uri, SHA256_TAG: stored.sha256}
        tags |= {LINEAGE_TAG: stored.lineage_sha256} if stored.lineage_sha256 else {}
        there, made = self._with_digest(model, stored.sha256), None
        if there:
            old = there[0].tags
            for name, value in tags.items():
                if name not in old or (name == URI_TAG and value != old[name]):
                    self.set_tag(model, there[0].version, name, value)
        else:
            made = self._create(model, tags, stored)
            there = self._with_digest(model, stored.sha256)
        first, *twins = (one.version for one in there)
        # Two at once, or a retry of a lost answer, make two versions: the lower number stays.
        for twin in twins:  # decisions find a version by its content
            self.delete(model, twin)
        last = self.versions(model)[-1]
        if last.version == first and not last.aliases:  # else it is something already
            self.set_alias(model, CANDIDATE, first)
        return first, first == made

    def delete(self, model: str, version: str) -> None:
        """Deletes a version, if it is there; its weights stay where they are."""
        with one_line_errors(self.uri, writes=True):
            unless(MISSING, self._client.delete_model_version, model, version)

    def lineages_of_runs(self) -> list[str]:
        """Addresses of the lineages that MLflow's runs name."""
        with one_line_errors(self.uri):
            experiments = [one.experiment_id for one in pages(self._client.search_experiments)]
            if not experiments:
                return []
            wanted = f"tags.`{LINEAGE_RUN_TAG}` != ''"
            runs = pages(self._client.search_runs, experiment_ids=experiments, filter_string=wanted)
            return sorted({one.data.tags[LINEAGE_RUN_TAG] for one in runs})

    def aliases(self, model: str) -> dict[str, str]:
        with one_line_errors(self.uri):
            found = unless(MISSING, self._client.get_registered_model, model)
        return {alias: str(version) for alias, version in found.aliases.items()} if found else {}

    def set_alias(self, model: str, alias: str, version: str | None) -> None:
        """Points an alias at a version, or takes it away."""
        with one_line_errors(self.uri, writes=True):
            if version is None:
                past_races(self._client.delete_registered_model_alias, model, alias)
            else:
                past_races(self._client.set_registered_model_alias, model, alias, version)

    def set_tag(self, model: str, version: str, key: str, value: str) -> None:
        with one_line_errors(self.uri, writes=True):
            past_races(self._client.set_model_version_tag, model, version, key, value)

    def _with_digest(self, model: str, sha256: str) -> list[ModelVersion]:
        return [one for one in self.versions(model) if one.sha256 == sha256]

    def _create(self, model: str, tags: dict[str, str], stored: StoredModel) -> str:
        with one_line_errors(self.uri, writes=True):
            unless(EXISTS, self._client.create_registered_model, model)
            run_id = stored.lineage.mlflow_run_id if stored.lineage else None
            if run_id and not unless(MISSING, self._client.get_run, run_id):
                run_id = None  # of another server
            has_server = urlsplit(self.uri).scheme in ("http", "https")
            logged, source = log_stored_model(
                self._client, model, stored, run_id=run_id, has_server=has_server
            )
            made = self._client.create_model_version(
                model, source, run_id=run_id, tags=tags, await_creation_for=0, model_id=logged
            )
        return str(made.version)
