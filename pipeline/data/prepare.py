"""Queries to the rows that OpenRLHF trains on, with a manifest.

    train.jsonl     {"input": [{"role", "content"}, ...], "label": "<RagQuery as JSON>", "datasource": "..."}
    manifest.json   last, by rename: counts, settings and digests; a folder without it is not whole

`input` is the Solver's prompt, `label` what the audit needs: the query and its documents, carried beside the
prompt and never cut back out of it. A `RagQuery` holds no reference answer, so none can leak. Prompts over
the limit are left out and counted: OpenRLHF would cut them, and the Solver would not have seen documents that
it is audited against. Rows with the same question and documents are written once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from pipeline.record.checkpoints import write_atomically
from reward.roles.prompts import PromptSet
from reward.samplers import Message
from reward.types import RagQuery, Record

ROWS_FILE, MANIFEST_FILE = "train.jsonl", "manifest.json"

CountTokens = Callable[[Sequence[Message]], int]


class Manifest(Record):
    """What a folder of rows was made from, and how many rows it holds."""

    source: str
    source_sha256: str | None = Field(default=None, description="Of the file that was read, if it was one.")
    num_read: int
    num_duplicates: int = Field(description="Rows whose question and documents stood before; left out.")
    num_overlong: int = Field(description="Rows over max_prompt_tokens; left out.")
    num_rows: int = Field(description="Rows written.")
    longest_prompt_tokens: int | None = Field(default=None, description="Of the rows written, if counted.")
    mean_prompt_tokens: float | None = Field(default=None, description="Of the rows written, if counted.")
    prompt_digest: str
    tokenizer: str | None = None
    max_prompt_tokens: int | None = None
    rows_sha256: str = Field(description="Of train.jsonl.")


@dataclass
class _Counts:
    """What happened to the rows on the way; the only state of a preparation."""

    read: int = 0
    duplicates: int = 0
    overlong: int = 0
    rows: int = 0
    longest: int = 0  # tokens
    tokens: int = 0  # of all prompts


def write_rows(
    queries: Iterable[RagQuery],
    out_dir: Path,
    *,
    prompts: PromptSet,
    tokenizer_path: str | None,
    max_prompt_tokens: int | None,
    source: str,
    source_sha256: str | None = None,
) -> Manifest:
    """Writes `train.jsonl` and its manifest, in the order of the queries.

    Args:
        queries: What to train on.
        out_dir: Made if needed; what it held of an earlier preparation is replaced.
        prompts: The set whose Solver prompt is rendered.
        tokenizer_path: Folder or name of the policy's tokenizer, whose chat template counts.
        max_prompt_tokens: Longest rendered prompt; together with `tokenizer_path` or not at all.
        source: Goes into every row's `datasource` and the manifest.
        source_sha256: Of the file that was read.

    Raises:
        ValueError: only one of tokenizer and limit is given, the tokenizer cannot be used, one id stands for
            two different queries, or no row is left.
    """
    if (tokenizer_path is None) != (max_prompt_tokens is None):
        raise ValueError(
            f"max_prompt_tokens: {max_prompt_tokens} with tokenizer: {tokenizer_path}; give both or neither"
        )
    count_tokens = _token_counter(tokenizer_path) if tokenizer_path else None
    out_dir.mkdir(parents=True, exist_ok=True)
    counts = _Counts()
    lines = _lines(_unique(queries, counts), counts, prompts, count_tokens, max_prompt_tokens, source)
    with _temporary(out_dir / ROWS_FILE) as rows_file:
        rows_sha256 = _write_lines(lines, rows_file)
        if not counts.rows:
            raise ValueError(
                f"{source}: none of {counts.read} rows is left ({counts.overlong} have more than "
                f"{max_prompt_tokens} prompt tokens); raise --max-prompt-tokens or give other rows"
            )
        (out_dir / MANIFEST_FILE).unlink(missing_ok=True)
        os.replace(rows_file, out_dir / ROWS_FILE)
    manifest = Manifest(
        source=source,
        source_sha256=source_sha256,
        num_read=counts.read,
        num_duplicates=counts.duplicates,
        num_overlong=counts.overlong,
        num_rows=counts.rows,
        longest_prompt_tokens=counts.longest if count_tokens else None,
        mean_prompt_tokens=counts.tokens / counts.rows if count_tokens else None,
        prompt_digest=prompts.digest,
        tokenizer=tokenizer_path,
        max_prompt_tokens=max_prompt_tokens,
        rows_sha256=rows_sha256,
    )
    write_atomically(out_dir / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def read_manifest(folder: Path | None) -> Manifest | None:
    """Returns the manifest of prepared rows, if it is there."""
    path = folder / MANIFEST_FILE if folder else None
    return Manifest.model_validate_json(path.read_text()) if path and path.is_file() else None


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unique(queries: Iterable[RagQuery], counts: _Counts) -> Iterator[RagQuery]:
    contents: set[str] = set()
    ids: dict[str, str] = {}
    for query in queries:
        counts.read += 1
        content = _content_digest(query)
        if ids.setdefault(query.id, content) != content:
            raise ValueError(f"id: {query.id!r} stands for two different queries; give each its own")
        if content in contents:
            counts.duplicates += 1
            continue
        contents.add(content)
        yield query


def _content_digest(query: RagQuery) -> str:
    """Of what the Solver sees; ids of rows and documents may differ between copies."""
    content = [query.query, [(document.title, document.text) for document in query.documents]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _lines(
    queries: Iterable[RagQuery],
    counts: _Counts,
    prompts: PromptSet,
    count_tokens: CountTokens | None,
    max_prompt_tokens: int | None,
    source: str,
) -> Iterator[str]:
    for query in queries:
        messages = prompts.solver(query)
        if count_tokens is not None and max_prompt_tokens is not None:
            num_tokens = count_tokens(messages)
            if num_tokens > max_prompt_tokens:
                counts.overlong += 1
                continue
            counts.longest = max(counts.longest, num_tokens)
            counts.tokens += num_tokens
        counts.rows += 1
        row = {"input": messages, "label": query.model_dump_json(), "datasource": source}
        yield json.dumps(row, ensure_ascii=False) + "\n"


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A file beside `path`, gone at the end unless it was renamed."""
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _write_lines(lines: Iterable[str], path: Path) -> str:
    """Returns the SHA-256 of what was written."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for line in lines:
            digest.update(line.encode())
            file.write(line.encode())
    return digest.hexdigest()


def _token_counter(tokenizer_path: str) -> CountTokens:
    from reward.samplers.tokens import load_tokenizer, prompt_token_ids

    tokenizer = load_tokenizer(tokenizer_path, field="tokenizer")
    return lambda messages: len(prompt_token_ids(tokenizer, messages))
