"""Shared by the tests that drive pages in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
MISSING = "no Chromium found (Debian: apt-get install chromium)"


def opened_page(page: Path, address: str) -> str:
    """What a browser makes of a page at an address within it."""
    assert BROWSER is not None
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *(
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={page.parent / 'profile'}",
        ),
        *("--virtual-time-budget=2000", "--dump-dom", f"{page.as_uri()}#{address}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def panel(html: str) -> str:
    """The panel of the opened claim."""
    found = re.search(r'<aside id="panel".*?</aside>', html, re.DOTALL)
    assert found is not None
    return found[0]


def articles(html: str) -> list[tuple[str, bool]]:
    """The answers of a page, and whether each is shown."""
    found = re.findall(r'<article id="([^"]*)"[^>]*?( hidden="")?>', html)
    return [(name, not hidden) for name, hidden in found]
