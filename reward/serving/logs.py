"""What is written down of a request: the request at hand, the process's log, the audit log.

`middleware.py` opens the record of a request (`Caller`) and the others fill it in. It is a context variable,
because an audit may be shared by several requests, and its functions need not know of HTTP.

The process's log is text for people on a terminal and one JSON object a line otherwise, with the ids of the
request and of its trace. Tokens and texts are logged nowhere; what callers choose (ids, paths) cannot begin a
line of its own.

The audit log says who asked what, when, and what the verdict was: one JSON line for every answered request.
Response and documents are named by their digests, a caller by the name of its token. The file is opened for
every line, so the system may rotate it, and a line is one write, so several servers may share it. A full disk
stops no audit: lost lines are counted, and the process's log says once when that begins and once when it
ends.
"""

import errno
import hashlib
import json
import logging
import os
import re
import sys
import uuid
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter
from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from reward.types import Document, Verdict

REQUEST_ID_HEADER = "X-Request-ID"
Refusal = Literal[
    "overloaded",
    "quota",
    "memory",
    "stopping",
    "token_missing",
    "token_wrong",
    "headers_too_large",
    "body_too_large",
    "body_slow",
    "body_length_unclear",
    "nonce_malformed",
    "internal",
]
REFUSALS: tuple[Refusal, ...] = get_args(Refusal)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def without_query(record: logging.LogRecord) -> bool:
    """A filter of uvicorn's access log: what follows the path may be a secret of who asks wrongly."""
    if isinstance(record.args, tuple):
        paths = {one: one.partition("?")[0] for one in record.args if isinstance(one, str) and one[:1] == "/"}
        record.args = tuple(paths.get(one, one) if isinstance(one, str) else one for one in record.args)
    return True


@dataclass
class Caller:
    """Who asks, and for what."""

    request_id: str
    name: str | None = None  # of the token
    trace_id: str | None = None  # 32 hex digits, when the request is traced
    refusal: Refusal | None = None  # why nothing was audited


caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def current_caller() -> Caller:
    """The record of the request at hand; an empty one outside of a request."""
    return caller.get() or Caller("")


def request_id_of(given: str | None) -> str:
    """The client's own id when it is a plain one, else a new one."""
    return given if given is not None and _REQUEST_ID.fullmatch(given) else new_request_id()


def new_request_id() -> str:
    return uuid.uuid4().hex


LogFormat = Literal["auto", "text", "json"]
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_RENAMED = {"asctime": "time", "levelname": "level", "name": "logger"}
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
# What breaks a line, and what turns the direction of writing.
_CONTROLS |= {code: f"\\u{code:x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))}


def configure_logging(log_format: LogFormat) -> None:
    """Logs to stderr, from INFO on; a program that has set up its logging keeps it."""
    handler = logging.StreamHandler()
    is_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler.setFormatter(TextFormatter(_TEXT) if is_text else json_formatter())
    handler.addFilter(name_request)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("httpx", "httpx2"):  # ours and the openai package's, which report every request
        logging.getLogger(name).setLevel(logging.WARNING)


def name_request(record: logging.LogRecord) -> bool:
    """Adds the request at hand to a record; a filter that lets everything through."""
    asked = caller.get()
    if asked is not None:
        record.request_id = asked.request_id
        if asked.trace_id is not None:
            record.trace_id = asked.trace_id
    return True


def json_formatter() -> logging.Formatter:
    """One JSON object a line; what a record was given as `extra` becomes fields."""
    return JsonFormatter(
        ["asctime", "levelname", "name", "message"],
        datefmt="%Y-%m-%dT%H:%M:%S%z",
        rename_fields=_RENAMED,
        json_default=str,
        reserved_attrs=[*RESERVED_ATTRS, "color_message"],  # uvicorn's text once more, for terminals
    )


class TextFormatter(logging.Formatter):
    """A line of text with the request's id at its end; a traceback may follow."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, whose control characters are shown and not sent."""
        request_id = getattr(record, "request_id", None)
        line = super().formatMessage(record) + (f" [{request_id}]" if request_id else "")
        return line if line.isprintable() else line.translate(_CONTROLS)


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
            line = f"audit_log: cannot write {path} ({error.strerror}); use another file"
            raise ValueError(line) from error

    def write(
        self,
        verdict: Verdict,
        documents: Sequence[Document],
        response: str,
        *,
        seconds: float,
        shared: bool = False,
    ) -> None:
        """Writes the line of the request at hand; `shared` is the work of another, which this one joined."""
        if self._path is None:
            return
        asked = current_caller()
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "caller": asked.name,
            "request_id": asked.request_id or None,
            "trace_id": asked.trace_id,
            "seconds": round(seconds, 3),
            "shared": shared,
            "response_sha256": hashlib.sha256(response.encode(errors="surrogatepass")).hexdigest(),
            "documents_sha256": documents_sha256(documents),
            "verdict": verdict.model_dump(mode="json"),
        }
        try:
            self._append(self._path, json.dumps(line, ensure_ascii=False))
        except OSError as error:
            self._lost.inc()
            if not self._is_failing:
                text = "audit_log: cannot write %s (%s); audits go on, their lines are lost"
                logger.error(text, self._path, error.strerror)
            self._is_failing = True
        else:
            if self._is_failing:
                logger.warning("audit_log: %s can be written again", self._path)
            self._is_failing = False

    def _append(self, path: Path, line: str) -> None:
        data = ("\n" * self._is_torn + line + "\n").encode(errors="backslashreplace")
        file = _open(path)
        try:
            num_written = os.write(file, data)
        finally:
            os.close(file)
        self._is_torn = num_written < len(data) and (self._is_torn or num_written > 0)
        if num_written < len(data):
            raise OSError(errno.ENOSPC, "the line was cut")


def documents_sha256(documents: Sequence[Document]) -> str:
    """SHA-256 (hex) of documents in order: of each the id, title and text, each a line of JSON in ASCII."""
    digest = hashlib.sha256()
    for document in documents:
        for text in (document.id, document.title, document.text):
            digest.update(json.dumps(text).encode() + b"\n")
    return digest.hexdigest()


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
