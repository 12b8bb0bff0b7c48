"""One address for whichever server answers now: connections are passed on, byte by byte.

A new connection goes to the present target and stays with it until it ends. Nothing of HTTP is read, so
streams, keys and metrics pass as they are. Where no target answers, the client gets 503.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections import Counter
from contextlib import suppress

LOOPBACK = "127.0.0.1"
_CHUNK = 65_536
_LINGER_S = 2.0
_AWAY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


class Forwarder:
    """Passes connections on to a port of this machine."""

    def __init__(self) -> None:
        self.target: int | None = None  # a port
        self._open = Counter[int]()
        self._tasks = set[asyncio.Task[None]]()  # the loop alone would not keep those whose client is done

    def num_open(self, port: int) -> int:
        """Connections to a port that have not ended."""
        return self._open[port]

    async def listen(self, host: str, port: int) -> None:
        """Listens until the loop ends; ValueError where it cannot."""
        try:
            await asyncio.start_server(self._connected, host, port)
        except OSError as error:
            line = f"--port: {host}:{port} cannot be listened on ({error}); give another"
            raise ValueError(line) from None

    def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        port = self.target
        if port is None:
            return await _refuse(reader, writer)
        self._open[port] += 1  # before it is made: a server without connections may be ended
        try:
            await _connect(port, reader, writer)
        finally:
            self._open[port] -= 1


async def _connect(port: int, reader: StreamReader, writer: StreamWriter) -> None:
    """Passes all on between a client and the server on a port, until the server has ended."""
    try:
        server = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return await _refuse(reader, writer)
    asking = asyncio.create_task(_copy(reader, server[1]))
    try:
        await _copy(server[0], writer)
    finally:
        asking.cancel()
        server[1].close()
        writer.close()


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    """All bytes, and then the end, also where the reader's side was cut off."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()


async def _refuse(reader: StreamReader, writer: StreamWriter) -> None:
    """Answers 503, and reads on: closing a connection with unread bytes would reset it, answer and all."""
    with suppress(OSError, TimeoutError):
        writer.write(_AWAY)
        writer.write_eof()
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(_CHUNK):
                pass
    writer.close()
