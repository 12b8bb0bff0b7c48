"""Plain words: what `words.txt` lists is in no page, docstring, comment or message."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RULES = [
    (re.compile(rf"(?<![\w`/.-])({word})(?!\w)", 0 if re.search("[A-Z]", word) else re.IGNORECASE), plain)
    for line in (ROOT / "tests/words.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for word, plain in [line.split(" -> ")]
]
_MARKUP = re.compile(r"<[^>]*>|\{[{%].*?[%}]\}")  # elements, and what Jinja reads
NO_PROSE = {"pipeline/tiny/words.py"}  # words that a made-up world is made of
PACKAGES = ["reward", "pipeline", "orchestration", "bench"]
WRITTEN = [*ROOT.glob("docs/*.md"), *ROOT.glob("infra/**/*.md")]
SHOWN = [file for package in PACKAGES for file in (ROOT / package).rglob("*.html")]
PAGES = ["README.md", "CHANGELOG.md", *(str(file.relative_to(ROOT)) for file in sorted(WRITTEN + SHOWN))]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered pieces of a file that people read; code and what stands in quotation marks is left out."""
    if path.suffix == ".md":
        lines = re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8")).splitlines()
        yield from ((number, line) for number, line in enumerate(lines, 1) if not line.startswith("    "))
        return
    if path.suffix == ".html":
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from ((number, _MARKUP.sub(" ", line)) for number, line in enumerate(lines, 1))
        return
    with path.open("rb") as file:
        yield from (
            (token.start[0], token.string)
            for token in tokenize.tokenize(file.readline)
            if token.type == tokenize.COMMENT
        )
    for node in ast.walk(ast.parse(path.read_bytes())):
        # A regular expression is nothing that people read.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "(?:" not in node.value:
            for number, line in enumerate(node.value.splitlines(), node.lineno):
                yield number, re.sub(r"`[^`]*`", "", line)


def odd_words(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {found[0]!r}, say: {plain}"
        for number, text in prose(path)
        for pattern, plain in RULES
        if (found := pattern.search(re.sub(r'"[^"\n]*"', "", text)))
    ]


@pytest.mark.parametrize("page", PAGES)
def test_pages_use_plain_words(page: str) -> None:
    assert not odd_words(ROOT / page)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_comments_and_messages_use_plain_words(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*.py") if str(path.relative_to(ROOT)) not in NO_PROSE]
    assert not [problem for path in files for problem in odd_words(path)]
