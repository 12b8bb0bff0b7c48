"""A synthetic checkpoint to S3 and back, against a plain loop of put_object and get_object over shards.

    python -m bench artifacts        # BENCH_MIB=1024; BENCH_S3=s3://BUCKET and AWS_ENDPOINT_URL for your own

Without BENCH_S3 the endpoint is OpenStack Swift on loopback, which shares the machine's cores with the
client, so the ratio says little about a network. Ours hashes the files, signs each part's digest, and
verifies; a process of its own does it, whose peak memory is taken.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import median_ratio, write_result
from pipeline.artifacts.s3 import make_client
from pipeline.artifacts.settings import MIB, StoreSettings
from tests.s3_server import serve_swift

_MIB = int(os.environ.get("BENCH_MIB", "1024"))
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
_SHARDS, _BLOCK = 4, 16 * MIB
_OURS = """
import json, re, sys, time
from pathlib import Path
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import open_store
def peak_mib():  # since this program began; getrusage's peak has that of the process that started it
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
store = open_store(StoreSettings.model_validate_json(sys.argv[1]))
list(store.pointers())  # boto3 is loaded
before = peak_mib()
start = time.perf_counter()
if sys.argv[2] == "up":
    digest = store.publish(Path(sys.argv[3]), kind="model").digest
else:
    digest = sys.argv[4]
    store.get(digest, Path(sys.argv[3]))
seconds = time.perf_counter() - start
print(json.dumps({"s": seconds, "digest": digest, "peak_mib": peak_mib(), "loaded_mib": before}))
"""


def run() -> None:
    with tempfile.TemporaryDirectory() as folder, _endpoint(Path(folder)) as settings:
        samples: dict[str, list[float]] = {"plain_up": [], "up": [], "plain_down": [], "down": []}
        peaks: dict[str, float] = {}
        for _ in range(_ROUNDS):
            found = _round(settings, Path(folder), samples)
            peaks = {name: max(peaks.get(name, 0.0), value) for name, value in found.items()}
        figures: dict[str, Any] = {"mib": _MIB, "shards": _SHARDS, "part_mib": settings.part_mib}
        figures |= {"workers": settings.workers} | peaks
    for way in ("up", "down"):
        figures[f"{way}_times_plain"] = median_ratio(samples, f"plain_{way}", way)
    print(write_result("artifacts", samples_s=samples, figures=figures))


def _round(settings: StoreSettings, folder: Path, samples: dict[str, list[float]]) -> dict[str, float]:
    """Each way once, plain and ours in turn; returns peaks of memory."""
    client, shards = make_client(settings), _write_shards(folder / "model")
    start = time.perf_counter()
    for shard in shards:
        with shard.open("rb") as file:
            client.put_object(Bucket=settings.bucket, Key=shard.name, Body=file)
    samples["plain_up"].append(time.perf_counter() - start)
    up = _ours(settings, "up", folder / "model")
    start = time.perf_counter()
    for shard in shards:
        with (folder / "plain").open("wb") as out:
            shutil.copyfileobj(client.get_object(Bucket=settings.bucket, Key=shard.name)["Body"], out, MIB)
    samples["plain_down"].append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        down = _ours(settings, "down", Path(out), up["digest"])
    samples["up"].append(up["s"])
    samples["down"].append(down["s"])
    return {f"{way}_{name}": one[name] for way, one in (("up", up), ("down", down)) for name in _MEMORY}


_MEMORY = ("peak_mib", "loaded_mib")


def _ours(settings: StoreSettings, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-c", _OURS, settings.model_dump_json(), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def _write_shards(folder: Path) -> list[Path]:
    """New content each time, so that nothing is there already."""
    folder.mkdir(exist_ok=True)
    shards = [folder / f"shard-{number}.bin" for number in range(_SHARDS)]
    for shard in shards:
        with shard.open("wb") as file:
            for _ in range(_MIB * MIB // _SHARDS // _BLOCK):
                file.write(os.urandom(_BLOCK))
    return shards


@contextmanager
def _endpoint(folder: Path) -> Iterator[StoreSettings]:
    if location := os.environ.get("BENCH_S3"):
        yield StoreSettings(location=location, endpoint=os.environ["AWS_ENDPOINT_URL"])
        return
    (folder / "swift").mkdir()
    with serve_swift(folder / "swift") as server:
        os.environ |= server.environment
        settings = server.settings("bench")
        make_client(settings).create_bucket(Bucket="bench")
        yield settings
