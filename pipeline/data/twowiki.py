"""2WikiMultihopQA: questions over ten Wikipedia paragraphs of which two to four are needed.

https://github.com/Alab-NII/2wikimultihop, Apache-2.0; Ho et al. 2020. A JSON list, or one row a line:

    {"_id": "1e20ce89089d11ebbd78ac1f6bf848b6", "type": "bridge_comparison",
     "question": "Which film has the director who died first, Lola (1981 Film) or One Minute To Play?",
     "context": [["Abhishek Saxena", ["Abhishek Saxena is an Indian Bollywood and Punjabi film ...",
                                      "The Phullu movie was released in theaters on 16 June ..."]], ...],
     "supporting_facts": [...], "evidences": [...], "answer": "...", "entity_ids": "...", ...}

Only id, question and context are read, so nothing that tells the answer can reach a training row. The
sentences of a paragraph carry no spaces at their ends and are joined with one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from reward.offline.rows import InputRecord, RowId, explain, make_query
from reward.types import Document, RagQuery

SOURCE = "2wikimultihopqa"
_LIST_START = re.compile(r"\s*\[")
_ROW_START = re.compile(r"[^\s,]")


class _Row(InputRecord):
    id: RowId = Field(alias="_id")
    question: Annotated[str, Field(min_length=1)]
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)


def read_twowiki(path: Path) -> Iterator[RagQuery]:
    """Yields the queries of a file in the official format, in order.

    Args:
        path: `train.json`, `dev.json` or any slice of them, as a JSON list or as JSONL.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is not JSON or not of that format; names file, line, field and mend.
    """
    for place, value in _values(path):
        try:
            row = _Row.model_validate(value)
        except ValidationError as error:
            raise ValueError(f"{place}: {explain(error)}") from error
        documents = [
            Document(id=f"{row.id}#{i}", title=title, text=" ".join(sentences))
            for i, (title, sentences) in enumerate(row.context)
        ]
        yield make_query(place, row.id, row.question, documents)


def _values(path: Path) -> Iterator[tuple[str, object]]:
    """Yields each row's place (FILE:LINE) and value; a list is read one row at a time, like JSONL."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; mend the path")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error}); give the file as it is published") from error
    decoder, line, counted = json.JSONDecoder(), 1, 0
    opening = _LIST_START.match(text)
    end = opening.end() if opening else 0
    while True:
        start = _first_other(text, end)
        line, counted = line + text.count("\n", counted, start), start
        if start == len(text) or (opening and text[start] == "]"):
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{line}: not JSON ({error}); mend the file or fetch it again") from error
        yield f"{path}:{line}", value
    if opening and text[start:].strip() != "]":
        raise ValueError(f"{path}:{line}: the list does not end there; the file is damaged, fetch it again")


def _first_other(text: str, start: int) -> int:
    """The first place from `start` that is no space or comma between rows."""
    match = _ROW_START.search(text, start)
    return match.start() if match else len(text)
