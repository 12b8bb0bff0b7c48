"""Downloads over a real local server that hangs up, changes its file, knows no ranges or says no."""

import hashlib
import io
import json
import subprocess
import threading
import time
import zipfile
from pathlib import Path

import pytest

from pipeline.data.download import download
from pipeline.data.sources import RemoteFile
from tests.benchmark_rows import SLICES
from tests.file_server import Served, serve
from tests.march_cli import MARCH, march, refused

CONTENT = SLICES["musique"].read_bytes()


def remote(served: Served, **options: str) -> RemoteFile:
    return RemoteFile(url=served.address, name="rows.jsonl", **options)


def test_a_file_is_fetched_once_and_its_digest_kept(tmp_path: Path) -> None:
    seen = []
    with serve(Served(CONTENT)) as served:
        path = download(remote(served), tmp_path, lambda done, total: seen.append((done, total)))
        assert download(remote(served), tmp_path) == path
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert served.asked == [""]
    expected = f"{hashlib.sha256(CONTENT).hexdigest()}  rows.jsonl\n"
    assert (tmp_path / "rows.jsonl.sha256").read_text() == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rows.jsonl", "rows.jsonl.sha256"]


def test_a_connection_that_ends_is_taken_up_where_it_ended(tmp_path: Path) -> None:
    with serve(Served(CONTENT, cuts=[1000, 500])) as served:
        assert download(remote(served), tmp_path).read_bytes() == CONTENT
    assert served.asked == ["", "bytes=1000-", "bytes=1500-"]


def test_the_same_command_goes_on_after_too_many_ends(tmp_path: Path) -> None:
    with serve(Served(CONTENT, cuts=[100, 0, 0, 0])) as served:
        with pytest.raises(ConnectionError, match=r"ended after 100 bytes .*; the same command goes on"):
            download(remote(served), tmp_path)
        assert not (tmp_path / "rows.jsonl").exists()
        served.cuts.clear()
        assert download(remote(served), tmp_path).read_bytes() == CONTENT
    assert served.asked[-1] == "bytes=100-"


