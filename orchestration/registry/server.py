"""How MLflow's server is spoken to: page by page, and its errors in one line."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt

from pipeline.record.tracking import mlflows_problem, option_of, usable_database

_PAGE = 1_000
# A server that hangs is given up after two minutes; MLflow's own limits make that a quarter of an hour.
_IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}
_UNSURE = ("INTERNAL_ERROR", "TEMPORARILY_UNAVAILABLE")  # the request may have been done
MISSING, EXISTS = "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS"
_Found = TypeVar("_Found")


def be_impatient() -> None:
    """Makes MLflow's client give up soon in this process; what the user has set stays."""
    os.environ.update(_IMPATIENT | os.environ)


def patient_environment() -> dict[str, str]:
    """The environment without that, for processes that a short patience would cost their work."""
    return dict(os.environ.items() - _IMPATIENT.items())


def pages(search: Callable[..., Any], **arguments: object) -> Iterator[Any]:
    """All results of one of the client's searches."""
    token: str | None = None
    while True:
        page = search(max_results=_PAGE, page_token=token, **arguments)
        yield from page
        token = page.token
        if not token:
            return


def unless(code: str, ask: Callable[..., _Found], *arguments: object) -> _Found | None:
    """What the server says; None for this error."""
    from mlflow.exceptions import MlflowException

    try:
        return ask(*arguments)
    except MlflowException as error:
        if error.error_code != code:
            raise
    return None


def past_races(write: Callable[..., object], *arguments: object) -> None:
    """Writes an alias or a tag, again where another writer was between MLflow's look and its insert.

    Over PostgreSQL the second of two such writers gets the database's error; over SQLite they wait in turn.
    """
    is_race = retry_if_exception(lambda error: getattr(error, "error_code", "") == "BAD_REQUEST")
    Retrying(retry=is_race, stop=stop_after_attempt(3), reraise=True)(write, *arguments)


@contextmanager
def one_line_errors(uri: str, *, writes: bool = False) -> Iterator[None]:
    """Gives MLflow's errors, and a server that is not there, one line.

    `writes` is for requests of which a lost answer leaves open whether they were done.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import DBAPIError

    be_impatient()
    try:
        with usable_database(uri):
            yield
    except (MlflowException, DBAPIError) as error:
        fix = "fix the address or the name"
        if isinstance(error, DBAPIError) or error.error_code in _UNSURE:
            fix = "start its server, or fix the address"
            if writes:
                fix += "; look at `march model list` first: unless it was done, the same command goes on"
        raise ValueError(f"{option_of(uri)} {uri}: {mlflows_problem(error)}; {fix}") from error
