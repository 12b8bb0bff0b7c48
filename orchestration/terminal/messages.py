"""What a command says: its console, and on standard error one line, what, where, and how to fix it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from rich.console import Console

_MAX_KEYS = 10  # that are named
_FREE_WIDTH = 10_000  # no table is as wide
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ORCHESTRATOR = {"boto3", "cronsim", "mlflow", "psycopg", "ray", "scipy"}
_TRAINING_STACK = {"deepspeed", "openrlhf", "tokenizers", "torch", "transformers", "vllm"}
_NEAR_DUPLICATES = {"numpy", "rensa"}
_TRAINING_EXTRAS = "pip install '.[train-cpu]', or train-gpu with an NVIDIA GPU"


def fail(line: str, *, code: int) -> NoReturn:
    """Ends the command with one line and an exit code."""
    warn(line)
    raise SystemExit(code)


def warn(line: str) -> None:
    """Says one line; what it quotes cannot command the terminal, nor begin a line of its own."""
    from reward.offline.excerpt import printable

    print(f"march: {printable(' '.join(line.split()))}", file=sys.stderr)


def warn_ignored(where: str, **options: object) -> None:
    """Names each option that was given and has no effect."""
    for name, value in options.items():
        if value:
            option = name if name.startswith("set ") else name.replace("_", "-")
            print(f"march: --{option} has no effect {where}", file=sys.stderr)


def unused_keys(keys: Collection[str]) -> str:
    """The line that names the keys of rows that nothing reads."""
    from reward.offline.excerpt import printable

    shown = ", ".join(printable(" ".join(key.split())) or "''" for key in sorted(keys)[:_MAX_KEYS])
    verb = "keys of rows are" if len(keys) > 1 else "key of rows is"
    return f"{len(keys):,} {verb} not used: {shown}{', ...' if len(keys) > _MAX_KEYS else ''}"


def output_console(**options: Any) -> Console:
    """Where results are shown; rich is loaded when there are some."""
    from rich.console import Console

    return Console(**options)


def table_console() -> Console:
    """Where tables of names and addresses are shown: as wide as they need, where there is no terminal."""
    is_free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return output_console(width=_FREE_WIDTH if is_free else None)


def error_console() -> Console:
    """Where progress is shown."""
    return output_console(stderr=True)


def user_error(error: Exception) -> str | None:
    """The line for an error that a user can fix; None for one that only we can."""
    import yaml
    from pydantic import ValidationError

    from reward.problems import problems

    if isinstance(error, ValidationError):
        return "; ".join(_problem(problem) for problem in problems(error))
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in _NEAR_DUPLICATES:
            return f"{package} is not installed; pip install '.[data]', or add --near-duplicates 0"
        if package in _ORCHESTRATOR:
            return f"{package} is not installed; pip install '.[orchestrator]'"
        return f"{package} is not installed; {_TRAINING_EXTRAS}" if package in _TRAINING_STACK else None
    if isinstance(error, OSError) and error.filename is not None:
        fix = "make room on its disk" if error.errno in _FULL else "fix the path or its permissions"
        return f"{error.filename}: {error.strerror}; {fix}"
    if isinstance(error, OSError) and error.errno in _FULL:  # of a write, which names no file
        return f"{error.strerror}; make room on the disk that is full (march doctor --only disk)"
    if isinstance(error, yaml.YAMLError):
        return f"not YAML: {error}"
    return str(error) if isinstance(error, ValueError | OSError) else None


def _problem(problem: ErrorDetails) -> str:
    from reward.problems import SAID_WHOLE, shown

    field = ".".join(str(part) for part in problem["loc"])
    text = problem["msg"]
    if problem["type"] in SAID_WHOLE:
        return f"{field}: {text}"
    if not field or field.endswith(("base_url", "base_urls")):  # which may hold credentials
        return f"{field}: {text}" if field and not text.startswith("base_url") else text
    from pipeline.redaction import redact

    given = problem["input"]
    found = redact(given) if isinstance(given, str) else given
    return f"{field}: {text} (found {shown(found)})"
