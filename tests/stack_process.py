"""The stack of infra/compose as processes: started, looked at, killed and started again as Compose would."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.compose_file import FOLDER, ROOT, Machine, Program, read_compose
from tests.postgres import postgres_owner, postgres_programs

NEEDED = {
    "prometheus": "prometheus",
    "rclone": "rclone",
    "curl": "curl",
    "wget": "wget",
    "pg_isready": "postgresql-client",
}
MARCH = '#!/bin/sh\nexec "{python}" -c "from orchestration.cli import main; main()" "$@"\n'
CHECKPOINT = ROOT / "pipeline" / "tiny" / "checkpoint"
MODEL = "/var/lib/march/tiny"  # in the container of vLLM
_PATIENCE_S = 1200.0


def require_programs() -> None:
    """Skips where a program of Debian is missing, and says which package has it."""
    for program, package in NEEDED.items():
        if not shutil.which(program):
            pytest.skip(f"no {program} (Debian: {package})")


class Stack:
    """Services of compose.yaml as processes.

    Args:
        machine: Their addresses and folders.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def url(self, name: str, port: int) -> str:
        """A service's address."""
        return f"http://{self.machine.address[name]}:{port}"

    def secret(self, name: str) -> str:
        """What a secret's file holds."""
        return Path(self.machine.project["secrets"][name]["file"]).read_text()

    def log(self, name: str) -> Path:
        """Output of a service, of all its starts."""
        return self.machine.folder / "logs" / f"{name}.log"

    def up(self, *names: str) -> None:
        """Starts services and what they depend on, each when its conditions hold, until they are well."""
        pending, well = self._with_dependencies(names), set[str]()
        starting: list[str] = [name for name in names if name not in pending]
        until = time.monotonic() + _PATIENCE_S
        while pending or starting:
            for name in [one for one, needs in pending.items() if needs <= well]:
                del pending[name]
                self.start(name)
                starting.append(name)
            well |= set(filter(self.is_well, starting))
            starting = [name for name in starting if name not in well]
            for name in starting:
                assert self.runs(name) or self._is_done(name), self.said(name)
            assert time.monotonic() < until, "\n".join(map(self.said, starting))
            time.sleep(0.5)

    def start(self, name: str) -> None:
        """Starts a service, as for the first time or again."""
        program = self._program_of(name)
        self.log(name).parent.mkdir(exist_ok=True)
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                program.command,
                env=program.env,
                cwd=program.folder,
                stdout=log,
                stderr=log,
                **_owner_of(name),
            )

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`docker compose run NAME ARGUMENTS`, to its end."""
        program = self.machine.program(name, arguments or None)
        return subprocess.run(
            program.command, env=program.env, cwd=program.folder, capture_output=True, text=True, timeout=300
        )

    def env(self, name: str) -> dict[str, str]:
        """A service's environment, with what its secrets' files hold in place of their names."""
        env = self.machine.program(name).env
        files = {key: value for key, value in env.items() if key.endswith("_FILE")}
        read = {key.removesuffix("_FILE"): Path(value).read_text() for key, value in files.items()}
        return {key: value for key, value in env.items() if key not in files} | read

    def kill(self, name: str) -> None:
        """Kills all processes of a service at once, as the end of a container's first process does."""
        for process in self._family(name):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._processes[name].wait(60)

    def stop(self, *names: str) -> None:
        """Asks services to end, in the order given, and kills what does not."""
        for name in names:
            number = getattr(signal, self.machine.service(name).get("stop_signal", "SIGTERM"))
            with suppress(psutil.NoSuchProcess):
                psutil.Process(self._processes[name].pid).send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._processes[name].wait(30)
            self.kill(name)

    def down(self) -> None:
        """Stops all that runs, what depends on others first."""
        self.stop(*[name for name in reversed(self._processes) if self.runs(name)])

    def is_well(self, name: str) -> bool:
        """Whether a service's health check passes; of one that ends by itself, whether it ended well."""
        if "healthcheck" not in self.machine.service(name):
            return self._is_done(name)
        if not self.runs(name):
            return False
        env = self.machine.program(name).env
        done = subprocess.run(self.machine.health(name), env=env, capture_output=True, timeout=60)
        return done.returncode == 0

    def wait(self, name: str) -> None:
        """Until a service is well."""
        until = time.monotonic() + _PATIENCE_S
        while not self.is_well(name):
            assert self.runs(name) and time.monotonic() < until, self.said(name)
            time.sleep(0.3)

    def said(self, name: str) -> str:
        """The end of a service's output."""
        log = self.log(name)
        return f"{name}: {log.read_text(errors='replace')[-3000:] if log.exists() else 'not started'}"

    def _program_of(self, name: str) -> Program:
        program = self.machine.program(name)
        if name == "postgres":
            make_database(program, self.machine.local(name, "/var/lib/postgresql/data"))
            sockets = self.machine.local(name, "/var/run/postgresql")
            data = self.machine.local(name, "/var/lib/postgresql/data")
            more = ["-D", data, "-h", self.machine.address[name], "-c", f"unix_socket_directories={sockets}"]
            command = [str(postgres_programs() / "postgres"), *program.command[1:], *more]
            return Program(command, program.env, program.folder)
        return program

    def _family(self, name: str) -> list[psutil.Process]:
        """A service's processes; those in sessions of their own are found by its home."""
        home = self.machine.program(name).env["HOME"]
        found = [] if home == str(self.machine.folder) else list(_at_home(home))
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self._processes[name].pid)
            return [first, *first.children(recursive=True), *found]
        return found

    def _with_dependencies(self, names: Sequence[str]) -> dict[str, set[str]]:
        """Services that do not run, each with those that must be well before it is started."""
        found: dict[str, set[str]] = {}

        def add(name: str) -> None:
            needs = set(self.machine.service(name).get("depends_on") or ())
            needs &= set(self.machine.project["services"])  # the others are of profiles that are off
            for needed in needs:
                add(needed)
            if not self.runs(name):
                found[name] = {one for one in needs if one in found}

        for name in names:
            add(name)
        return found

    def runs(self, name: str) -> bool:
        """Whether a service's process is alive."""
        return name in self._processes and self._processes[name].poll() is None

    def _is_done(self, name: str) -> bool:
        return name in self._processes and self._processes[name].poll() == 0


