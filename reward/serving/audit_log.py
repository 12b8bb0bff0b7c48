"""Who asked what, when, and what the verdict was: one JSON line for every request that was answered.

The response is named by its digest, since a verdict quotes only its claims; a caller by the name of his
token. The file is opened for every line, so the system may rotate it (logrotate with `create`, or a plain
rename), and a line is one write, so several servers may share it. A disk that is full stops no audit: the
lines that are lost are counted, and the log of the process says once when it begins and once when it ends.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter

from reward.serving.caller import caller
from reward.types import Verdict

logger = logging.getLogger(__name__)

_MODE = 0o600  # verdicts quote responses; who may read them is the owner's to widen


class AuditLog:
    """Appends to a file, or does nothing without one.

    Raises:
        ValueError: the file cannot be written, now.
    """

    def __init__(self, path: Path | None, registry: CollectorRegistry) -> None:
        self._path = path
        self._is_failing = False
        self._is_torn = False  # the last line was cut by a full disk
        self._lost = Counter("march_audit_log_lost", "Lines the audit log could not take", registry=registry)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(_open(path))
        except OSError as error:
            raise ValueError(
                f"audit_log: cannot write {path} ({error.strerror}); give another file"
            ) from error

    def write(self, verdict: Verdict, *, response: str, seconds: float, shared: bool = False) -> None:
        """Writes the line of the request at hand.

        Args:
            verdict: What was answered.
            response: What was audited.
            seconds: How long the request waited.
            shared: Whether the verdict was another request's work that this one joined.
        """
        if self._path is None:
            return
        asked_by = caller.get()
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "caller": asked_by.name if asked_by else None,
            "request_id": asked_by.request_id if asked_by else None,
            "trace_id": asked_by.trace_id if asked_by else None,
            "seconds": round(seconds, 3),
            "shared": shared,
            "response_sha256": hashlib.sha256(response.encode(errors="surrogatepass")).hexdigest(),
            "verdict": verdict.model_dump(mode="json"),
        }
        self._append(self._path, json.dumps(line, ensure_ascii=False))

    def _append(self, path: Path, line: str) -> None:
        data = ("\n" * self._is_torn + line + "\n").encode(errors="backslashreplace")
        try:
            file = _open(path)
            try:
                num_written = os.write(file, data)
            finally:
                os.close(file)
        except OSError as error:
            return self._lose(path, str(error.strerror))
        if num_written < len(data):
            self._is_torn = self._is_torn or num_written > 0
            return self._lose(path, "the line was cut")
        self._is_torn = False
        if self._is_failing:
            self._is_failing = False
            logger.warning("audit_log: %s can be written again", path)

    def _lose(self, path: Path, why: str) -> None:
        self._lost.inc()
        if not self._is_failing:
            self._is_failing = True
            logger.error("audit_log: cannot write %s (%s); audits go on, their lines are lost", path, why)


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
