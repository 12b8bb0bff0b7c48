"""A held-out set that a run answers while it trains: which rows, how often, and when it is enough."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipeline.settings.sources import DataSettings
from reward.config import Settings


class HeldOutSettings(Settings):
    """Rows that are answered and audited, and never trained on."""

    every: int = Field(default=20, ge=1, description="Steps between two looks; the last step is one, too.")
    num_rows: int = Field(
        default=100,
        ge=1,
        description="Most queries of a look: of the file's beginning, or of the world's held-out rows. Never "
        "more than the training has.",
    )
    path: Path | None = Field(
        default=None,
        description="Plain JSONL (id, query, documents) with `answers` where they are known; the world's own "
        "held-out rows when left out.",
    )
    patience: int | None = Field(
        default=None,
        ge=1,
        description="Looks in a row that were not better than the best, after which the run ends; null: all "
        "steps are taken.",
    )


def check_held_out(held_out: HeldOutSettings, data: DataSettings, *, max_staleness: int) -> None:
    """Refuses a held-out set that cannot be had.

    Raises:
        ValueError: prepared rows without a file, or the asynchronous mode.
    """
    if held_out.path is None and not data.is_made:
        raise ValueError("held_out.path: missing; prepared rows have no held-out part, so give a JSONL file")
    if max_staleness:
        raise ValueError(
            f"rollout.max_staleness: {max_staleness}, so the engines answer ahead and held-out answers would "
            "be of no step's weights; set it to 0, or leave held_out out"
        )
