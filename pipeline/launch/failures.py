"""What ended a worker: said in a few words, and whether another one may come through."""

import re
from pathlib import Path

from pydantic import Field

from reward.config import Settings
from reward.offline.files import replace_file

ERROR_FILE = "error.json"
_OURS = ("pipeline", "reward", "orchestration")
# A user's to fix, or a bug: the next worker would end like this one.
_FINAL = (ValueError, OSError, AssertionError, AttributeError, LookupError, NameError, TypeError, MemoryError)
_MEMORY = re.compile(
    r"was ([\d.]+)GB / ([\d.]+)GB \([\d.]+\), which exceeds the memory usage threshold of ([\d.]+)"
)
_USER = re.compile(r"^(\d+)\t([\d.]+)\t(.+)$", re.MULTILINE)  # of Ray's table of processes
_CLASS = re.compile(r"class_name: (\w+)")
_MOST_USERS, _MOST_CHARS = 3, 300


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
    """Returns what ended the worker; one that could not say so was killed."""
    path = folder / ERROR_FILE
    if path.is_file():
        return Failure.model_validate_json(path.read_text())
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
    if used := _MEMORY.search(text):
        return _out_of_memory(text, *used.groups())
    dead = f" ({found[1]})" if (found := _CLASS.search(text)) else ""
    first = text.strip().splitlines()[0] if text.strip() else ""
    return f"{name}{dead}: {first:.{_MOST_CHARS}}"


def _out_of_memory(text: str, used: str, total: str, threshold: str) -> str:
    """Ray's report of a page in two sentences: the figures, and who holds the memory."""
    users = [
        f"{command.split()[0].rpartition('/')[2]} {float(gigabytes):.1f} GB"
        for _, gigabytes, command in _USER.findall(text)[:_MOST_USERS]
    ]
    most = f" Most is held by {', '.join(users)}." if users else ""
    return (
        f"Ray ended a process for lack of memory: {float(used):.1f} of {float(total):.1f} GB were in use, "
        f"over {float(threshold):.0%}.{most} Lower ppo.micro_batch_size, or end what "
        "else runs, and resume; or start a new run with a lower rollout.max_prompt_tokens"
    )
