"""What the cluster's containers run is what the programs know: commands, options, settings, metrics."""

from __future__ import annotations

import re
import shlex
from importlib.metadata import version
from typing import Any

import promql_parser
import pytest
import typer
import yaml

from pipeline.estimate.memory import GIB
from pipeline.settings.recipe import load_recipe
from reward.config import OpenAISamplerConfig
from reward.serving.config import ServerConfig
from reward.serving.metrics import AuditMetrics
from tests.kubernetes_files import KUBERNETES, OVERLAYS, built, containers, named, of_kind, pods, quantity


def parsed(words: list[str]) -> dict[str, Any]:
    """What a `march` command line says, parsed and not run."""
    from orchestration.cli import app

    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return dict(command.make_context("march", list(words)).params)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_commands_are_marchs_own(overlay: str) -> None:
    objects = built(overlay)
    *before, retraining = named(objects, "RayJob", "retrain")["spec"]["entrypoint"].split(";")
    program, *words = shlex.split(retraining)
    assert program == "march" and parsed(words)["job"] == "/etc/march/job.yaml" and parsed(words)["if_due"]
    for command in before:
        program, *words = shlex.split(command)
        assert program == "march" and parsed(words)
    (look,) = containers(pods(objects)["CronJob/retrain"])
    asked = parsed(look["args"])
    assert "command" not in look and asked["job"] == "/etc/march/job.yaml"
    assert asked["if_due"] and asked["exit_zero"]
    mounts = [mount["mountPath"] for mount in look["volumeMounts"]]
    python, script, template, *labels = shlex.split(asked["submit"])
    assert python == "python" and script.rpartition("/")[0] in mounts
    assert named(objects, "RayJob", template) and all("=" in label for label in labels)
    (reward,) = containers(pods(objects)["Deployment/reward"])
    assert "command" not in reward and str(parsed(reward["args"])["config"]) == "/etc/march/reward.yaml"
    for where, pod in pods(objects).items():
        if where.startswith("RayJob"):  # KubeRay makes its `ray start`
            assert not any({"command", "args"} & set(one) for one in containers(pod))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_console_waits_for_a_person_with_what_a_look_has(overlay: str) -> None:
    objects = built(overlay)
    assert named(objects, "CronJob", "console")["spec"]["suspend"] is True
    console, look = (pods(objects)[f"CronJob/{name}"] for name in ("console", "retrain"))
    ((person,), (timer,)) = containers(console), containers(look)
    for key in ("image", "workingDir", "env", "envFrom"):
        assert person[key] == timer[key]
    assert console["metadata"]["labels"] == look["metadata"]["labels"], "the policies that let it out"
    claims = [one for one in console["spec"]["volumes"] if one in look["spec"]["volumes"]]
    assert claims == console["spec"]["volumes"]
    assert person["command"][0] == "sleep" and console["spec"]["serviceAccountName"] == "console"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_the_run_book_types_is_there(overlay: str) -> None:
    text = (KUBERNETES.parent / "RUNBOOK.md").read_text()
    for name in re.findall(r"--from=cronjob/([\w-]+)", text):
        assert named(built(overlay), "CronJob", name)
    typed = re.findall(r"`k exec job/console -- march ([^`]+)`", text)
    for words in typed:
        assert parsed(shlex.split(words)), words
    for needed in ("model list", "model rollback MODEL", "artifacts gc"):
        assert any(words.startswith(needed) for words in typed), needed


@pytest.mark.parametrize("overlay", OVERLAYS[1:])
def test_models_are_of_one_commit(overlay: str) -> None:
    """The engine's, and the recipe's, under the name that it has in the cache."""
    (engine,) = containers(pods(built(overlay))["Deployment/vllm"])
    (revision,) = [one for one in engine["args"] if one.startswith("--revision=")]
    command = named(built(overlay), "RayJob", "retrain")["spec"]["entrypoint"].split(";")[0]
    fetched = parsed(shlex.split(command)[1:])
    for commit in (revision.partition("=")[2], fetched["revision"]):
        assert re.fullmatch("[0-9a-f]{40}", commit)
    job = yaml.safe_load(named(built(overlay), "ConfigMap", "retrain-job")["data"]["job.yaml"])
    assert f"model={fetched['model'].rpartition('/')[2]}" in job["recipe"]["overrides"]
    assert fetched["model"] == load_recipe(job["recipe"]["name"]).model


@pytest.mark.parametrize("overlay", OVERLAYS[1:])
def test_the_judge_is_the_engine_by_a_name_that_says_its_commit(overlay: str) -> None:
    (engine,) = containers(pods(built(overlay))["Deployment/vllm"])
    args = engine["args"]
    names = args[args.index("--served-model-name") + 1 :]
    (revision,) = [one.partition("=")[2] for one in args if one.startswith("--revision=")]
    job = yaml.safe_load(named(built(overlay), "ConfigMap", "retrain-job")["data"]["job.yaml"])
    judge = job["evaluation"]["judge"]
    assert judge["url"] == f"http://vllm:{engine['ports'][0]['containerPort']}/v1"
    assert judge["model"] in names and revision.startswith(judge["model"].rpartition("-")[2])


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
    sleeps_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert reward["spec"]["terminationGracePeriodSeconds"] >= config.drain_grace_s + sleeps_s + 10
    limit = quantity(container["resources"]["limits"]["memory"])
    assert limit >= config.max_held_bytes + GIB / 2
    engine = pods(built("single-node-gpu"))["Deployment/vllm"]["spec"]["containers"][0]
    assert isinstance(config.sampler, OpenAISamplerConfig)
    (url,) = config.sampler.base_urls
    assert url == f"http://vllm:{engine['ports'][0]['containerPort']}/v1"
    assert f"--port={engine['ports'][0]['containerPort']}" in engine["args"]
    assert engine["args"][engine["args"].index("--served-model-name") + 1] == config.sampler.model
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
