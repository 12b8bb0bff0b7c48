"""What one attempt at a stage works with, and what its process tells the loop that started it.

Progress and problem are lines of JSON behind a mark: in a pipe of the loop's, or, on a cluster, in the log,
which is all that comes back from there.
"""

import contextlib
import os
import shutil
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from orchestration.retrain.records import (
    KEY_DIGITS,
    Stage,
    StageProgress,
    StageRequest,
    StageResult,
    stage_folder,
)
from orchestration.retrain.results import open_job_store
from pipeline.artifacts.store import ArtifactStore, Published
from pipeline.settings.recipe import Recipe, load_recipe
from reward.types import Record

PIPE_ENV = "MARCH_RETRAIN_PIPE"  # number of the pipe's descriptor
PROGRESS_MARK, PROBLEM_MARK = "march-stage-progress: ", "march-stage-problem: "
FILE_KIND, FOLDER_KIND = "input", "input folder"  # of the job, for a cluster
_PIPE_EVERY_S, _LOG_EVERY_S = 0.5, 5.0
_Report = TypeVar("_Report", bound=Record)


class Attempt:
    def __init__(self, request: StageRequest) -> None:
        self.request = request
        self.job = request.job
        self.folder = stage_folder(request.job, request.stage, request.key)
        if request.redo and request.command_attempt == 1:  # a cluster's disk may have it
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._told = time.monotonic()
        self._tokens, self._lock = 0, threading.Lock()

    @cached_property
    def store(self) -> ArtifactStore:
        return open_job_store(self.job)

    @cached_property
    def recipe(self) -> Recipe:
        """The job's, as it is written."""
        return load_recipe(self.recipe_name, self.job.recipe_overrides)

    @property
    def recipe_name(self) -> str:
        """Its name, or its file as it is here."""
        return str(self.file(Path(self.job.recipe.name)))

    def made(self, stage: Stage, name: str) -> str:
        return self.request.done[stage].outputs[name]

    def result(self, outputs: dict[str, str], *, facts: dict[str, JsonValue] | None = None) -> StageResult:
        stage, key = self.request.stage.result_name, self.request.key
        return StageResult(stage=stage, key=key, outputs=outputs, facts=facts or {})

    def publish(self, source: Path, *, kind: str) -> Published:
        """Puts a file or folder into the store, and shows how far it is."""
        done = 0

        def advance(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            self.tell(label=f"storing {kind}", done=done // 1_000_000, total=0, note=f"{done / 1e6:,.1f} MB")

        made = self.store.publish(source, kind=kind, advance=advance)
        self.tell(label="stored", done=done // 1_000_000, total=0, now=True)
        return made

    def file(self, path: Path) -> Path:
        """A file or folder that the job names: where it is, or as the store has it on a cluster."""
        digest = self.request.files.get(str(path))
        if digest is None:
            return path
        folder = self.bring(digest, self.folder / "inputs" / digest[:KEY_DIGITS])
        manifest = self.store.manifest(digest)
        return folder / manifest.files[0].path if manifest.kind == FILE_KIND else folder

    def bring(self, digest: str, folder: Path) -> Path:
        """Files of a manifest, on this machine, verified."""
        self.store.get(digest, folder)
        return folder

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
        """Tells the loop how far the stage is, now and then; `now` whether or not that was just done."""
        every_s = _PIPE_EVERY_S if PIPE_ENV in os.environ else _LOG_EVERY_S
        with self._lock:  # parts of an upload end on other threads
            self._tokens = self._tokens if tokens is None else tokens
            if not now and time.monotonic() - self._told < every_s:
                return
            self._told = time.monotonic()
            found = StageProgress(label=label, done=done, total=total, note=note, tokens=self._tokens)
            send(PROGRESS_MARK, found)


def send(mark: str, report: Record) -> None:
    with contextlib.suppress(OSError):  # the loop is gone, or the log's disk is full
        os.write(int(os.environ.get(PIPE_ENV, 1)), f"\n{mark}{report.model_dump_json()}\n".encode())


def last_report(text: str, mark: str, kind: type[_Report]) -> _Report | None:
    """What was reported last behind a mark; None: nothing yet, or nothing that can be read."""
    for line in reversed(text.splitlines()):
        if line.startswith(mark):
            with contextlib.suppress(ValidationError):  # it is still being written
                return kind.model_validate_json(line.removeprefix(mark))
    return None
