"""What a command says on standard error: one line, and the way out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rich.console import Console


def fail(line: str, *, code: int) -> NoReturn:
    """Ends the command with one line and an exit code; what it quotes cannot command the terminal."""
    from reward.offline.excerpt import printable

    print(f"march: {printable(' '.join(line.split()))}", file=sys.stderr)
    raise SystemExit(code)


def warn_ignored(where: str, **options: object) -> None:
    """Names each option that was given and has no effect."""
    for name, value in options.items():
        if value:
            print(f"march: --{name.replace('_', '-')} has no effect {where}", file=sys.stderr)


def error_console() -> Console:
    """Where progress is shown."""
    from rich.console import Console

    return Console(stderr=True)
