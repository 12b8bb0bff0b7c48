"""What the reward is made of: the audit's verdict, and nothing that a learned model scores."""

from pathlib import Path

import pytest

from pipeline.config import load_recipe
from pipeline.openrlhf_args import openrlhf_arguments
from pipeline.recipe_tree import RECIPES


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.yaml")))
def test_row_12_no_recipe_adds_the_score_of_a_learned_reward_model(name: str) -> None:
    recipe = load_recipe(name)
    arguments = openrlhf_arguments(
        recipe, rows=Path("rows"), num_rows=100_000, checkpoints=Path("c"), output=Path("m"), cuda=False
    )
    assert "--train.agent_func_path" in arguments  # the audit's verdict is the reward
    assert not {"--reward.model_name_or_path", "--reward.remote_url"} & set(arguments)