@contextmanager
def make_stack(variables: Mapping[str, str]) -> Iterator[Stack]:
    """A stack with secrets of its own and nothing running; all of it ends with it.

    Args:
        variables: Of compose.yaml.
    """
    require_programs()
    folder = Path(tempfile.mkdtemp(prefix="stack"))
    folder.chmod(0o711)  # PostgreSQL's user goes through
    group = {"SECRETS_GROUP": str(os.getgid())}
    subprocess.run([FOLDER / "make-secrets.sh", folder / "secrets"], env=os.environ | group, check=True)
    own = {"SECRETS": str(folder / "secrets"), "BACKUP": str(folder / "backup"), "MODEL": MODEL}
    project = read_compose({**own, **variables}, "cpu", "backup")
    network = random.randrange(1, 255), random.randrange(256)
    machine = Machine(project, folder, network=network, path=_path(folder))
    machine.lay_out()
    Path(machine.local("vllm", MODEL)).symlink_to(CHECKPOINT)
    _give_to_postgres(machine)
    stack = Stack(machine)
    try:
        yield stack
    finally:
        stack.down()
        shutil.rmtree(folder, ignore_errors=True)


def _path(folder: Path) -> str:
    """The command `march` of this source, the environment's own programs, and the machine's."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "march").write_text(MARCH.format(python=sys.executable))
    (tools / "march").chmod(0o755)
    return os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])


def make_database(program: Program, data: str) -> None:
    """What the image's entry point does when its volume is empty: a cluster, its user, its database."""
    if (Path(data) / "PG_VERSION").exists():
        return
    env = program.env
    password = Path(data).parent / f".{secrets.token_hex(4)}"
    password.write_text(Path(env["POSTGRES_PASSWORD_FILE"]).read_text())
    who = postgres_owner()
    if who:
        shutil.chown(password, who["user"], who["group"])
    init = [
        str(postgres_programs() / "initdb"),
        "--pgdata",
        data,
        "--username",
        env["POSTGRES_USER"],
        "--pwfile",
    ]
    init += [str(password), *env["POSTGRES_INITDB_ARGS"].split(), "--auth-local=trust", "--no-sync"]
    subprocess.run(init, check=True, capture_output=True, cwd=data, **who)
    password.unlink()
    single = [str(postgres_programs() / "postgres"), "--single", "-D", data, "postgres"]
    create = f'CREATE DATABASE "{env["POSTGRES_DB"]}" OWNER "{env["POSTGRES_USER"]}"\n'
    subprocess.run(single, input=create, text=True, check=True, capture_output=True, cwd=data, **who)


def _owner_of(name: str) -> dict[str, Any]:
    return postgres_owner() if name == "postgres" else {}


def _give_to_postgres(machine: Machine) -> None:
    if who := postgres_owner():
        for target in ("/var/lib/postgresql/data", "/var/run/postgresql"):
            folder = Path(machine.local("postgres", target))
            shutil.chown(folder, who["user"], who["group"])
            for parent in folder.parents:
                if parent.is_relative_to(machine.folder):
                    parent.chmod(0o711)


def _at_home(home: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == home:
                yield process