@pytest.mark.parametrize("changes", [True, False])
def test_what_cannot_be_gone_on_with_begins_again(changes: bool, tmp_path: Path) -> None:
    with serve(Served(b"x" * 5000, cuts=[100, 0, 0, 0], knows_ranges=changes)) as served:
        with pytest.raises(ConnectionError):
            download(remote(served), tmp_path)
        served.cuts.clear()
        served.content = CONTENT  # another ETag, or a server without ranges
        assert download(remote(served), tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_whole_already_is_taken(tmp_path: Path) -> None:
    with serve(Served(CONTENT)) as served:
        (tmp_path / "rows.jsonl.part").write_bytes(CONTENT)
        (tmp_path / "rows.jsonl.part.json").write_text(json.dumps({served.address: served.etag}))
        assert download(remote(served), tmp_path).read_bytes() == CONTENT


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def test_a_published_digest_is_held_against_the_file(tmp_path: Path) -> None:
    with serve(Served(CONTENT)) as served:
        download(remote(served, git_blob=git_blob(CONTENT)), tmp_path / "right")
        with pytest.raises(
            ValueError, match="git's digest is not 0000, as published; it was removed: try again"
        ):
            download(remote(served, git_blob="0000"), tmp_path / "wrong")
    assert list((tmp_path / "wrong").iterdir()) == []


def test_gits_digest_is_gits() -> None:
    assert git_blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


def test_a_file_that_changed_since_is_named(tmp_path: Path) -> None:
    with serve(Served(CONTENT)) as served:
        path = download(remote(served), tmp_path)
        path.write_bytes(b"changed")
        with pytest.raises(ValueError, match="it was changed here: remove it and try again"):
            download(remote(served), tmp_path)
        path.unlink()
        served.content = b"another release"
        with pytest.raises(ValueError, match=r"is not .*, as rows\.jsonl\.sha256 has it; it was removed"):
            download(remote(served), tmp_path)


def test_the_one_file_is_taken_out_of_an_archive(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data/train.jsonl", CONTENT)
        archive.writestr("data/dev.jsonl", b"other")
    with serve(Served(packed.getvalue(), cuts=[200])) as served:
        assert download(remote(served, member="train.jsonl"), tmp_path).read_bytes() == CONTENT
        with pytest.raises(ValueError, match=r"holds 0 files test\.jsonl"):
            download(remote(served, member="test.jsonl"), tmp_path / "2")
    with serve(Served(b"<html>Sorry</html>")) as served, pytest.raises(ValueError, match="is no ZIP archive"):
        download(remote(served, member="train.jsonl"), tmp_path / "3")
    assert list((tmp_path / "3").iterdir()) == []


def test_a_server_that_says_no_or_is_not_there_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("prepare", "musique", "--out", tmp_path / "out", "--downloads", tmp_path / "downloads")
    with serve(Served(CONTENT, status=404)) as served:
        said = refused_last(capsys, *command, "--url", served.address)
        assert "the server said 404 Not Found; fetch the file by hand and give it with --input" in said
    said = refused_last(capsys, *command, "--url", served.address)
    assert "cannot be reached" in said and "check the network and proxy settings" in said
    said = refused_last(capsys, *command, "--url", "file:///etc/rows")
    assert "is no address of a file; give one like https://HOST/FILE.json" in said
    assert list(tmp_path.iterdir()) == []


def refused_last(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The last line of a refused command, after what it showed of source and licence."""
    assert march(*arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("march: ")
    assert not any("Traceback" in line for line in lines)
    return lines[-1]


def test_a_command_that_is_killed_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("prepare", "musique", "--out", tmp_path / "out", "--downloads", tmp_path)
    stalled = threading.Event()
    with serve(Served(CONTENT, cuts=[1000], stalled=stalled)) as served:
        arguments = [*MARCH, *map(str, command), "--url", served.address]
        started = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        address = hashlib.sha256(served.address.encode()).hexdigest()[:12]
        part = tmp_path / "musique" / address / "rows.jsonl.part"
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size == 1000) and time.monotonic() < deadline:
            time.sleep(0.01)
        started.kill()
        started.communicate()
        stalled.set()
        assert march(*command, "--url", served.address) == 0
    assert served.asked == ["", "bytes=1000-"]
    shown = capsys.readouterr()
    assert "8 of 8 rows in" in shown.out
    assert "MuSiQue, https://github.com/StonyBrookNLP/musique, licence: CC-BY-4.0" in shown.err


@pytest.mark.parametrize("name", ["tatqa_dataset_train.json", "my_own.json"])
def test_a_mirrors_file_is_what_was_published_under_its_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("prepare", "tatqa", "--out", tmp_path / "out", "--downloads", tmp_path)
    with serve(Served(SLICES["tatqa"].read_bytes()), name) as served:
        if name == "my_own.json":
            assert march(*command, "--url", served.address) == 0
        else:
            said = refused_last(capsys, *command, "--url", served.address)
            assert "git's digest is not" in said and "as published" in said


def test_an_archive_of_a_mirror_is_opened_as_the_published_one(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data/train.json", SLICES["2wikimultihopqa"].read_bytes())
    command = ("prepare", "2wikimultihopqa", "--out", tmp_path / "out", "--downloads", tmp_path)
    with serve(Served(packed.getvalue()), "data_ids_april7.zip") as served:
        assert march(*command, "--url", served.address) == 0
    assert not (tmp_path / "2wikimultihopqa" / "2wikimultihopqa_train.json").exists(), (
        "which --download takes"
    )


def test_one_address_cannot_give_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("prepare", "ragtruth", "--out", tmp_path / "out", "--downloads", tmp_path)
    said = refused(capsys, *command, "--url", "http://127.0.0.1:1/source_info.jsonl")
    assert (
        "ragtruth is read from source_info.jsonl and response.jsonl; give their folder with --input" in said
    )


def test_what_cannot_be_fetched_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "prepare", "musique", "--download", "--out", "o")
    assert "MuSiQue cannot be fetched: run its repository's download_data.sh" in said
    said = refused(capsys, "prepare", "bioasq", "--download", "--out", "o", "--accept-licence", "bioasq")
    assert "register at its page, accept its terms" in said
