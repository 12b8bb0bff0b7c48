"""The images, built from the Dockerfile without a container engine and run as their manifests say.

`make test-slow` builds all that need no GPU.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos_processes import free_port
from tests.image_builds import ROOT, Builder, Image, needs_builder
from tests.march_cli import serve_shop, write_rows
from tests.retrain_process import SMALLEST

TOKEN = "a-token-of-thirty-two-characters-"
HEAVY = ("torch", "vllm", "deepspeed", "openrlhf")


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    builder = Builder(tmp_path_factory.mktemp("builder"))
    yield builder
    builder.close()


@pytest.fixture(scope="module")
def audit(builder: Builder) -> Image:
    return builder.build("audit")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A folder of the image's user."""
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o777)
    volume.chmod(0o777)
    return volume


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def python(image: Image, code: str, volume: Path) -> str:
    """What a line of Python prints in an image."""
    done = image.run("-c", code, volume=volume, entrypoint=["python"])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def installed(image: Image, volume: Path) -> set[str]:
    code = "import importlib.metadata as m; print(*{d.metadata['Name'].lower() for d in m.distributions()})"
    return set(python(image, code, volume).split())


def becomes_healthy(image: Image, volume: Path, port: int, path: str) -> bool:
    """Whether the image's own health check passes within three minutes."""
    check, address = image.settings["Healthcheck"]["Test"], f"http://127.0.0.1:{port}{path}"
    assert check[0] == "CMD"
    until = time.monotonic() + 180
    while time.monotonic() < until:
        done = image.run(volume=volume, entrypoint=check[1:], MARCH_HEALTH_URL=address)
        if done.returncode == 0:
            return True
        time.sleep(0.3)
    return False


def check_contents(image: Image, volume: Path, *, absent: tuple[str, ...]) -> None:
    """What every image promises of its files: an inventory, no tools of the build, nothing to write to."""
    documents = image.root / "usr/share/doc/march"
    packages = installed(image, volume)
    listed = {
        part["name"].lower() for part in json.loads((documents / "sbom.cdx.json").read_text())["components"]
    }
    assert packages - {"march-pipeline"} <= listed | {name.replace("_", "-") for name in listed}
    assert all(
        f"| {name} " in (documents / "licences.md").read_text().lower() for name in ("fastapi", "pydantic")
    )
    assert "libc6" in (documents / "debian-packages.txt").read_text()
    assert not packages & {"uv", "cyclonedx-bom", "pip-licenses", *absent}
    shell = image.run("-lc", "command -v march", volume=volume, entrypoint=["bash"])
    assert shell.stdout == "/opt/march/bin/march\n", shell.stderr  # as KubeRay may start Ray
    for tool in ("usr/bin/g++", "usr/bin/gcc", "opt/tools", "src"):
        assert not (image.root / tool).exists(), tool
    for place in ("/opt/march/x", "/x", "/usr/local/bin/x"):
        assert (
            "Read-only"
            in image.run("-c", f"open({place!r}, 'w')", volume=volume, entrypoint=["python"]).stderr
        )


@needs_builder
@pytest.mark.long
def test_the_audit_image_holds_what_it_says(audit: Image, volume: Path) -> None:
    check_contents(audit, volume, absent=(*HEAVY, "mlflow", "ray", "pip"))
    labels = audit.settings["Labels"]
    assert labels["org.opencontainers.image.version"] == "0.0.1"
    assert labels["org.opencontainers.image.revision"] == "abc"
    assert audit.settings["User"] == "10001:10001" and "/var/lib/march" in audit.settings["Volumes"]
    assert "Usage: march" in audit.run(volume=volume).stdout
    assert audit.num_bytes() < 400e6


@needs_builder
@pytest.mark.long
def test_the_audit_image_audits_a_file(audit: Image, volume: Path) -> None:
    write_rows(volume)
    done = audit.run("audit", "in.jsonl", "--out", "out.jsonl", "--html", "report.html", volume=volume)
    assert done.returncode == 0, done.stderr
    assert len((volume / "out.jsonl").read_text().splitlines()) == 30 and (volume / "report.html").exists()
    assert (volume / "out.jsonl").stat().st_uid == 10001


