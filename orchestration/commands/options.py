"""Options that several commands have."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

set_option = partial(typer.Option, "--set", metavar="KEY=VALUE")
Overrides = Annotated[list[str] | None, set_option(help="Override a key, e.g. ppo.kl_coef=0.01; repeatable.")]
