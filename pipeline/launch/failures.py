"""What ended a worker: said in a few words, and whether another one may come through."""

import re
import shutil
from pathlib import Path

from pydantic import Field

from reward.config import Settings
from reward.offline.files import replace_file

ERROR_FILE = "error.json"
_OURS = ("pipeline", "reward", "orchestration")
# A user's to fix, or a bug: the next worker would end like this one.
_FINAL = (ValueError, OSError, AssertionError, AttributeError, LookupError, NameError, TypeError, MemoryError)
_NO_MEMORY = "exceeds the memory usage threshold"  # Ray's words, after its figures
_CLASS = re.compile(r"class_name: (\w+)")
_MOST_CHARS = 300
_LEAST_BYTES = 1 << 16  # free on a disk that still takes an error


class Failure(Settings):
    """Travels from the worker to the process that the user started."""

    message: str
    exit_code: int = Field(default=1, description="3 and 4 are a guard's.")
    may_pass: bool = Field(
        default=True, description="A process died or a library failed; not a setting, a guard or a bug."
    )


def write_failure(folder: Path, error: BaseException) -> None:
    replace_file(folder / ERROR_FILE, failure_of(error).model_dump_json() + "\n")


def read_failure(folder: Path, code: int) -> Failure:
    """Returns what ended the worker; one that could not say so was killed, or its disk was full."""
    path = folder / ERROR_FILE
    if path.is_file():
        return Failure.model_validate_json(path.read_text())
    if shutil.disk_usage(folder).free < _LEAST_BYTES:
        return Failure(message=f"{folder}: No space left on the disk; make room", may_pass=False)
    return Failure(message=f"the worker ended with code {code}")


def failure_of(error: BaseException) -> Failure:
    """What is said of an error: the one that was raised in the remote process, not Ray's around it."""
    cause = getattr(error, "cause", None)
    while isinstance(cause, BaseException):
        error, cause = cause, getattr(cause, "cause", None)
    exit_code = getattr(error, "exit_code", 1)
    is_ours = type(error).__module__.partition(".")[0] in _OURS
    is_final = exit_code != 1 or is_ours or not isinstance(error, Exception) or isinstance(error, _FINAL)
    return Failure(message=_message(error), exit_code=exit_code, may_pass=not is_final)


def _message(error: BaseException) -> str:
    text, name = str(error), type(error).__name__
    if _NO_MEMORY in text:
        fix = "lower ppo.micro_batch_size, or end what else runs, and resume; or start a new run with a lower"
        return f"{name}: {text.partition(';')[0]}; {fix} rollout.max_prompt_tokens"
    dead = f" ({found[1]})" if (found := _CLASS.search(text)) else ""
    first = text.strip().splitlines()[0] if text.strip() else ""
    return f"{name}{dead}: {first:.{_MOST_CHARS}}"
