"""Shared by the tests of the images: the Dockerfile built and run without a container engine or a registry.

Debian's `buildah` executes the Dockerfile in chroots. The base image is a Debian of the same release with
Debian's Python, made by `mmdebstrap`; the pinned base has Python elsewhere and of a later patch level. An
image is run as its manifest says, in namespaces of its own: as its user, root read-only, its volume a folder.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_BASE = "localhost/march-python"
_PACKAGES = "ca-certificates,netbase,python3,python3-venv,tzdata"
_MIRROR = "deb http://deb.debian.org/debian bookworm main"
_TOOLS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "unshare": "util-linux", "chroot": "coreutils"}
_MISSING = [package for tool, package in _TOOLS.items() if not shutil.which(tool)]
needs_builder = pytest.mark.skipif(
    bool(_MISSING) or os.getuid() != 0, reason=f"needs root and Debian's {', '.join(_MISSING) or 'buildah'}"
)

# The pinned base has Python in /usr/local, and its headers.
_LIKE_THE_PINNED = """
ln -s /usr/bin/python3 "$1/usr/local/bin/python"
chroot "$1" sh -euc "cd /tmp; apt-get download -qq libpython3.11-dev; dpkg -x *.deb /; rm *.deb"
"""

# In namespaces of its own: the root read-only, /tmp in memory, the volume a folder; then as the image's user.
_ENTER = """
root=$1 volume=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind -o ro /sys "$root/sys"
mount -t tmpfs -o mode=1777,size=2g tmpfs "$root/tmp"
mount --bind "$volume" "$root/var/lib/march"
mount -o remount,bind,ro "$root"
exec chroot "$@"
"""


@dataclass(frozen=True)
class Image:
    """A built image: its files and its manifest."""

    root: Path
    settings: dict[str, Any]
    """The manifest's `config`: User, Env, Entrypoint, Cmd, Labels, Healthcheck."""

    def command(
        self, *arguments: str, volume: Path, entrypoint: Sequence[str] | None = None, **environment: str
    ) -> list[str]:
        """What runs the image once; without arguments its own command."""
        given = [f"{key}={value}" for key, value in environment.items()]
        user, group = self.settings["User"].split(":")
        program = [*(self.settings["Entrypoint"] if entrypoint is None else entrypoint)]
        return [
            *("unshare", "--mount", "--pid", "--fork", "sh", "-euc", _ENTER, "sh"),
            *(str(self.root), str(volume), str(self.root), "setpriv", f"--reuid={user}", f"--regid={group}"),
            # A change of user forgets this signal, so it is set afterwards; no process outlives a test.
            *("--clear-groups", "--no-new-privs", "--bounding-set=-all", "--pdeathsig=KILL"),
            *("env", "-i", f"--chdir={self.settings['WorkingDir']}", *self.settings["Env"], *given),
            *program,
            *(arguments or (self.settings["Cmd"] if entrypoint is None else ())),
        ]

    def run(
        self, *arguments: str, volume: Path, timeout_s: float = 120, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs the image to its end."""
        command = self.command(*arguments, volume=volume, **more)
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)

    def num_bytes(self) -> int:
        """What its files take on a disk."""
        done = subprocess.run(["du", "-sx", "-B1", self.root], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[0])


class Builder:
    """Builds targets of the Dockerfile under a folder; `close` removes what it made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._buildah = [
            *("buildah", "--root", str(folder / "storage"), "--runroot", str(folder / "run")),
            *("--storage-driver", "vfs"),
        ]
        self._make_base()

    def build(self, target: str, **arguments: str) -> Image:
        """An image of the Dockerfile at the repository's root."""
        given = (
            {"PYTHON_IMAGE": _BASE, "MARCH_VERSION": "0.0.1", "MARCH_COMMIT": "abc"} | _wheels() | arguments
        )
        options = [f"--build-arg={key}={value}" for key, value in given.items()]
        # Where this machine trusts an authority of its own, the build must, too.
        options += [f"--volume={path}:{path}:ro" for path in (str(CERTIFICATES), *_folders(given))]
        self._run(
            "build",
            "--isolation=chroot",
            "--format=docker",
            "--target",
            target,
            "--tag",
            target,
            *options,
            ROOT,
        )
        container = self._run("from", "--pull-never", target).strip()
        manifest = json.loads(self._run("inspect", "--type", "image", target))
        return Image(Path(self._run("mount", container).strip()), manifest["Docker"]["config"])

    def close(self) -> None:
        """Removes images and containers."""
        self._run("rm", "--all")
        shutil.rmtree(self._folder)

    def _make_base(self) -> None:
        archive = self._folder / "base.tar"
        command = [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={_PACKAGES}",
            f"--customize-hook={_LIKE_THE_PINNED}",
        ]
        command += ['--aptopt=Acquire::Check-Valid-Until "false"']  # a mirror may be a snapshot of the past
        subprocess.run([*command, "bookworm", archive, _MIRROR], check=True, capture_output=True)
        context = self._folder / "context"
        context.mkdir()
        archive.rename(context / "base.tar")
        (context / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
        self._run("build", "--isolation=chroot", "--tag", _BASE, context)
        shutil.rmtree(context)

    def _run(self, *arguments: str | Path) -> str:
        command = [*self._buildah, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout


def _wheels() -> Mapping[str, str]:
    """Where this machine finds wheels, as the Dockerfile takes it."""
    found = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS")
    return {"UV_FIND_LINKS": found} if found else {}


def _folders(arguments: Mapping[str, str]) -> list[str]:
    return [value for value in arguments.values() if value.startswith("/") and Path(value).is_dir()]
