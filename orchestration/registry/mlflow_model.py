"""A stored model as MLflow's clients read it: what MLflow and people want beside the weights.

    models/DIGEST/MLmodel                    flavours transformers and python_function, signature
    models/DIGEST/model/                     the files of the manifest, stored once
    models/DIGEST/components/tokenizer/      its small files again, where MLflow looks for a tokenizer
    models/DIGEST/model_card.md, LICENSE*, requirements.txt, input_example.json, ...

MLflow writes these files from their descriptions alone: neither weights nor transformers are loaded. MLmodel
is written last, so a client that finds it finds the rest. Our own readers go by the manifest and read none.
"""

import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline.artifacts.address import Artifact
from pipeline.artifacts.layout import WEIGHTS, model_key
from pipeline.artifacts.manifest import Manifest
from pipeline.artifacts.store import files_of
from pipeline.lineage.publish import read_lineage
from pipeline.lineage.record import Lineage, version_of
from reward.offline.excerpt import printable
from reward.user_yaml import load_yaml

CARD, MLMODEL, REQUIREMENTS = "model_card.md", "MLmodel", "requirements.txt"
_TASK, _CHAT = "text-generation", "llm/v1/chat"
_EXAMPLE = "Documents: The shop opens at 9. Question: When does the shop open?"
_TOKENIZER, _NO_TOKENIZER = ("*.json", "*.jinja", "*.model", "*.txt"), "*.index.json"
_NEEDED = ("mlflow", "transformers", "torch")  # to load the model
_FLAVORS: dict[str, dict[str, Any]] = {  # what MLflow's clients run and load, of each flavour
    "transformers": {
        "task": _TASK,
        "inference_task": _CHAT,
        "instance_type": "TextGenerationPipeline",
        "pipeline_model_type": "AutoModelForCausalLM",
        "model_binary": WEIGHTS,
        "components": ["tokenizer"],
        "tokenizer_type": "AutoTokenizer",
        "code": None,
    },
    "python_function": {
        "loader_module": "mlflow.transformers",
        "code": None,
        "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"},
        "streamable": False,
    },
}
_TEXTS = {"source_model_name", "transformers_version", "python_version"}  # they say where it is from


def write_mlflow_model(model: Artifact, *, weights_sha256: str, lineage: str | None) -> None:
    """Writes what a stored model lacks for MLflow's clients; who knows its lineage writes over what is there.

    The lineage is named by its digest in the same store.
    """
    if lineage is None and model.store.backend.stat(model_key(model.digest, MLMODEL)) is not None:
        return
    manifest = model.manifest()
    record = read_lineage(model.store, lineage) if lineage else None
    licence = _licence(model, record)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "mlflow"
        _save(folder, manifest, model.digest, record, {"weights_sha256": weights_sha256, "licence": licence})
        (folder / CARD).write_text(_card(record, lineage, weights_sha256, licence))
        _bring_copies(model, manifest, folder)
        for name, path in sorted(files_of(folder).items(), key=lambda file: file[0] == MLMODEL):
            model.store.backend.write(model_key(model.digest, name), path.read_bytes())


def foreign_code(model: Artifact) -> str:
    """What MLflow's clients would run or load of a stored model that `write_mlflow_model` does not write.

    These files are in no manifest, and who may write to the store may write them.

    Returns:
        The line of a report; empty where there is nothing, or no such file.
    """
    found = model.store.backend.read(model_key(model.digest, MLMODEL))
    if found is None:
        return ""
    try:
        flavors = load_yaml(found.content.decode())["flavors"]
        strange = [name for name in flavors if not _is_ours(flavors[name], _FLAVORS[name])]
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError):
        strange = ["what it holds"]
    needed = model.store.backend.read(model_key(model.digest, REQUIREMENTS))
    lines = needed.content.decode(errors="replace").split() if needed else []
    strange += [line for line in lines if line.partition("==")[0] not in _NEEDED]
    if not strange:
        return ""
    return (
        f"was not written by `march model register` ({strange[0]}): MLflow's clients would run it; remove it"
    )


