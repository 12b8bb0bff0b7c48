"""Options of the command line become typed settings."""

from pathlib import Path

import pytest

from orchestration.settings.evaluate import EvaluationSettings, evaluation_job, judge_settings
from orchestration.settings.sampler import audit_sampler
from orchestration.settings.serve import server_config
from reward.config import LocalSamplerConfig, OpenAISamplerConfig


@pytest.mark.parametrize(
    ("model", "name", "expected"),
    [
        ("http://h:1", "m", OpenAISamplerConfig(base_url="http://h:1/v1", model="m")),
        ("http://h:1/", "m", OpenAISamplerConfig(base_url="http://h:1/v1", model="m")),
        ("https://h/api/v2", "m", OpenAISamplerConfig(base_url="https://h/api/v2", model="m")),
        (
            "http://h:1, https://i/api/v2",
            "m",
            OpenAISamplerConfig(base_urls=("http://h:1/v1", "https://i/api/v2"), model="m"),
        ),
        ("http://h:1?k=v", "m", OpenAISamplerConfig(base_url="http://h:1/v1?k=v", model="m")),
        ("some/model", None, LocalSamplerConfig(model="some/model")),
    ],
)
def test_a_model_is_a_url_or_a_folder(model: str, name: str | None, expected: object) -> None:
    assert audit_sampler(model, name) == expected


def test_options_stand_over_the_servers_file(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("port: 6000\naudit: {voters: 5}\nsampler: {kind: vllm, model: a}\n")
    config = server_config(file, options={"port": None, "host": "127.0.0.2", "prompts": "compact"})
    assert (config.port, config.host, config.audit.voters, config.audit.prompts) == (
        6000,
        "127.0.0.2",
        5,
        "compact",
    )
    assert config.sampler == LocalSamplerConfig(model="a")
    config = server_config(file, openai_url="http://h:1", model="b", options={"port": 7000})
    assert (config.port, config.sampler) == (7000, OpenAISamplerConfig(base_url="http://h:1/v1", model="b"))


@pytest.mark.parametrize("text", ["[]", "", "a: [", "prot: 1"])
def test_a_wrong_server_file_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"--config: .*server\.yaml|prot"):
        server_config(file, model="m")


def test_any_setting_of_an_evaluation_can_be_set(tmp_path: Path) -> None:
    overrides = ("model.timeout_s=60", "judge.api_key_env=JUDGE_KEY", "generation.max_tokens=24")
    given = EvaluationSettings(
        benchmarks={"jsonl": tmp_path}, judge=judge_settings("http://h:2", "j"), seed=3, overrides=overrides
    )
    job = evaluation_job(given, "http://h:1", model_name="m", out=tmp_path)
    assert isinstance(job.model, OpenAISamplerConfig) and job.judge is not None
    assert (job.model.timeout_s, job.judge.timeout_s, job.judge.api_key_env) == (60, 600, "JUDGE_KEY")
    assert (job.generation.max_tokens, job.generation.top_k, job.generation.seed) == (24, 20, 3)
