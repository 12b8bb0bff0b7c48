"""What the cluster's containers run is what the programs know: commands, options, settings, metrics."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from typing import Any

import promql_parser
import pytest
import typer
import yaml

from pipeline.estimate.memory import GIB
from reward.config import OpenAISamplerConfig
from reward.serving.config import ServerConfig
from reward.serving.metrics import AuditMetrics
from tests.kubernetes_files import OVERLAYS, built, containers, named, of_kind, pods, quantity


def parsed(words: list[str]) -> dict[str, Any]:
    """What a `march` command line says, parsed and not run."""
    from orchestration.cli import app

    group: Any = typer.main.get_command(app)
    return dict(group.commands[words[0]].make_context(words[0], list(words[1:])).params)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_commands_are_marchs_own(overlay: str) -> None:
    objects = built(overlay)
    rayjob = named(objects, "RayJob", "retrain")["spec"]
    program, *words = shlex.split(rayjob["entrypoint"])
    assert program == "march" and parsed(words)["job"] == "/etc/march/job.yaml" and parsed(words)["if_due"]
    (look,) = containers(pods(objects)["CronJob/retrain"])
    asked = parsed(look["args"])
    assert "command" not in look and asked["job"] == "/etc/march/job.yaml"
    assert asked["if_due"] and asked["exit_zero"]
    mounts = [mount["mountPath"] for mount in look["volumeMounts"]]
    for word in shlex.split(asked["submit"])[1:]:
        assert word.rpartition("/")[0] in mounts
    (reward,) = containers(pods(objects)["Deployment/reward"])
    assert "command" not in reward and str(parsed(reward["args"])["config"]) == "/etc/march/reward.yaml"
    for where, pod in pods(objects).items():
        if where.startswith("RayJob"):  # KubeRay makes its `ray start`
            assert not any({"command", "args"} & set(one) for one in containers(pod))


def test_an_option_that_is_none_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["retrain", "job.yaml", "--caus", "cron"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ray_is_the_images(overlay: str) -> None:
    rayjob = named(built(overlay), "RayJob", "retrain")["spec"]
    assert rayjob["rayClusterSpec"]["rayVersion"] == version("ray")


@pytest.mark.slow  # imports Ray's and vLLM's command lines
def test_rays_and_vllms_commands_know_the_options() -> None:
    from ray.scripts.scripts import start
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    known = {option for parameter in start.params for option in parameter.opts}
    for overlay in OVERLAYS:
        spec = named(built(overlay), "RayJob", "retrain")["spec"]["rayClusterSpec"]
        groups = [spec["headGroupSpec"], *spec.get("workerGroupSpecs", [])]
        assert {f"--{name}" for group in groups for name in group["rayStartParams"]} <= known
        (engine,) = containers(pods(built(overlay))["Deployment/vllm"])
        assert make_arg_parser(FlexibleArgumentParser()).parse_args(engine["args"]).port == 8001


def test_the_reward_servers_settings_are_settings() -> None:
    settings = next(
        one["data"]["reward.yaml"]
        for one in of_kind(built("single-node-gpu"), "ConfigMap")
        if "reward.yaml" in one["data"]
    )
    config = ServerConfig.model_validate(yaml.safe_load(settings))
    reward = pods(built("single-node-gpu"))["Deployment/reward"]
    (container,) = reward["spec"]["containers"]
    assert config.port == container["ports"][0]["containerPort"]
    assert reward["spec"]["terminationGracePeriodSeconds"] >= config.drain_grace_s + 10
    limit = quantity(container["resources"]["limits"]["memory"])
    assert limit >= config.max_held_bytes + config.cache_bytes + GIB / 2
    engine = pods(built("single-node-gpu"))["Deployment/vllm"]["spec"]["containers"][0]
    assert isinstance(config.sampler, OpenAISamplerConfig)
    (url,) = config.sampler.base_urls
    assert url == f"http://vllm:{engine['ports'][0]['containerPort']}/v1"
    assert f"--port={engine['ports'][0]['containerPort']}" in engine["args"]
    assert f"--served-model-name={config.sampler.model}" in engine["args"]
    query = of_kind(built("single-node-gpu"), "ScaledObject")[0]["spec"]["triggers"][0]
    assert float(query["metadata"]["threshold"]) == config.max_in_flight / 2


def test_the_queue_that_is_scaled_on_is_a_metric() -> None:
    names = {metric.name for metric in AuditMetrics().registry.collect()}
    query = of_kind(built("single-node-gpu"), "ScaledObject")[0]["spec"]["triggers"][0]["metadata"]["query"]
    promql_parser.parse(query)
    asked = {
        word.strip("(")
        for word in query.replace("{", " ").replace("(", " ").split()
        if word.startswith("march_")
    }
    assert asked and asked <= names
