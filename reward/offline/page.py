"""What our pages have in common: templates, style, script, and the policy that allows these and nothing else.

A page is one HTML file that works from a disk, with no network. Everything in it is escaped, and a Content
Security Policy allows its own style and script by their digests: whatever an answer or a document holds, it
is shown as text. `parts.html` holds what several pages show, `report.css` and `report.js` serve them all.
"""

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from reward.offline.terminal import ratio, spoken

_Name = TypeVar("_Name", bound=str)
TEMPLATES = Path(__file__).parent / "templates"


def render_page(
    template: str,
    *,
    folder: Path | None = None,
    style: str = "",
    script: str | None = None,
    **content: object,
) -> str:
    """Returns a page; its template may be in a folder of its own, its style adds to `report.css`, and its
    script replaces `report.js`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES] if folder else TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ratio": ratio, "spoken": spoken, "anchor": anchor}
    style = _asset("report.css") + style
    script = _asset("report.js") if script is None else script
    made = {"policy": _policy(style, script), "style": style, "script": script}
    return environment.get_template(template).render(**made, **content)


def stacked_bar(counts: Mapping[_Name, int]) -> list[tuple[str, float, float]]:
    """Name, left end and width of each part of a stacked bar, in thousandths."""
    total = sum(counts.values())
    parts: list[tuple[str, float, float]] = []
    left = 0.0
    for name, count in counts.items():
        if count:
            width = 1000 * count / total
            parts.append((name, round(left, 2), round(width, 2)))
            left += width
    return parts


def anchor(row_id: str) -> str:
    """The address of an answer within the page, as it is after the #."""
    return f"row-{quote(row_id, safe=':@!$,;=~')}"


def inert(text: str) -> str:
    """JSON in which nothing can end or open an element."""
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    allowed = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    style_digest, script_digest = allowed
    return (
        f"default-src 'none'; style-src 'sha256-{style_digest}'; script-src 'sha256-{script_digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
