"""What a stage works with: its request, the store, a folder of its own, a file that tells its progress."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue, ValidationError

from orchestration.retrain.job import Job
from orchestration.retrain.stages import (
    KEY_DIGITS,
    StageProgress,
    StageRequest,
    StageResult,
    stage_folder,
)
from pipeline.artifacts.settings import settings_from_environment
from pipeline.artifacts.store import ArtifactStore, Published, open_store
from pipeline.atomic import write_atomically
from pipeline.settings.recipe import Recipe, load_recipe

PROGRESS_FILE = "progress.json"
PROGRESS_TO_LOG, PROGRESS_MARK = "MARCH_RETRAIN_PROGRESS_TO_LOG", "march-stage-progress: "
FILES, FILE_KIND, FOLDER_KIND = "files", "input", "input folder"  # of the job, for a cluster
_WRITE_EVERY_S, _LOG_EVERY_S = 0.5, 5.0


class Workshop:
    """Where one attempt at a stage is made."""

    def __init__(self, request: StageRequest) -> None:
        self.request = request
        self.job = request.job
        self.folder = stage_folder(request.job, request.stage, request.key)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._started = self._written = self._logged = time.monotonic()
        self._progress, self._lock = StageProgress(), threading.Lock()

    @cached_property
    def store(self) -> ArtifactStore:
        """The job's."""
        return open_job_store(self.job)

    @cached_property
    def recipe(self) -> Recipe:
        """The job's, as it is written."""
        return load_recipe(self.job.recipe.name, list(self.job.recipe.overrides))

    def material(self, name: str) -> str:
        """The digest of an input's manifest."""
        value = self.request.materials[name]
        assert isinstance(value, str), f"{name} is {value!r}"
        return value

    def result(
        self,
        *,
        outputs: Mapping[str, str] | None = None,
        facts: Mapping[str, JsonValue] | None = None,
        tokens: int = 0,
    ) -> StageResult:
        """What was made."""
        return StageResult(
            stage=self.request.stage.shelf,
            key=self.request.key,
            outputs=dict(outputs or {}),
            facts=dict(facts or {}),
            tokens=tokens,
            wall_s=round(time.monotonic() - self._started, 3),
            attempts=self.request.attempt,
        )

    def publish(self, source: Path, *, kind: str) -> Published:
        """Puts a file or folder into the store, and shows how far it is."""
        done = 0

        def advance(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            self.tell(label=f"storing {kind}", done=done // 1_000_000, total=0, note=f"{done / 1e6:,.1f} MB")

        return self.store.publish(source, kind=kind, advance=advance)

    def file(self, key: str, path: Path) -> Path:
        """A file or folder that the job names: where it is, or as the store has it on a cluster.

        Args:
            key: Of the job's tree.
            path: What the job says.
        """
        files = self.request.materials.get(FILES)
        if not isinstance(files, dict) or key not in files:
            return path
        digest = str(files[key])
        folder = self.bring(digest, self.folder / "inputs" / digest[:KEY_DIGITS])
        manifest = self.store.manifest(digest)
        return folder / manifest.files[0].path if manifest.kind == FILE_KIND else folder

    def bring(self, digest: str, folder: Path) -> Path:
        """Files of a manifest, on this machine, verified."""
        self.store.get(digest, folder)
        return folder

    def count_rows(self, _num_chars: int, num_rows: int) -> None:
        """Counts rows that were prepared."""
        self.tell(label="preparing", done=self._progress.done + num_rows, total=0)

    def tell(
        self,
        *,
        label: str,
        done: int,
        total: int,
        note: str = "",
        tokens: int | None = None,
        now: bool = False,
    ) -> None:
        """Writes the progress down, now and then; `now` whether or not that was just done."""
        with self._lock:  # parts of an upload end on other threads
            tokens = self._progress.tokens if tokens is None else tokens
            self._progress = StageProgress(label=label, done=done, total=total, note=note, tokens=tokens)
            if now or time.monotonic() - self._written >= _WRITE_EVERY_S:
                self._written = time.monotonic()
                write_atomically(self.folder / PROGRESS_FILE, self._progress.model_dump_json())
            if PROGRESS_TO_LOG in os.environ and time.monotonic() - self._logged >= _LOG_EVERY_S:
                self._logged = time.monotonic()
                print(f"{PROGRESS_MARK}{self._progress.model_dump_json()}", flush=True)


def open_job_store(job: Job) -> ArtifactStore:
    """The store that a job names, or the environment's."""
    return open_store(settings_from_environment(job.store.location, job.store.endpoint))


def read_progress(folder: Path) -> StageProgress:
    """How far a stage is; nothing where it has not said."""
    try:
        return StageProgress.model_validate_json((folder / PROGRESS_FILE).read_bytes())
    except (OSError, ValidationError):
        return StageProgress()
