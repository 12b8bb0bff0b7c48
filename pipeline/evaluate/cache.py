"""Replies of judges by content, shared between evaluations: the same question to the same judge is paid once.

The key is a digest of the judge's name, the benchmark's prompts, the sampling settings with their seed, and
the question (`plan.judge_digest`). Only replies that could be read are kept. SQLite does the locking, so that
several evaluations may share one file, and a kill leaves it whole.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pydantic import Field

from reward.types import Record, TokenUse

_WAIT_S = 30.0  # for another evaluation that is writing


class CachedReply(Record):
    """A reply and what it cost whoever asked first."""

    text: str
    use: TokenUse | None = Field(default=None)


class ReplyCache:
    """Replies by key.

    Args:
        path: The database; made when it is not there.

    Raises:
        ValueError: the file is something else.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"--cache: {path}: {error}; remove the file or give another one") from error

    def get(self, key: str) -> CachedReply | None:
        """The reply to a question, if it is kept."""
        found = self._connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return CachedReply.model_validate_json(found[0]) if found else None

    def put(self, key: str, reply: CachedReply) -> None:
        """Keeps a reply."""
        row = (key, reply.model_dump_json())
        self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", row)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()
