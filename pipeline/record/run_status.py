"""How a run goes, in MLflow's words, noted in its folder; `pipeline.record.mlflow_sender` sends it."""

import time
from pathlib import Path

from pydantic import Field

from pipeline.redaction import one_line
from reward.config import Settings
from reward.offline.files import replace_file

STATUS_FILE = "status.json"
ENDED_TAG, EXIT_CODE_TAG = "march.ended", "march.exit_code"
GUARDS_TAG = "march.guards"  # those that a resume brought; the parameters tell those of the start
RESTARTS_TAG = "march.restarts"  # how often a command has gone on by itself, and after what


class Status(Settings):
    status: str = Field(description="RUNNING, FINISHED, FAILED or KILLED.")
    tags: dict[str, str] = Field(default_factory=dict)
    timestamp: int = Field(description="Since when, in milliseconds.")


def note_status(folder: Path, status: str, tags: dict[str, str] | None = None) -> None:
    """Writes how a run goes; earlier tags stay, but for those of an earlier end."""
    before = read_status(folder)
    kept = before.tags if before else {}
    kept = {name: value for name, value in kept.items() if name not in (ENDED_TAG, EXIT_CODE_TAG)}
    # What was sent is known by its time, so two in one millisecond must differ.
    timestamp = max(time.time_ns() // 1_000_000, before.timestamp + 1 if before else 0)
    now = Status(status=status, tags=kept | (tags or {}), timestamp=timestamp)
    replace_file(folder / STATUS_FILE, now.model_dump_json() + "\n")


def read_status(folder: Path) -> Status | None:
    path = folder / STATUS_FILE
    return Status.model_validate_json(path.read_text()) if path.is_file() else None


def note_end(folder: Path, error: BaseException) -> None:
    """Notes that a run was KILLED by an interrupt or FAILED, with the tags that say why and the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return note_status(folder, "KILLED", {ENDED_TAG: "interrupted", EXIT_CODE_TAG: "130"})
    code = getattr(error, "exit_code", 2 if isinstance(error, ValueError | OSError) else 1)
    why = one_line(f"{error}" or type(error).__name__)
    return note_status(folder, "FAILED", {ENDED_TAG: why, EXIT_CODE_TAG: str(code)})
