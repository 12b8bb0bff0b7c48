"""Tokens by name: made, read, rotated without a restart, and never believed from a bad file."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.serving.tokens import TokenBook, new_token, parse_tokens
from tests.march_cli import march, refused
from tests.role_server import Start, start_servers  # noqa: F401

FIXED = "the-token-of-the-environment"


def write(path: Path, *lines: str, age_s: int = 0) -> None:
    """Writes the file under a time of its own, so that no change falls into the clock's grain."""
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    os.utime(path, (10**9 - age_s, 10**9 - age_s))


def test_a_new_token_opens_with_its_line_under_its_name(tmp_path: Path) -> None:
    made, other = new_token("trainer-a"), new_token("audits_2")
    assert made.token != other.token and len(made.token) >= 43 and made.token not in made.line
    write(tmp_path / "tokens", "# ours", "", made.line + "  # the trainer's", f"{other.line}")
    book = TokenBook(FIXED, tmp_path / "tokens")
    assert book.name_of(made.token) == "trainer-a"
    assert book.name_of(other.token) == "audits_2"
    assert book.name_of(FIXED) == "env"
    for wrong in ("", made.token + "x", made.token[:-1], made.line, made.line.split()[1], "\ud800"):
        assert book.name_of(wrong) is None


def test_tokens_are_rotated_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    old, new = new_token("old"), new_token("new")
    write(path, old.line, age_s=3)
    book = TokenBook(None, path)
    write(path, old.line, new.line, age_s=2)
    assert (book.name_of(old.token), book.name_of(new.token)) == ("old", "new")
    write(path, new.line, age_s=1)
    assert (book.name_of(old.token), book.name_of(new.token)) == (None, "new")


@pytest.mark.parametrize("bad", ["nonsense", "", "mode", "gone", "folder", "name: " + "f" * 63])
def test_a_bad_file_keeps_the_tokens_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: str
) -> None:
    path = tmp_path / "tokens"
    made = new_token("one")
    write(path, made.line, age_s=9)
    book = TokenBook(None, path)
    if bad == "mode":
        write(path, new_token("thief").line)
        path.chmod(0o620)
    elif bad in ("gone", "folder"):
        path.unlink()
        if bad == "folder":
            path.mkdir()
    else:
        write(path, bad)
    with caplog.at_level(logging.INFO):
        assert [book.name_of(made.token) for _ in range(3)] == ["one"] * 3
    (record,) = caplog.records
    assert record.levelno == logging.ERROR and "the tokens stay" in record.getMessage()
    if path.is_dir():
        path.rmdir()
    write(path, new_token("two").line, age_s=5)
    assert book.name_of(made.token) is None


def test_the_metrics_show_a_bad_file_until_it_is_fixed(start: Start, tmp_path: Path) -> None:
    path, kept = tmp_path / "tokens", new_token("kept")
    write(path, kept.line, age_s=9)
    running, shown = start(tokens_file=path), []
    for age_s, text in ((8, "nonsense"), (7, new_token("new").line)):
        write(path, text, age_s=age_s)
        running.audit()  # with the environment's token; the file is read again
        shown.append(running.metric('march_files_refused{what="tokens"}'))
    assert shown == [1, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b", "line 1 is not"),
        ("\n\nsecret-token-in-clear", "line 3 is not"),
        (f"a: {'0' * 64}\na: {'1' * 64}", "line 2: the name a is taken"),
        (f"env: {'0' * 64}", "the name env is taken"),
        (f"a:{'0' * 64}", "line 1 is not"),
        (f"a b: {'0' * 64}", "line 1 is not"),
        ("# nothing", "names no token"),
    ],
)
def test_a_bad_file_at_the_start_is_one_line_without_its_content(
    tmp_path: Path, text: str, words: str
) -> None:
    write(tmp_path / "tokens", text)
    with pytest.raises(ValueError, match="tokens_file: ") as caught:
        TokenBook(FIXED, tmp_path / "tokens")
    told = str(caught.value)
    assert words in told and "march token NAME" in told and "\n" not in told and "in-clear" not in told


def test_without_any_token_nothing_is_served(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tokens: there is none"):
        TokenBook(None)
    with pytest.raises(ValueError, match="No such file"):
        TokenBook(FIXED, tmp_path / "none")


def test_quoted_hashes_are_yaml_too() -> None:
    hexed = hashlib.sha256(b"x").hexdigest()
    assert parse_tokens(f"a: '{hexed}'\nb: \"{hexed}\"") == dict.fromkeys("ab", bytes.fromhex(hexed))


@given(st.text())
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        assert all(len(known) == 32 for known in parse_tokens(text).values())
    except ValueError as error:
        assert "\n" not in str(error)


def test_the_command_shows_a_token_and_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert march("token", "trainer-a") == 0
    printed = capsys.readouterr()
    token = printed.err.splitlines()[1]
    (tmp_path / "tokens").write_text(printed.out)  # as `march token NAME >> tokens` does; the token is shown
    (tmp_path / "tokens").chmod(0o600)
    assert TokenBook(None, tmp_path / "tokens").name_of(token) == "trainer-a"
    assert "NAME: 'two words' cannot name a token" in refused(capsys, "token", "two words")
