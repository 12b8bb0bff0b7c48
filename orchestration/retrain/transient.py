"""Which failures may pass: those are tried again; what a user can fix is not, and neither is a bug.

Libraries are recognised by the names of their errors, so that none is loaded to ask. An error that was raised
from another one may pass if the other one may.
"""

import errno
import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential

from orchestration.retrain.records import StageProblem
from orchestration.terminal.messages import user_error
from pipeline.record.tracking import mlflows_problem

_PASSING = (
    "requests.exceptions.ConnectionError", "requests.exceptions.Timeout", "urllib3.exceptions.HTTPError",
    "http.client.HTTPException", "httpx.TransportError", "botocore.exceptions.ConnectionError",
    "botocore.exceptions.HTTPClientError", "openai.APIConnectionError", "sqlalchemy.exc.OperationalError",
    "ray.exceptions.RayError", "pipeline.record.run.TrainingFailedError", "reward.samplers.SamplerError",
    "pipeline.evaluate.tasks.served.ServerDownError", "orchestration.registry.decisions.LostRaceError",
)  # fmt: skip
_STATUSES = (408, 425, 429, 500, 502, 503, 504)
_BUGS = (AssertionError, AttributeError, LookupError, NameError, NotImplementedError, TypeError)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_TOO_LONG = 500
PATIENCE_S = 60.0  # for a server that is restarted; a stage's own retries come on top
_T = TypeVar("_T")
logger = logging.getLogger(__name__)


def is_transient(error: BaseException) -> bool:
    return any(_may_pass(one) for one in _chain(error)) and not any(_is_final(one) for one in _chain(error))


def patiently(act: Callable[[], _T], *, patience_s: float = PATIENCE_S) -> _T:
    """Does something again while it fails for reasons that may pass, and says so; then its error rises."""

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome and state.attempt_number == 1 else None
        if isinstance(error, Exception):
            why = mlflows_problem(error)
            logger.warning("MLflow or the artifact store: %s; trying again for up to %g s", why, patience_s)

    trying = Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_delay(patience_s),
        wait=wait_exponential(multiplier=0.5, max=10),
        before_sleep=tell,
        reraise=True,
    )
    return trying(act)


def problem_of(error: Exception) -> StageProblem:
    """What a stage's process says of the error that ended it.

    Whatever has no name here and is neither a bug nor a user's to fix is an engine's (CUDA, vLLM, Ray), and
    those often work the next time.
    """
    line, transient = user_error(error), is_transient(error)
    is_bug = isinstance(error, _BUGS) or any(_is_final(one) for one in _chain(error))
    code = 2 if line is not None and not transient else 1
    text = " ".join((line or f"{type(error).__name__}: {error}").split())
    may_help = transient or (line is None and not is_bug)
    return StageProblem(line=text[:_TOO_LONG], transient=may_help, exit_code=code)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    kinds = [(one.__module__, one.__qualname__) for one in type(error).__mro__]
    # A library's name for what lies deeper in it: openai._exceptions.X is openai.X.
    names = {f"{place}.{name}" for module, name in kinds for place in (module, module.partition(".")[0])}
    return bool(names & set(_PASSING)) or _status(error) in _STATUSES


def _is_final(error: BaseException) -> bool:
    """A full disk, or a guard, a setting or a bug that ended a training: waiting fixes none of them."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    if type(error).__name__ != "TrainingFailedError":
        return False
    return getattr(error, "exit_code", 1) != 1 or not getattr(error, "may_pass", True)


def _status(error: BaseException) -> int | None:
    """The HTTP status that an error of boto3's or MLflow's carries."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return int(found) if found is not None else None
    get = getattr(error, "get_http_status_code", None)
    # MLflow's error says 500 for what it cannot name; a failed connection is such, and names itself.
    return int(get()) if callable(get) else None
