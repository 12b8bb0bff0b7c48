"""Registering weights: a version is a model in the artifact store, and what is known of where it came from.

Its digest is known from its manifest alone. By the reference of a lineage, the lineage is registered with the
weights that it made. The version's source is a folder of the store that any MLflow client loads.
"""

from pathlib import Path

from orchestration.registry.logged import StoredModel
from orchestration.registry.mlflow_model import write_mlflow_model
from orchestration.registry.store import Registry
from pipeline.artifacts.address import Artifact, OpenStore, environments_store, named_artifact
from pipeline.artifacts.manifest import MODEL
from pipeline.lineage.publish import LINEAGE, read_lineage
from pipeline.models.sources import refuse_pickles
from reward.offline.files import digest_of_files


def register_weights(
    registry: Registry, model: str, weights: str, *, store: OpenStore = environments_store
) -> tuple[str, bool]:
    """Registers weights as a version of a model, once; returns the version, and whether it is new.

    `weights` is their folder, which is put into the store, or their reference there, or their lineage's.

    Raises:
        ValueError: there is no such thing, it is no whole Hugging Face model, or a file is a pickle.
    """
    folder = Path(weights)
    if (folder / "config.json").is_file():
        opened = store()
        found = Artifact(opened, opened.publish(folder, kind=MODEL).digest)
    elif folder.is_dir():
        raise ValueError(f"{folder}: holds no Hugging Face model (config.json); fix the path")
    else:
        found = named_artifact(weights, store)
    return registry.register(model, _stored_model(found))


def _stored_model(found: Artifact) -> StoredModel:
    """The model that a manifest is of, or the lineage of one; made whole for MLflow's clients."""
    lineage, digest = None, None
    if found.manifest().kind == LINEAGE:
        lineage, digest = read_lineage(found.store, found.digest), found.digest
        if lineage.model is None or lineage.model.artifact is None:
            raise ValueError(f"{digest[:16]}: a lineage without weights; publish the run again")
        found = Artifact(found.store, lineage.model.artifact)
    manifest = found.manifest()
    sha256s = {file.path: file.sha256 for file in manifest.files}
    if manifest.kind != MODEL or "config.json" not in sha256s:
        raise ValueError(
            f"{found.address}: is of kind {manifest.kind}, and no Hugging Face model (--kind {MODEL}, with a "
            "config.json); name another"
        )
    refuse_pickles(found.address, sha256s)
    sha256 = digest_of_files(sha256s)
    if lineage and lineage.model and lineage.model.weights_sha256 not in (None, sha256):
        raise ValueError(f"{digest}: is the lineage of other weights than it names; publish the run again")
    found.store.renew(digest or found.digest)  # gc may be at work
    write_mlflow_model(found, weights_sha256=sha256, lineage=digest)
    return StoredModel(found.address, found.mlflow_address, sha256, digest, lineage)
