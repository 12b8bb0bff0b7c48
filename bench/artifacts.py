"""A synthetic checkpoint to S3 and back, against a plain sequential copy through the same endpoint.

    python -m bench artifacts        # BENCH_MIB=4096; BENCH_S3=s3://BUCKET and AWS_ENDPOINT_URL for your own

Without BENCH_S3 the endpoint is OpenStack Swift on loopback, which shares the machine's cores with the
client, so the ratio says little about a network. The plain copy is boto3's own, one part after the other.
Ours hashes the file, sends checksums with each part, and verifies; a process of its own does it, whose peak
memory is taken. Then an upload is killed halfway and gone on with: `resent_mib` is what was sent twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import write_result
from pipeline.artifacts.s3 import make_client
from pipeline.artifacts.settings import MIB, StoreSettings
from tests.fault_proxy import Fault, Harm, proxy_to
from tests.s3_server import serve_swift

_MIB = int(os.environ.get("BENCH_MIB", "4096"))
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
_BLOCK = 16 * MIB
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
    """Runs the benchmark and writes its result."""
    with tempfile.TemporaryDirectory() as folder, _endpoint(Path(folder)) as settings:
        checkpoint = _checkpoint(Path(folder) / "model.bin")
        samples: dict[str, list[float]] = {"plain_up": [], "up": [], "plain_down": [], "down": []}
        peaks: dict[str, float] = {}
        for number in range(_ROUNDS):
            _renew(checkpoint, number)
            found = _round(settings, checkpoint, Path(folder), samples)
            peaks = {name: max(peaks.get(name, 0.0), value) for name, value in found.items()}
        _renew(checkpoint, _ROUNDS)
        figures: dict[str, Any] = {"mib": _MIB, "part_mib": settings.part_mib, "workers": settings.workers}
        figures |= peaks | _killed(settings, checkpoint)
    for way in ("up", "down"):
        ratios = sorted(a / b for a, b in zip(samples[f"plain_{way}"], samples[way], strict=True))
        figures[f"{way}_times_plain"] = ratios[len(ratios) // 2]
    print(write_result("artifacts", samples_s=samples, figures=figures))


def _round(
    settings: StoreSettings, checkpoint: Path, folder: Path, samples: dict[str, list[float]]
) -> dict[str, float]:
    """Each way once, plain and ours in turn; returns peaks of memory."""
    from boto3.s3.transfer import TransferConfig

    client = make_client(settings)
    plain = TransferConfig(use_threads=False, multipart_chunksize=settings.part_mib * MIB)
    start = time.perf_counter()
    client.upload_file(str(checkpoint), settings.bucket, "plain", Config=plain)
    samples["plain_up"].append(time.perf_counter() - start)
    up = _ours(settings, "up", checkpoint)
    start = time.perf_counter()
    client.download_file(settings.bucket, "plain", str(folder / "plain"), Config=plain)
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


def _killed(settings: StoreSettings, checkpoint: Path) -> dict[str, float]:
    """Kills an upload when half of its parts are there, and goes on with it."""
    assert settings.endpoint is not None
    with proxy_to(settings.endpoint) as proxy:
        through = settings.model_copy(update={"endpoint": proxy.endpoint})
        half = _MIB // settings.part_mib // 2
        proxy.faults = [Fault("PUT .*partNumber=", Harm.HOLD, times=settings.workers, after=half)]
        process = subprocess.Popen(
            [sys.executable, "-c", _OURS, through.model_dump_json(), "up", str(checkpoint)]
        )
        proxy.held.wait()
        process.kill()
        process.wait()
        proxy.faults = []
        _ours(through, "up", checkpoint)
        sent = proxy.num_bytes("PUT .*partNumber=")
    return {"resent_mib": (sent - checkpoint.stat().st_size) / MIB, "killed_after_parts": half}


def _checkpoint(path: Path) -> Path:
    with path.open("wb") as file:
        for _ in range(-(-_MIB * MIB // _BLOCK)):
            file.write(os.urandom(_BLOCK))
        file.truncate(_MIB * MIB)
    return path


def _renew(checkpoint: Path, number: int) -> None:
    """Changes each MiB, so that nothing is there already."""
    with checkpoint.open("r+b") as file:
        for start in range(0, _MIB * MIB, MIB):
            file.seek(start)
            file.write(number.to_bytes(8, "little"))


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
