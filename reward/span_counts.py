"""How many spans this process ended and exported, counted without the extra `[otel]`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SpanCounts:
    """Spans of this process: the difference was lost, or is on its way."""

    ended: int = 0
    exported: int = 0


counts = SpanCounts()
