"""How the server logs: text for people on a terminal, one JSON object a line otherwise.

Each line carries the id of the request that it belongs to, and of its trace. Tokens and texts are logged
nowhere; what callers choose (ids, paths) cannot begin a line of its own.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

from pythonjsonlogger.json import JsonFormatter

from reward.serving.caller import caller

LogFormat = Literal["auto", "text", "json"]
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_RENAMED = {"asctime": "time", "levelname": "level", "name": "logger"}
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


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
    )


class TextFormatter(logging.Formatter):
    """A line of text with the request's id at its end; a traceback may follow."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, whose control characters are shown and not sent."""
        request_id = getattr(record, "request_id", None)
        line = super().formatMessage(record) + (f" [{request_id}]" if request_id else "")
        return line if line.isprintable() else line.translate(_CONTROLS)
