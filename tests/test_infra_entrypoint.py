"""The images' entry point, run for real: secrets out of files, what it refuses, and its end as `march`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parents[1] / "infra" / "images" / "entrypoint.sh"
UID = 10001
EX_CONFIG = 78
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="changes user, mounts or namespaces: needs root")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the images' user may enter, with a volume, and with a `march` that shows what it got."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        (place / "bin").mkdir()
        (place / "volume").mkdir(mode=0o777)
        (place / "volume").chmod(0o777)
        write_program(place / "bin" / "march", 'echo "$@"; env')
        yield place


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def settings(place: Path, more: Mapping[str, object]) -> dict[str, str]:
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(place / "volume")} | {key: str(value) for key, value in more.items()}


def enter(
    place: Path, *arguments: str, before: tuple[str, ...] = (), **environment: object
) -> subprocess.CompletedProcess[str]:
    """Runs the entry point as the images' user; without root as this one."""
    user = {"user": UID, "group": UID, "extra_groups": []} if os.getuid() == 0 and not before else {}
    return subprocess.run(
        [*before, "sh", str(ENTRYPOINT), *arguments],
        env=settings(place, environment),
        capture_output=True,
        text=True,
        check=False,
        **user,  # type: ignore[call-overload]
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of an entry point that started nothing."""
    assert (done.returncode, done.stdout) == (EX_CONFIG, ""), done
    assert done.stderr.startswith("march-entrypoint: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def written(place: Path, name: str, content: str) -> Path:
    path = place / name
    path.write_text(content)
    path.chmod(0o644)
    return path


def test_a_secret_comes_out_of_its_file(place: Path) -> None:
    token, other = written(place, "token", "a $HOME `id` 'b'\n"), written(place, "key", "two\nlines\n")
    done = enter(
        place, "serve", "--port", "8000", MARCH_REWARD_TOKEN_FILE=token, AWS_SECRET_ACCESS_KEY_FILE=other
    )
    assert done.returncode == 0 and done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert first == "serve --port 8000"
    assert "MARCH_REWARD_TOKEN=a $HOME `id` 'b'" in rest
    assert "AWS_SECRET_ACCESS_KEY=two\nlines\n" in done.stdout
    assert "_FILE=" not in done.stdout


def test_other_programs_of_the_images_get_secrets_too(place: Path) -> None:
    write_program(place / "bin" / "mlflow", 'echo "mlflow $*"; echo "$MLFLOW_BACKEND_STORE_URI"')
    uri = written(place, "uri", "postgresql://march:word@postgres/mlflow")
    done = enter(place, "mlflow", "server", MLFLOW_BACKEND_STORE_URI_FILE=uri)
    assert done.stdout == f"mlflow server\n{uri.read_text()}\n"


def test_the_volume_is_left_as_it_was(place: Path) -> None:
    assert enter(place, "--help").returncode == 0
    assert list((place / "volume").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "AWS_CONFIG_FILE",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
        "NCCL_TOPO_FILE",
        "PIP_CONFIG_FILE",
        "SSL_CERT_FILE",
        "SSL_KEY_FILE",
        "TORCHELASTIC_ERROR_FILE",
    ],
)
def test_a_librarys_own_path_stays_a_path(place: Path, name: str) -> None:
    done = enter(place, **{name: "/nowhere"})
    assert done.returncode == 0 and f"{name}=/nowhere\n" in done.stdout


def test_a_line_of_a_value_is_no_variable(place: Path) -> None:
    done = enter(place, CERTIFICATE="first\nTOKEN_FILE=/nowhere\nlast")
    assert done.returncode == 0


def test_a_file_that_is_missing_empty_or_no_file(place: Path) -> None:
    missing, empty = place / "missing", written(place, "empty", "\n\n")
    for path, problem in ((missing, "does not exist"), (empty, "is empty"), (place / "bin", "is not a file")):
        line = refused(enter(place, "serve", WEBHOOK_SECRET_FILE=path))
        assert f"WEBHOOK_SECRET_FILE: {path} {problem}" in line


def test_a_name_and_its_file_are_not_both_believed(place: Path) -> None:
    line = refused(enter(place, TOKEN="clear", TOKEN_FILE=written(place, "token", "secret")))
    assert "TOKEN and TOKEN_FILE are both set" in line
    assert "secret" not in line and "clear" not in line


@needs_root
def test_a_file_of_another_user(place: Path) -> None:
    secret = written(place, "secret", "hidden")
    secret.chmod(0o600)
    line = refused(enter(place, TOKEN_FILE=secret))
    assert f"TOKEN_FILE: {secret} cannot be read by user {UID}" in line and "hidden" not in line


@needs_root
def test_a_volume_of_another_user(place: Path) -> None:
    (place / "volume").chmod(0o755)
    assert f"cannot be written by user {UID}" in refused(enter(place))


def test_a_volume_that_is_not_there(place: Path) -> None:
    assert "does not exist; mount a volume" in refused(enter(place, HOME=place / "elsewhere"))


@needs_root
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare (Debian: util-linux)")
def test_a_full_volume(place: Path) -> None:
    fill = (
        'mount -t tmpfs -o size=16k tmpfs "$HOME"; head -c 99999 /dev/zero >"$HOME/x" 2>/dev/null; exec "$@"'
    )
    done = enter(place, before=("unshare", "--mount", "sh", "-c", fill, "sh"))
    assert f"{place / 'volume'} is full; free space" in refused(done)


def test_an_image_of_another_architecture(place: Path) -> None:
    image = place / "entrypoint.sh"
    image.write_text(
        ENTRYPOINT.read_text().replace("/usr/local/share/march/architecture", str(place / "built"))
    )
    written(place, "built", "aarch64\n")
    write_program(place / "bin" / "uname", "echo x86_64")
    done = subprocess.run(
        ["sh", str(image)], env=settings(place, {}), capture_output=True, text=True, check=False
    )
    line = refused(done)
    assert "built for aarch64 and this machine is x86_64" in line


@needs_root
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare (Debian: util-linux)")
def test_march_is_the_first_process_and_gets_the_signals(place: Path) -> None:
    waiting = "trap 'echo ended; exit 7' TERM; echo pid $$; while :; do sleep 0.02; done"
    write_program(place / "bin" / "march", waiting)
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "sh", str(ENTRYPOINT)],
        env=settings(place, {}),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "pid 1\n"
        [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert process.stdout.read() == "ended\n" and process.wait() == 7
    finally:
        process.kill()