@needs_builder
@pytest.mark.long
def test_the_audit_image_serves_until_it_is_told_to_stop(audit: Image, volume: Path) -> None:
    port = free_port()
    (volume / "token").write_text(TOKEN)
    with serve_shop() as shop:
        command = audit.command(
            *("serve", "--port", str(port), "--openai-url", f"{shop}/v1", "--model", "shop"),
            volume=volume,
            MARCH_REWARD_TOKEN_FILE="/var/lib/march/token",
        )
        with started(command) as process:
            assert becomes_healthy(audit, volume, port, "/healthz")
            [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            subprocess.run(["kill", "-TERM", child], check=True)
            assert process.wait(30) == 0


@needs_builder
@pytest.mark.long
def test_the_audit_image_says_what_it_was_given_wrongly(audit: Image, volume: Path) -> None:
    done = audit.run("serve", volume=volume, MARCH_REWARD_TOKEN_FILE="/run/secrets/march_reward_token")
    assert done.returncode == 78 and done.stderr.count("\n") == 1
    assert "MARCH_REWARD_TOKEN_FILE: /run/secrets/march_reward_token does not exist" in done.stderr
    volume.chmod(0o755)
    done = audit.run("--help", volume=volume)
    assert done.returncode == 78 and "cannot be written by user 10001" in done.stderr


@pytest.fixture(scope="module")
def orchestrator(builder: Builder) -> Image:
    return builder.build("orchestrator")


@needs_builder
@pytest.mark.long
def test_the_orchestrator_image_knows_its_commands(orchestrator: Image, volume: Path) -> None:
    check_contents(orchestrator, volume, absent=HEAVY)
    for command in (
        "retrain",
        "schedule",
        "status",
        "model promote",
        "model rollback",
        "model list",
        "model lineage",
        "artifacts",
    ):
        done = orchestrator.run(*command.split(), "--help", volume=volume)
        assert done.returncode == 0 and f"march {command}" in done.stdout, done.stderr
    assert "MLflow" in orchestrator.run("mlflow", "--help", volume=volume).stdout
    done = orchestrator.run("retrain", "tiny", "--dry-run", volume=volume)
    assert done.returncode == 0 and "promote" in done.stdout, done.stderr


@needs_builder
@pytest.mark.long
def test_the_orchestrator_image_serves_mlflow_and_a_schedule(orchestrator: Image, volume: Path) -> None:
    port, schedule = free_port(), free_port()
    for file in (ROOT / "orchestration" / "retrain" / "jobs").iterdir():
        shutil.copy(file, volume)
    with (volume / "tiny.yaml").open("a") as job:
        job.write('triggers: {cron: {expression: "0 0 1 1 *"}}\n')
    server = (
        "mlflow",
        "server",
        "--workers=1",
        f"--port={port}",
        "--backend-store-uri=sqlite:////var/lib/march/mlflow.db",
    )
    no_jobs = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with started(orchestrator.command(*server, volume=volume, **no_jobs)):
        assert becomes_healthy(orchestrator, volume, port, "/health")
        tracking = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}
        assert orchestrator.run("model", "list", volume=volume, **tracking).returncode == 0
        command = ("schedule", "tiny.yaml", f"--port={schedule}")
        with started(orchestrator.command(*command, volume=volume, **tracking)):
            assert becomes_healthy(orchestrator, volume, schedule, "/healthz")


@needs_builder
@pytest.mark.long
@pytest.mark.training
@pytest.mark.timeout(3600)
def test_the_training_image_trains_without_a_compiler(builder: Builder, volume: Path) -> None:
    image = builder.build("train-cpu", UV_EXTRA_INDEX_URL="")
    check_contents(image, volume, absent=("flash-attn",))
    smallest = [part for setting in SMALLEST for part in ("--set", setting)]
    assert image.run("train", "tiny", "--dry-run", volume=volume).returncode == 0
    done = image.run("train", "tiny", "--run-dir", "run", *smallest, volume=volume, timeout_s=1500)
    log = volume / "run" / "train.log"
    assert done.returncode == 0, done.stderr + (log.read_text()[-3000:] if log.exists() else "")
    assert (volume / "run" / "result.json").exists()
    assert not list(volume.glob(".cache/torch_extensions/**/*.so"))  # nothing was compiled