def _is_ours(flavor: dict[str, object], ours: dict[str, Any]) -> bool:
    return {name: flavor[name] for name in flavor if name not in _TEXTS} == ours


def _save(
    folder: Path, manifest: Manifest, digest: str, lineage: Lineage | None, metadata: dict[str, str]
) -> None:
    from mlflow import pyfunc
    from mlflow.models import Model, ModelSignature
    from mlflow.types.llm import CHAT_MODEL_INPUT_SCHEMA, CHAT_MODEL_OUTPUT_SCHEMA

    versions = _versions(lineage)
    model = Model(metadata={"task": _CHAT, **metadata}, model_uuid=digest[:32])
    # The Auto classes go by config.json; `mlflow.transformers.save_model` would need transformers here.
    model.add_flavor(
        "transformers",
        **_FLAVORS["transformers"],
        source_model_name=lineage.run if lineage else digest[:12],
        transformers_version=versions.get("transformers", ""),
    )
    pyfunc.save_model(
        str(folder),
        loader_module=_FLAVORS["python_function"]["loader_module"],
        mlflow_model=model,
        signature=ModelSignature(CHAT_MODEL_INPUT_SCHEMA, CHAT_MODEL_OUTPUT_SCHEMA),
        input_example={"messages": [{"role": "user", "content": _EXAMPLE}], "max_tokens": 64},
        pip_requirements=[f"{name}=={versions[name]}" if name in versions else name for name in _NEEDED],
    )
    saved = Model.load(str(folder))
    saved.model_size_bytes = manifest.size
    saved.save(str(folder / MLMODEL))


def _bring_copies(model: Artifact, manifest: Manifest, folder: Path) -> None:
    """Lays down the small files that stand in a second place, too."""
    keys = manifest.keys()
    for file in manifest.files:
        places = [folder / file.path] if fnmatch(file.path, "LICENSE*") else []
        is_small = any(fnmatch(file.path, pattern) for pattern in _TOKENIZER)
        if is_small and not fnmatch(file.path, _NO_TOKENIZER):
            places.append(folder / "components" / "tokenizer" / file.path)
        for place in places:
            model.store.get_file(file, keys[file.path], place)


def _versions(lineage: Lineage | None) -> dict[str, str]:
    """Versions of packages: those of the training where they are known, else this environment's."""
    here = {name: found for name in _NEEDED if (found := version_of(name))}
    known = lineage.surroundings[-1].packages if lineage and lineage.surroundings else {}
    return {name: one.partition("+")[0] for name, one in (here | known).items()}  # +cpu is on no index


def _licence(model: Artifact, lineage: Lineage | None) -> str:
    """The licence of the first ancestor that says one."""
    while lineage is not None:
        if lineage.parent.origin is not None:
            return lineage.parent.origin.licence
        earlier = lineage.parent.lineage
        lineage = read_lineage(model.store, earlier) if earlier else None
    return ""


def _card(lineage: Lineage | None, digest: str | None, weights_sha256: str, licence: str) -> str:
    origin = lineage.parent.origin if lineage else None
    front: dict[str, object] = {"library_name": "transformers", "pipeline_tag": _TASK, "tags": ["march"]}
    if licence:
        front["license"] = licence.lower()
    if origin is not None:
        front["base_model"] = origin.location
    environment = Environment(
        loader=PackageLoader("orchestration.registry"), undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["cell"] = lambda text: printable(text).replace("|", "\\|")
    return environment.get_template(CARD).render(
        front=yaml.safe_dump(front, sort_keys=False).strip(),
        lineage=lineage,
        lineage_sha256=digest,
        start=origin.short_source if origin else lineage.parent.name if lineage else "",
        weights_sha256=weights_sha256,
        licence=licence,
        example=_EXAMPLE,
    )
