"""Which checkpoint a run resumes from: the newest one that is whole, and that no guard has rejected.

OpenRLHF saves the actor and the critic one after the other, and DeepSpeed points to the newest folder of each
by itself. A kill between the two would resume an actor with an older critic, or read half a folder. So the
trainer writes a manifest after both, by rename, and a resume trusts only manifests: it points both models to
the newest step that has one and removes what came after it. A manifest also says where a guard has ended the
run, and which checkpoints it rejected.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from reward.config import Settings
from reward.offline.files import replace_file

logger = logging.getLogger(__name__)

MODEL_FOLDERS = ("_actor", "_critic")
_TO_EVALUATE = "_hf"  # ends the name of a model that is saved beside a step's checkpoint


class Mark(StrEnum):
    NONE = "none"
    GOOD = "good"  # a guard has ended the run here
    REJECTED = "rejected"  # written after the good one: not to be used


class Manifest(Settings):
    model_config = ConfigDict(extra="ignore")  # earlier versions kept the guards' judgement here

    global_step: int
    mark: Mark = Mark.NONE


def mark_complete(folder: Path, step: int) -> None:
    """Records that every model's checkpoint of `step` is on disk, also when the power fails after it."""
    os.sync()
    _write(folder, Manifest(global_step=step))


def completed_steps(folder: Path) -> list[int]:
    """Returns the steps whose manifest and folders are all there and that are not rejected, oldest first."""
    return [manifest.global_step for manifest in _whole(folder)]


def roll_back(folder: Path, is_good: Callable[[int], bool]) -> int:
    """Marks the newest checkpoint that is good and all later ones as rejected; returns its step.

    Without a good one all are rejected and the step is 0, the start.
    """
    whole = _whole(folder)
    good = max((step for manifest in whole if is_good(step := manifest.global_step)), default=0)
    for manifest in reversed(whole):  # so that a kill meanwhile leaves none of the later ones in use
        if manifest.global_step >= good:
            mark = Mark.GOOD if manifest.global_step == good else Mark.REJECTED
            _write(folder, manifest.model_copy(update={"mark": mark}))
    return good


def prepare_resume(folder: Path) -> int:
    """Points all models to the newest usable checkpoint, removes later parts, returns its step or 0."""
    newest = max(completed_steps(folder), default=0)
    for manifest in folder.glob("global_step*.json"):
        if _step_of(manifest) > newest:
            manifest.unlink()  # or it would confirm a part of the step when that is taken again
    models = _models(folder)
    parts = (part for model in models for part in model.glob("global_step*"))
    for part in (*folder.glob(f"global_step*{_TO_EVALUATE}"), *parts):
        if _step_of(part) > newest:
            shutil.rmtree(part)
    for model in models:
        if newest:
            replace_file(model / "latest", f"global_step{newest}")
        else:
            shutil.rmtree(model)
    return newest


def model_of(folder: Path, step: int) -> Path:
    """Where the model of a step is saved to be evaluated."""
    return folder / f"global_step{step}{_TO_EVALUATE}"


def keep_model_of(folder: Path, step: int | None) -> None:
    """Removes the models to evaluate of all steps but one."""
    for model in folder.glob(f"global_step*{_TO_EVALUATE}"):
        if step is None or model != model_of(folder, step):
            shutil.rmtree(model)


def _step_of(path: Path) -> int:
    return int(re.sub(r"\D", "", path.name))


def _models(folder: Path) -> list[Path]:
    return [folder / name for name in MODEL_FOLDERS if (folder / name).is_dir()]


def _whole(folder: Path) -> list[Manifest]:
    models = _models(folder)
    found = list[Manifest]()
    for path in folder.glob("global_step*.json"):
        try:
            found.append(Manifest.model_validate_json(path.read_text()))
        except ValidationError:  # the power failed while it was written: an earlier one is whole
            logger.warning("%s: is cut or damaged; its checkpoint is not used", path)
    whole = [
        manifest
        for manifest in found
        if models and all((model / f"global_step{manifest.global_step}").is_dir() for model in models)
    ]
    usable = [manifest for manifest in whole if manifest.mark is not Mark.REJECTED]
    return sorted(usable, key=lambda manifest: manifest.global_step)


def _write(folder: Path, manifest: Manifest) -> None:
    replace_file(folder / f"global_step{manifest.global_step}.json", manifest.model_dump_json() + "\n")
