"""What the reward is made of: the audit's verdict, and nothing that a learned model scores."""

from pathlib import Path

import pytest

from pipeline.launch.openrlhf_args import openrlhf_arguments
from pipeline.settings.recipe import load_recipe
from pipeline.settings.tree import RECIPES
from reward.config import AuditConfig, RewardFunction
from reward.provenance import config_digest
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from tests.serving import KEY, RESPONSE, SAMPLER, TOKEN, PicnicSampler, Serving


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.yaml")))
def test_row_12_no_recipe_adds_the_score_of_a_learned_reward_model(name: str) -> None:
    recipe = load_recipe(name)
    arguments = openrlhf_arguments(recipe, Path("run"), rows=Path("rows"), num_rows=100_000, cuda=False)
    assert "--train.agent_func_path" in arguments  # the audit's verdict is the reward
    assert not {"--reward.model_name_or_path", "--reward.remote_url"} & set(arguments)


@pytest.mark.parametrize(("function", "reward"), [("ztr", -1.0), ("error_rate", -0.5)])
def test_both_wires_give_the_reward_of_the_servers_own_reward_function(
    function: RewardFunction, reward: float
) -> None:
    audit = AuditConfig(kinds=("number",), prompts="compact", reward_function=function)
    config = ServerConfig(audit=audit, sampler=SAMPLER)
    running = Serving(create_app(config, sampler=PicnicSampler(), token=TOKEN, signing_key=KEY), config)
    try:
        half = f"{RESPONSE} The May picnic raised 120."  # no claim asks about 120
        verdict = running.audit(half).json()["verdict"]
        assert (verdict["outcome"], verdict["reward"]) == ("REFUTED", reward)
        assert verdict["provenance"]["config_digest"] == config_digest(audit)
        assert running.get_reward(half).json()["rewards"] == reward
        refused = running.audit(half, overrides={"reward_function": "ztr"})
        assert refused.status_code == 422  # no request chooses what its answer is worth
    finally:
        running.close()


def test_the_reward_function_is_part_of_the_settings_digest() -> None:
    assert config_digest(
        AuditConfig(kinds=("number",), reward_function=RewardFunction.ERROR_RATE)
    ) != config_digest(AuditConfig(kinds=("number",)))
