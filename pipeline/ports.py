"""Ports that are handed out before the server that listens on them has started.

Between the two lie seconds of imports. A port that was only looked up may be given to any connection or
server of the machine meanwhile; one that is held may not.
"""

import socket


def hold_port(host: str = "") -> socket.socket:
    """Returns a socket that is bound to a free TCP port (`getsockname()[1]`), and listens at no time.

    Until it is closed the system gives the port to no connection, and to no socket but those that ask for
    SO_REUSEADDR and for this very port, as servers do (Linux, socket(7)). So the one that the port is meant
    for can listen on it while it is held. `host` is an IPv4 address of this machine; "" for all of them.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((host, 0))
    return held
