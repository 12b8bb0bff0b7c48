"""What is wrong with a record, in plain words, for every edge that reads one: files, requests and options."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import get_args

from pydantic import BaseModel, ValidationError
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


def unknown_key(problem: ErrorDetails, of: type[BaseModel] | None) -> str:
    """What to say of a key that a record (`of` this class, where it is known) does not have."""
    *groups, key = problem["loc"]
    models = [of] if of else []
    for group in groups:  # which may be an index, or the name of a union's member
        inside = [one.model_fields[group].annotation for one in models if group in one.model_fields]
        models = [model for annotation in inside for model in _models(annotation)] if inside else models
    known = [name for model in models for name in model.model_fields]
    near = get_close_matches(str(key), known, n=1, cutoff=0.7)
    return f"unknown key; did you mean {near[0]}?" if near else "unknown key; remove it or fix its name"


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
