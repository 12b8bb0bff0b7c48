"""What is wrong with a record, in plain words, for every edge that reads one: files, requests and options."""

import reprlib
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


# Problems of which the words say all; for others, an edge shows what it found.
SAID_WHOLE = frozenset({"extra_forbidden", "missing", "too_short"})
_MOST_PLACES = 3
# A request may have a hundred thousand keys, and one of a megabyte.
_MOST_HINTS, _LONGEST_KEY = 10, 64
_SHOWN_CHARS = 60
_SHOWN = reprlib.Repr()  # looks at the beginning of a value alone, however large it is
_SHOWN.maxlevel, _SHOWN.maxstring, _SHOWN.maxother = 3, 4 * _SHOWN_CHARS, 4 * _SHOWN_CHARS
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxdict = 10


def shown(value: object) -> str:
    """The beginning of a wrong value, for a message."""
    return _SHOWN.repr(value)[:_SHOWN_CHARS]


def problems(error: ValidationError) -> list[ErrorDetails]:
    """The problems of a record, in order; `msg` is in plain words.

    Pydantic leaves wrong items out of a list and then finds it too short, too; that second one is left out.
    """
    found = error.errors(include_url=False)
    wrong_inside = {one["loc"][:end] for one in found for end in range(len(one["loc"]))}
    kept = [one for one in found if one["type"] != "too_short" or one["loc"] not in wrong_inside]
    hinted, worded = 0, list[ErrorDetails]()
    for one in kept:
        is_hinted = one["type"] == "extra_forbidden" and hinted < _MOST_HINTS
        hinted += is_hinted
        worded.append(ErrorDetails({**one, "msg": _words(one, error.title if is_hinted else "")}))
    return worded


def _words(problem: ErrorDetails, record: str) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {_fix_of_key(problem, record)}"
    if problem["type"] == "missing":
        return "missing; add it"
    if problem["type"] == "too_short" and problem["ctx"]["min_length"] == 1:
        return "is empty; give one at least"
    if problem["type"] == "string_too_long":
        return f"has over {problem['ctx']['max_length']} characters; shorten it"
    field = problem["loc"][-1] if problem["loc"] else ""  # which a validator's own words may begin with
    said = problem["msg"].removeprefix("Value error, ").removeprefix(f"{field}: ")
    return _PLAIN.get(problem["type"]) or said


def _fix_of_key(problem: ErrorDetails, record: str) -> str:
    """How to write a key that the class named `record` does not have at that place; "": not looked for."""
    *groups, key = problem["loc"]
    if not record or len(str(key)) > _LONGEST_KEY:
        return "remove it or fix its name"
    models = records = [one for one in _subclasses(BaseModel) if one.__name__ == record]
    for group in groups:  # which may be an index, or the name of a union's member
        inside = [one.model_fields[group].annotation for one in models if group in one.model_fields]
        models = [model for annotation in inside for model in _models(annotation)] if inside else models
    known = [name for model in models for name in model.model_fields]
    if near := get_close_matches(str(key), known, n=1, cutoff=0.7):
        return f"did you mean {near[0]}?"
    elsewhere = sorted({place for one in records for place in _places(one, str(key))})
    if 0 < len(elsewhere) <= _MOST_PLACES:
        return f"did you mean {' or '.join(elsewhere)}?"
    return "remove it or fix its name"


def _subclasses(of: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in of.__subclasses__():
        yield one
        yield from _subclasses(one)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _places(model: type[BaseModel], key: str) -> Iterator[str]:
    """Where in a record there is such a key, in dotted names."""
    for name, field in model.model_fields.items():
        if name == key:
            yield name
        for inside in _models(field.annotation):
            yield from (f"{name}.{place}" for place in _places(inside, key))
