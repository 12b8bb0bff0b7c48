"""Names in Inspect's registry: all of this package's begin with `march/`, however it was installed.

Inspect puts the top-level package of a function's module before its name (`pipeline/`), but only in a wheel
and not in an editable install. A function of a module that does not exist keeps the name that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_F = TypeVar("_F", bound=Callable[..., object])


def of_march(function: _F) -> _F:
    """Comes below Inspect's decorator, which is given the whole name: `@task(name="march/ragtruth")`."""
    function.__module__ = "march"
    return function
