"""Every connection is an open file, and the system lets a process have only so many.

`ulimit -n` is often 1,024, far below what the server promises to hold; the soft limit may be raised up to the
hard one by the process itself.
"""

from __future__ import annotations

import logging
import resource

from reward.serving.config import ServerConfig

logger = logging.getLogger(__name__)

_OTHER_FILES = 64  # the listener, logs, the event loop's own


def make_room(config: ServerConfig) -> None:
    """Raises the soft limit on open files to what the server may need, and warns when it stays too low."""
    num_needed = config.door.max_connections + config.max_in_flight + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _allows(soft, num_needed):
        return
    num_allowed = num_needed if _allows(hard, num_needed) else hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (num_allowed, hard))
    except (OSError, ValueError):  # some systems have a lower limit of their own
        num_allowed = soft
    if num_allowed < num_needed:
        logger.warning(
            "open files: %d are allowed, but door.max_connections %d with max_in_flight %d may need %d; "
            "start with ulimit -n %d or lower door.max_connections",
            *(num_allowed, config.door.max_connections, config.max_in_flight, num_needed, num_needed),
        )


def _allows(limit: int, num_files: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= num_files
