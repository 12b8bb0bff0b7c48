"""`march prepare` on synthetic rows of MuSiQue's size: rows a second, memory, growth of the search.

    python -m bench prepare        # BENCH_ROWS=100000; about half an hour on two cores

A row has twenty paragraphs of 82 words and a question of 17, as 50 rows of MuSiQue have in the mean. Of a
hundred rows five nearly repeat one before, one repeats it word for word, and one has a paragraph of the 500
rows that stand for an evaluation set. The policy's tokenizer is the tiny one, whose tokens are short: a
prompt has several times as many as with a tokenizer of Llama or Qwen, so counting them takes longer here.

Memory is the sum over all processes, sampled every second: `rss` counts shared pages once a process, `pss`
once. `rows_per_cpu_s` is the rate of one core, also where others use the machine. The search for nearly equal
rows is timed by itself, too, on the hashes of the same rows.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from bench.measure import write_result
from pipeline.data.duplicates import RowsBefore, fingerprint
from pipeline.data.musique import MusiqueRow
from pipeline.data.prepare import read_manifest
from pipeline.data.rows import parse_row

_ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
_SIZES = (_ROWS // 100, _ROWS // 10, _ROWS)
_EVALUATION_ROWS = 500
_PARAGRAPHS, _PARAGRAPH_WORDS, _QUESTION_WORDS = 20, 82, 17
_SAMPLE_S = 1.0
_COMMAND = (sys.executable, "-c", "from orchestration.cli import main; main()", "prepare", "musique")

Row = dict[str, Any]


def run() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evaluation = list(_rows(_EVALUATION_ROWS, seed=1, name="dev", evaluation=[]))
        _write(folder / "dev.jsonl", iter(evaluation))
        _write(folder / "rows.jsonl", _rows(_ROWS, seed=0, name="train", evaluation=evaluation))
        prepared = {str(size): _prepare(folder, size) for size in _SIZES}
        search = _search(folder / "rows.jsonl")
        num_bytes = (folder / "rows.jsonl").stat().st_size
    samples_s = {f"prepare_{size}": [found["seconds"]] for size, found in prepared.items()}
    samples_s |= {f"search_{size}": [found["seconds"]] for size, found in search.items()}
    figures = {"input_mb": num_bytes / 1e6, "prepare": prepared, "search": search}
    path = write_result("prepare", samples_s=samples_s, figures=figures)
    print(path.read_text())


def _rows(num_rows: int, *, seed: int, name: str, evaluation: list[Row]) -> Iterator[Row]:
    draw = random.Random(seed)
    words = [f"{draw.choice('bcdfgklmnprst')}{draw.randrange(10**6):x}" for _ in range(20_000)]
    sums = list(itertools.accumulate(1 / (place + 10) for place in range(len(words))))
    before: Row | None = None
    for i in range(num_rows):
        texts = [
            " ".join(draw.choices(words, cum_weights=sums, k=_PARAGRAPH_WORDS)) for _ in range(_PARAGRAPHS)
        ]
        question = " ".join(draw.choices(words, cum_weights=sums, k=_QUESTION_WORDS))
        row = _row(f"{name}{i}", question, texts)
        if before is not None and i % 100 in (10, 30, 50, 70, 90):
            row = _row(f"{name}{i}", before["question"] + "?", [*texts[:1], *_texts(before)[1:]])
        if before is not None and i % 100 == 20:
            row = before | {"id": f"{name}{i}"}
        if evaluation and i % 100 == 40:
            row = _row(f"{name}{i}", question, [*texts[1:], _texts(evaluation[i % len(evaluation)])[0]])
        before = row
        yield row


def _row(name: str, question: str, texts: list[str]) -> Row:
    paragraphs = [
        {"idx": place, "title": f"Title {place}", "paragraph_text": text, "is_supporting": place < 2}
        for place, text in enumerate(texts)
    ]
    return {"id": name, "question": question, "paragraphs": paragraphs, "answer": "x", "answerable": True}


def _texts(row: Row) -> list[str]:
    return [paragraph["paragraph_text"] for paragraph in row["paragraphs"]]


def _write(path: Path, rows: Iterator[Row]) -> None:
    with path.open("w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def _prepare(folder: Path, size: int) -> dict[str, float]:
    """One run of the command, as a user has it."""
    out = folder / f"out{size}"
    options = ("--limit", str(size), "--tokenizer", "tiny", "--max-prompt-tokens", "100000")
    inputs = ("--input", folder / "rows.jsonl", "--exclude-overlap", folder / "dev.jsonl", "--out", out)
    start = time.perf_counter()
    process = psutil.Popen([*_COMMAND, *map(str, inputs), *options], stdout=subprocess.DEVNULL)
    peaks = _peaks(process)
    seconds = time.perf_counter() - start
    manifest = read_manifest(out)
    assert process.returncode == 0 and manifest is not None
    removed = {f"num_{reason}": num for reason, num in manifest.removed.items()}
    return {
        "seconds": seconds,
        "rows_per_s": size / seconds,
        "rows_per_cpu_s": size / peaks["cpu_s"],
        **peaks,
        "num_rows": manifest.num_rows,
        **removed,
    }


def _peaks(process: psutil.Popen) -> dict[str, float]:
    """Largest sums over all processes, in MiB, and the CPU seconds of all of them."""
    rss = pss = processes = 0
    cpu_s: dict[int, float] = {}  # by process, as last seen
    while process.poll() is None:
        found = []
        for one in _family(process):
            try:
                memory, times = one.memory_full_info(), one.cpu_times()
            except psutil.Error:
                continue
            found.append((memory.rss, memory.pss))
            cpu_s[one.pid] = times.user + times.system
        rss, pss = max(rss, sum(one[0] for one in found)), max(pss, sum(one[1] for one in found))
        processes = max(processes, len(found))
        time.sleep(_SAMPLE_S)
    peaks = {"peak_rss_mib": rss / 2**20, "peak_pss_mib": pss / 2**20, "processes": processes}
    return peaks | {"cpu_s": sum(cpu_s.values())}


def _family(parent: psutil.Process) -> list[psutil.Process]:
    try:
        return [parent, *parent.children(recursive=True)]
    except psutil.Error:
        return []


def _search(path: Path) -> dict[str, dict[str, float]]:
    """Seconds that the search alone took for the first rows, and for each of the last tenth of them."""
    found: dict[str, dict[str, float]] = {}
    seconds, since = 0.0, 0.0
    before = RowsBefore()
    rows = (parse_row(raw, MusiqueRow) for raw in MusiqueRow.raw_rows(path))
    queries = (query for row in rows for query in row.queries(str(path)))
    for number, query in enumerate(queries, start=1):
        keys, hashes = fingerprint(query)
        start = time.perf_counter()
        before.add_kept(query.id, "musique", keys, hashes, 0.8)
        seconds += time.perf_counter() - start
        if number in [size - size // 10 for size in _SIZES]:
            since = seconds
        if number in _SIZES:
            last_ms = 1000 * (seconds - since) / max(number // 10, 1)
            found[str(number)] = {"seconds": seconds, "last_tenth_ms_a_row": last_ms}
    return found
