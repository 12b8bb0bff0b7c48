"""README and docs against the code: links lead somewhere, commands parse, the tree is the tree."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer.main

from orchestration.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("README.md", "docs/*.md", "infra/*.md", "infra/*/README.md")
    for path in ROOT.glob(pattern)
)
# The log tells what was run in its time; the changelog names what is gone.
TODAYS = [path for path in PAGES if path.name != "log.md"]
PROGRAM = typer.main.get_command(app)
PLACEHOLDER = re.compile(r"^(\.\.\.|[A-Z_]+|\[.*|\(.*)$")
ids = [str(path.relative_to(ROOT)) for path in PAGES]


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_no_link_is_dead(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else (page.parent / name).resolve()
        assert file.exists(), f"{target}: no such file"
        assert not anchor or anchor in anchors(file), f"{target}: no such heading"


def commands(page: Path) -> Iterator[str]:
    """What a page shows of `march`: lines of code blocks, and `march ...` within sentences."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if found := re.match(r"^ {4,}(?:[A-Z_]+=\S+ )*(march .*)$", line):
            yield re.split(r"\s+#\s|[;|&]", found[1])[0]
        yield from re.findall(r"`(march [^`]+)`", line)


def problem_of(command: str) -> str | None:
    """What of a command line the program does not have."""
    try:
        words = shlex.split(re.sub(r"\s\[(-[^\]]*)\]", r" \1", command))[1:]
    except ValueError:
        return "quotes do not close"
    now: click.Command = PROGRAM
    parents = []
    while words and hasattr(now, "commands") and not words[0].startswith("-"):
        if PLACEHOLDER.match(words[0]):
            return None
        name = words.pop(0)
        found = now.commands.get(name)
        if found is None or found.deprecated:
            return f"no command {name!r}"
        parents.append(now)
        now = found
    known = {
        option
        for each in (now, *parents)
        for one in each.params
        for option in (*one.opts, *one.secondary_opts)
    }
    known |= {"--help"}
    for word in words:
        if word == "--":
            break
        if word.startswith("--") and word.partition("=")[0] not in known:
            return f"no option {word}"
    return None


@pytest.mark.parametrize("page", TODAYS, ids=[str(path.relative_to(ROOT)) for path in TODAYS])
def test_every_command_that_a_page_shows_is_one(page: Path) -> None:
    problems = {command: found for command in commands(page) if (found := problem_of(command))}
    assert not problems


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("march model promote M --evaluation E", None),
        ("march model demote M", "no command 'demote'"),
        ("march registered", "no command 'registered'"),
        ("march audit a.jsonl --no-such", "no option --no-such"),
        ("march serve --host h --port 1", None),
        ("march", None),
    ],
)
def test_the_check_of_commands_can_fail(command: str, problem: str | None) -> None:
    assert problem_of(command) == problem


def test_the_architecture_page_names_what_is_there_and_every_room() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:reward|pipeline|orchestration|tests)/[\w./]*)`", page):
        assert (ROOT / path).exists(), path
    tree = page[page.index("## The tree") :]
    for package, following in (
        ("reward", "pipeline"),
        ("pipeline", "orchestration"),
        ("orchestration", "bench"),
    ):
        shown = tree[tree.index(f"    {package}/") : tree.index(f"    {following}/")]
        rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        missing = {room for room in rooms if f"{room}/" not in shown}
        assert not missing, f"{package}: {missing}"
