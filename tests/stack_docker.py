"""A command `docker` for backup.sh and restore.sh of infra/compose: a test's stack does what they ask of it.

python tests/stack_docker.py ADDRESS compose run --rm --no-deps --no-TTY rclone ...
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.stack_process import Stack

_KEY = b"stack"


@contextmanager
def docker_for(stack: Stack) -> Iterator[dict[str, str]]:
    """An environment whose `docker` speaks to a stack."""
    folder = stack.machine.folder
    address = str(folder / "docker.sock")
    command = folder / "bin" / "docker"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__)}" "{address}" "$@"\n')
    command.chmod(0o755)
    with Listener(address, "AF_UNIX", authkey=_KEY) as listener:
        threading.Thread(target=_serve, args=(listener, stack), daemon=True).start()
        path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
        yield {**os.environ, "PATH": path, "BACKUP_OWNER": str(os.getuid())}


def _serve(listener: Listener, stack: Stack) -> None:
    while True:
        try:
            with listener.accept() as asked:
                _answer(asked, stack)
        except OSError:
            return  # it was closed


def _answer(asked: Connection, stack: Stack) -> None:
    try:
        asked.send(_done(stack, asked.recv()))
    except Exception as error:  # the script must fail, and say why
        asked.send((1, "", f"{type(error).__name__}: {error}\n"))


def _done(stack: Stack, arguments: Sequence[str]) -> tuple[int, str, str]:
    options = {"--rm", "--no-deps", "--no-TTY", "--detach", "--wait", "--profile", "cpu", "gpu"}
    verb, *rest = [one for one in arguments[1:] if one not in options]
    if verb == "run":
        done = stack.run(rest[0], *rest[1:])
        return done.returncode, done.stdout, done.stderr
    assert verb in ("stop", "up"), arguments
    stack.up(*rest) if verb == "up" else stack.stop(*filter(stack.runs, rest))
    return 0, "", ""


if __name__ == "__main__":
    with Client(sys.argv[1], "AF_UNIX", authkey=_KEY) as connection:
        connection.send(sys.argv[2:])
        code, out, error = connection.recv()
    sys.stdout.write(out)
    sys.stderr.write(error)
    sys.exit(code)
