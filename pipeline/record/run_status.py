"""What MLflow says of a training: RUNNING while it trains, and afterwards how it ended and why.

The record is not the training. A server that does not answer is warned of in one line: it makes no finished
run a failed one, and hides no error.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

logger = logging.getLogger(__name__)

ENDED_TAG, EXIT_CODE_TAG = "march.ended", "march.exit_code"
GUARDS_TAG = "march.guards"  # those that a resume brought; the parameters tell those of the start
_MOST_CHARS = 500
_PATIENCE_S = 60.0  # MLflow's own retries take a quarter of an hour
_SECRET_NAMES = re.compile(r"(TOKEN|KEY|PASSWORD|SECRET)$")
_USER = re.compile(r"(?<=//)[^\s/@]+@")
_PAIR = re.compile(r"(?i)((?:password|passwd|token|secret|api_?key)=)[^\s&]+")
_LEAST_SECRET_CHARS = 8


@contextmanager
def kept_status(tracking_uri: str, run_id: str) -> Iterator[None]:
    """Keeps a run RUNNING; then it is FINISHED, KILLED by an interrupt, or FAILED, with tags that say why."""
    tell_status(tracking_uri, run_id, "RUNNING")
    try:
        yield
    except KeyboardInterrupt as error:
        tell_status(tracking_uri, run_id, "KILLED", _why(error))
        raise
    except BaseException as error:
        tell_status(tracking_uri, run_id, "FAILED", _why(error))
        raise
    tell_status(tracking_uri, run_id, "FINISHED")


def tell_status(tracking_uri: str, run_id: str, status: str, tags: Mapping[str, str] | None = None) -> None:
    """Writes a status, and the tags that say why; those of an earlier end go. Whatever fails is warned of.

    Args:
        tracking_uri: Where the run is.
        run_id: Which run.
        status: MLflow's word: RUNNING, FINISHED, FAILED, KILLED.
        tags: `ENDED_TAG` and `EXIT_CODE_TAG`, or none.
    """
    import mlflow  # noqa: F401  # here, since it takes seconds that are not the server's

    given_up, problems = threading.Event(), list[str]()

    def write() -> None:
        try:
            _write(tracking_uri, run_id, status, tags or {}, given_up)
        except Exception as error:  # MLflow's own, a database's, a connection's
            problems.append(f"{type(error).__name__}: {error}")

    # On a thread of its own: a hung connection cannot be ended, and must not keep a training from ending.
    writing = threading.Thread(target=write, name="mlflow status", daemon=True)
    writing.start()
    writing.join(_PATIENCE_S)
    if writing.is_alive():
        given_up.set()
        problems.append(f"no answer within {_PATIENCE_S:g} s")
    if problems:
        said = f"{one_line(problems[-1]):.200}"
        logger.warning("MLflow was not told that run %s is %s (%s)", run_id, status, said)


def one_line(text: str) -> str:
    """A message for a tag: one line, bounded, without users of addresses and secrets of the environment."""
    secrets = {value for name, value in os.environ.items() if _SECRET_NAMES.search(name)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST_SECRET_CHARS:
            text = text.replace(secret, "***")
    shown = _PAIR.sub(r"\1***", _USER.sub("", " ".join(text.split())))
    return f"{shown:.{_MOST_CHARS}}"


def _write(
    tracking_uri: str, run_id: str, status: str, tags: Mapping[str, str], given_up: threading.Event
) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri)
    run = client.get_run(run_id)
    if given_up.is_set():
        return
    for name in {ENDED_TAG, EXIT_CODE_TAG} & run.data.tags.keys() - tags.keys():
        client.delete_tag(run_id, name)
    for name, value in tags.items():
        client.set_tag(run_id, name, value)
    if run.info.status == status:
        return
    if status == "RUNNING":
        client.update_run(run_id, status=status)
    else:
        client.set_terminated(run_id, status)


def _why(error: BaseException) -> dict[str, str]:
    """The tags of an end: what the user is told, and the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return {ENDED_TAG: "interrupted", EXIT_CODE_TAG: "130"}
    code = getattr(error, "exit_code", 2 if isinstance(error, ValueError | OSError) else 1)
    return {ENDED_TAG: one_line(f"{error}" or type(error).__name__), EXIT_CODE_TAG: str(code)}
