"""What of the registry lies in the artifact store: evaluations, weights, and what gc must keep for it."""

from collections.abc import Collection
from pathlib import Path

from orchestration.promotion.records import Evidence, read_evidence
from orchestration.registry.store import LINEAGE_TAG, ModelVersion, Registry
from pipeline.artifacts.address import SCHEME, Artifact, located, named_artifact
from pipeline.artifacts.backend import Advance, no_progress
from pipeline.artifacts.layout import is_digest
from pipeline.artifacts.store import ArtifactStore
from pipeline.evaluate.results import read_manifest
from pipeline.lineage.publish import EVALUATION
from pipeline.models.sources import refuse_pickles
from reward.offline.files import digest_of_files


def bring_evidence(reference: str, store: ArtifactStore, *, is_dry: bool = False) -> Evidence:
    """An evaluation as a store has it, verified; a folder is put there, or read where it is if `is_dry`.

    What the gates read is what the decision refers to, whatever happens to a folder meanwhile.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: the store has it not, or it is something else.
    """
    is_stored = reference.startswith(SCHEME) or located(reference)
    found = named_artifact(reference, lambda: store) if is_stored else None
    if found is not None and found.manifest().kind != EVALUATION:
        raise ValueError(
            f"{reference}: is of kind {found.manifest().kind}; publish it with --kind {EVALUATION}"
        )
    folder = found.bring() if found else Path(reference)
    if is_dry:
        return read_evidence(folder)
    if found is None or found.store.backend.address != store.backend.address:
        read_manifest(folder)  # says so of a folder that holds no evaluation
        found = Artifact(store, store.publish(folder, kind=EVALUATION).digest)
    found.store.renew(found.digest)
    return read_evidence(found.bring(), found.digest)


def local_weights(version: ModelVersion, *, advance: Advance = no_progress) -> Path:
    """The folder of a version's weights, in the user's cache.

    They are read once: each file is held against its digest there, and the digest of all against the
    registered one before anything is fetched.

    Raises:
        ValueError: they cannot be had, are not what was registered, or are pickles.
    """
    if located(version.uri) is None:
        raise ValueError(f"{version.uri}: is no address of an artifact store; register the weights again")
    stored = named_artifact(version.uri)
    sha256s = {file.path: file.sha256 for file in stored.manifest().files}
    found = digest_of_files(sha256s)
    if found != version.sha256:
        raise ValueError(
            f"{version.uri}: its content is {found[:12]}, registered was {version.sha256[:12]}; "
            "register it again"
        )
    refuse_pickles(version.uri, sha256s)
    return stored.bring(advance=advance)


def hold_weights(uri: str, store: ArtifactStore) -> None:
    """Makes weights young for gc, so that they last as long as gates and a decision need them.

    Those of another store are that store's.

    Raises:
        ValueError: they are not in the store, or not whole.
    """
    place = located(uri)
    if place is not None and _is_here(place[0], store):
        store.renew(place[1])


def references(
    registry: Registry, store: ArtifactStore, *, without: Collection[ModelVersion] = ()
) -> set[str]:
    """Manifests of a store that a registered version (`without` some) or an MLflow run refers to.

    A digest counts wherever it is said to be, since one store may have several addresses.

    Raises:
        ValueError: the registry cannot be read, or what is said to be here is not.
    """
    versions = [one for one in registry.all_versions() if one not in without]
    named = {place for one in versions for place in _named(one)}
    named |= {place for uri in registry.lineages_of_runs() if (place := located(uri))}
    there = set(store.manifests())  # what is registered by now was published before
    lost = sorted(digest for where, digest in named if digest not in there and _is_here(where, store))
    if lost:
        raise ValueError(
            f"{store.backend.address}: has no manifest {lost[0]}, which the registry refers to"
            f"{f' (and {len(lost) - 1} more)' if lost[1:] else ''}; publish it again, or take it from there"
        )
    return {digest for _, digest in named} & there


def _named(version: ModelVersion) -> set[tuple[str, str]]:
    """Stores and digests that a version refers to; its lineage is where its weights are."""
    weights = located(version.uri)
    found = {
        place for key, value in version.tags.items() if key.startswith("march.") and (place := located(value))
    }
    lineage = version.tags.get(LINEAGE_TAG, "")
    return found | ({(weights[0] if weights else "", lineage)} if is_digest(lineage) else set())


def _is_here(location: str, store: ArtifactStore) -> bool:
    address = store.backend.address
    return location == address or (location.startswith("/") and str(Path(location).resolve()) == address)
