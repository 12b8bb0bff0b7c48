"""What is wrong with a record, in plain words, for every edge that reads one: files, requests and options."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_PLAIN = {
    "tuple_type": "is no list",
    "list_type": "is no list",
    "model_type": "is no object, keys with values",
    "dict_type": "is no object, keys with values",
}


def problems(error: ValidationError) -> list[ErrorDetails]:
    """The problems of a record, in order; `msg` is in plain words.

    Pydantic leaves wrong items out of a list and then finds it too short, too; that second one is left out.
    """
    found = error.errors(include_url=False)
    wrong_inside = {one["loc"][:end] for one in found for end in range(len(one["loc"]))}
    kept = [one for one in found if one["type"] != "too_short" or one["loc"] not in wrong_inside]
    return [ErrorDetails({**one, "msg": _words(one)}) for one in kept]


def _words(problem: ErrorDetails) -> str:
    if problem["type"] == "too_short" and problem["ctx"]["min_length"] == 1:
        return "is empty; give one at least"
    return _PLAIN.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
