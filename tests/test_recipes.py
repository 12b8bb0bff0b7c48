"""Recipes load, and what OpenRLHF would silently break is refused with the field's name."""

import math
import re
from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.rows import num_steps
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.settings.tree import RECIPES
from tests.openrlhf_parser import arguments_of, checked_by_openrlhf, parse_with_openrlhf

ALL_RECIPES = sorted(path.stem for path in RECIPES.glob("*.yaml"))
FOR_GPUS = sorted(name for name in ALL_RECIPES if "8b" in name)


@pytest.mark.parametrize("name", ALL_RECIPES)
def test_shipped_recipes_parse_with_openrlhfs_own_parser(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe(name)
    parsed = parse_with_openrlhf(arguments_of(recipe), monkeypatch)
    assert parsed.rollout.batch_size == recipe.rollout.batch_size
    assert parsed.train.batch_size == 2 * recipe.rollout.batch_size * recipe.rollout.samples_per_query
    assert parsed.algo.kl.init_coef == (0 if recipe.cluster.lora else recipe.ppo.kl_coef)
    assert parsed.train.dynamic_batch_enable is False  # it would never train injected rows
    assert parsed.vllm.sync_backend == "gloo"


@pytest.mark.parametrize("name", FOR_GPUS)
def test_openrlhf_changes_nothing_of_a_gpu_recipe_in_silence(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = load_recipe(name)
    parsed = checked_by_openrlhf(arguments_of(recipe, cuda=True), monkeypatch)
    assert "Warning" not in capsys.readouterr().out
    cluster = recipe.cluster
    assert (parsed.ds.packing_samples, parsed.ds.ring_attn_size) == (cluster.packing, cluster.ring_attention)
    assert parsed.ds.attn_implementation == cluster.attention
    assert (parsed.vllm.enable_sleep, parsed.ds.enable_sleep) == (cluster.engine_sleep, cluster.trainer_sleep)
    assert parsed.vllm.sync_backend == "nccl"
    for group, ranks in ((parsed.actor, cluster.actor_ranks), (parsed.critic, cluster.critic_ranks)):
        assert group.num_nodes * group.num_gpus_per_node == ranks
        assert (group.num_nodes == 1) == (ranks <= cluster.gpus_per_node)
    assert parsed.train.async_enable is False


@pytest.mark.parametrize("name", FOR_GPUS)
def test_gpu_recipes_keep_the_papers_values(name: str) -> None:
    recipe = load_recipe(name)
    ppo, rollout = recipe.ppo, recipe.rollout
    assert (rollout.batch_size, rollout.temperature, recipe.audit.voters) == (32, 0.6, 3)
    turns = {rollout.max_response_tokens, recipe.audit.proposer.max_tokens, recipe.audit.checker.max_tokens}
    assert len(turns) == 1  # one policy speaks in all three roles, and the paper names one length
    assert (ppo.gamma, ppo.kl_coef, ppo.epochs, recipe.checkpoint.every) == (0.998, 1e-3, 1, 20)
    assert (ppo.actor.warmup_steps, ppo.critic.warmup_steps) == (5, 10)
    if "lora" not in name:
        assert (rollout.max_prompt_tokens, rollout.max_response_tokens) == (24_567, 8_192)
        assert (ppo.actor.lr, ppo.critic.lr) == (1e-6, 1e-5)
    assert "not run on a GPU" in recipe.note


def test_recipes_that_read_the_same_rows_allow_the_same_prompts_and_say_how_to_prepare_them() -> None:
    counted: dict[str, set[tuple[str, int]]] = {}
    for name in FOR_GPUS:
        recipe = load_recipe(name)
        readers = counted.setdefault(str(recipe.data.path), set())
        readers.add((recipe.model, recipe.rollout.max_prompt_tokens))
    assert all(len(found) == 1 for found in counted.values()), counted
    shown = set()
    for path in RECIPES.glob("*.yaml"):
        for line in path.read_text().splitlines():
            if line.startswith("#   march prepare "):
                recipe = load_recipe(path.stem)
                assert f"--out {recipe.data.path} " in line
                wanted = f"--tokenizer {recipe.model} --max-prompt-tokens {recipe.rollout.max_prompt_tokens}"
                assert line.endswith(wanted)
                shown.add(str(recipe.data.path))
    assert counted.keys() <= shown


def test_the_docs_prepare_the_rows_of_a_recipe_as_it_wants_them() -> None:
    page = (Path(__file__).parents[1] / "docs" / "data.md").read_text().replace("\\\n", " ")
    by_path = {str(recipe.data.path): recipe for recipe in map(load_recipe, FOR_GPUS)}
    found = re.findall(r"^ +march prepare (.+) --out (\S+) +# (\w+)$", page, re.MULTILINE)
    assert len(found) == 2
    for options, out, name in found:
        recipe = load_recipe(name)
        assert str(recipe.data.path) == out and by_path[out].model == recipe.model
        assert f"--tokenizer {recipe.model} --max-prompt-tokens {recipe.rollout.max_prompt_tokens}" in options


@pytest.mark.parametrize("warmup", [0, 1, 5, 7])
@pytest.mark.parametrize("steps", [40, 49, 1000])
def test_warm_up_takes_exactly_its_steps(warmup: int, steps: int) -> None:
    recipe = load_recipe("tiny", [f"data.max_steps={steps}", f"ppo.actor.warmup_steps={warmup}"])
    arguments = arguments_of(recipe)
    ratio = float(arguments[arguments.index("--actor.lr_warmup_ratio") + 1])
    assert math.ceil(steps * ratio) == warmup


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("ppo.learning_rate=1", "--set ppo.learning_rate: unknown key"),
        ("ppo={learning_rate: 1}", "--set ppo.learning_rate: unknown key"),
        ("train_roles=solver", "--set train_roles: 'solver' is no list; write [solver]"),
        ("rollout.temperature=0.001", "rollout.temperature: Input should be greater than or equal to 0.01"),
        ("audit.voters=4", "voters: 4 is even"),
        ("audit.checker.temperature=0.3", "audit.checker"),
        ("audit.checker.top_k=20", "audit.checker.top_k: 20, but the checker is trained"),
        ("rollout.micro_batch_size=48", "rollout.micro_batch_size: 48 does not divide"),
        ("ppo.micro_batch_size=3", "ppo.micro_batch_size: 3 does not divide"),
        ("rollout.batch_size=16", "--set: rollout.micro_batch_size: 32 and ppo.micro_batch_size: 32 do not"),
        ("rollout.batch_size=16", "do not divide 16 answers a step (rollout.batch_size: 16 x samples_per_qu"),
        ("rollout.batch_size=16", "ppo.micro_batch_size together, such as both micro batches to 16"),
        ("rollout.batch_size=true", "--set: rollout: batch_size: true is no number; write one"),
        ("seed=false", "seed: false is no number; write one"),
        ("data.max_steps=true", "--set: data: max_steps: true is no number; write one"),
        ("rollout=16", "--set rollout: is no object, keys with values (got 16)"),
        ("rollout={batchsize: 16}", "--set rollout.batchsize: unknown key; did you mean batch_size?"),
        (
            "reward.sampler={kind: openai, modl: x}",
            "reward.sampler.openai.modl: unknown key; did you mean model?",
        ),
        ("ppo.max_steps=8", "--set ppo.max_steps: unknown key; did you mean data.max_steps?"),
        ("lr=1", "--set lr: unknown key; did you mean ppo.actor.lr or ppo.critic.lr or warmup.lr?"),
        ("canary.answer=8", "--set canary.answer: unknown key; did you mean answers?"),
        ("ppo={kl_coef: 1, kl_coef: 2}", "kl_coef: given twice, in line 1; keep one"),
        ("seed=2024-13-45", "--set 'seed=2024-13-45': month must be in 1..12"),
        ("data.path=rows", "data.path: rows needs data.source=prepared, and data.source is tiny"),
        ("train_roles=[proposer]", "train_roles"),
        ("train_roles=[solver, solver]", "train_roles"),
        ("audit.structured=all", "audit.structured: all constrains the checker"),
        ("ppo.estimator=rloo", "rollout.samples_per_query: 1"),
        ("ppo.reward_scalars=1/0", "ppo.reward_scalars"),
        ("audit.reward_supported=1", "audit.reward_supported"),
        ("ppo.truncated_reward=0", "ppo.truncated_reward"),
        ("ppo.truncated_reward=-0.1", "exceeds audit.reward_refuted: -1.0"),
        ("checkpoint.keep=1", "checkpoint.keep"),
        ("ppo.estimator=group_norm", "ppo.estimator"),
        ("reward.sampler={kind: vllm, model: x}", "set train_roles: [solver]"),
        ("data.world={unrelated: [3, 1]}", "data.world: unrelated: [3, 1] is no range"),
        ("audit.reward_no_claims=0.5", "reward_no_claims"),
        ("data={source: prepared}", "path: missing"),
        ("model.x=1", "'model' is a value"),
        ("seed=[1", "--set 'seed=[1': not YAML"),
        ("tracking.uri=https://ann:pw@host", "tracking.uri: https://host was given with a user or password"),
        ("seed='http://ann:pw@host'", "(got 'http://host')"),
        ("nonsense", "write it as dotted.key=value"),
    ],
)
def test_a_bad_setting_is_one_clear_line(override: str, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_recipe("tiny", [override])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value) and ":pw@" not in str(caught.value)


def test_a_wrong_item_of_a_list_is_the_only_error() -> None:
    with pytest.raises(ValueError, match=r"^--set audit\.kinds\.0: [^;]* \(got 'numbers'\)$"):
        load_recipe("tiny", ["audit.kinds=[numbers]"])


def test_rows_are_given_together_with_their_source() -> None:
    recipe = load_recipe("tiny", ["data.source=prepared", "data.path=rows"])
    assert not recipe.data.is_made and str(recipe.data.path) == "rows"
    with pytest.raises(ValueError, match=r"data\.source is tiny, which makes its rows; .* data\.path=null"):
        load_recipe("llama31_8b_stem", ["data.source=tiny", "data.max_steps=2"])


@pytest.mark.parametrize("page", ["README.md", "docs/training.md", "docs/warmup.md"])
def test_the_docs_give_rows_as_any_recipe_takes_them(page: str) -> None:
    text = (Path(__file__).parents[1] / page).read_text()
    assert text.count("--set data.source=prepared --set data.path=") == text.count("--set data.path=") == 1


def test_the_docs_smaller_step_is_a_recipe(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text()
    found = re.search(r"^    name: mine\n(    .*\n)+", text, re.MULTILINE)
    assert found
    (tmp_path / "mine.yaml").write_text(dedent(found[0]))
    recipe = load_recipe(str(tmp_path / "mine.yaml"))
    assert (recipe.name, recipe.answers_per_step, recipe.ppo.micro_batch_size) == ("mine", 16, 16)


def test_a_file_is_named_for_what_it_says_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: tiny\nrollout: {batch_size: 16}\n")
    with pytest.raises(ValueError, match=r"^mine\.yaml: rollout\.micro_batch_size: 32 and ppo"):
        load_recipe(str(tmp_path / "mine.yaml"), ["seed=1"])


def test_votes_are_no_credit_where_no_checker_is_trained() -> None:
    with pytest.raises(ValueError, match=r"ppo\.checker_credit: vote pays the Checker's turns"):
        load_recipe("tiny", ["ppo.checker_credit=vote", "train_roles=[solver]"])


def test_a_key_of_the_file_is_told_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: tiny\nppo: {kl_coeff: 0.1}\n")
    with pytest.raises(ValueError, match=r"^mine\.yaml: ppo\.kl_coeff: unknown key"):
        load_recipe(str(tmp_path / "mine.yaml"), ["ppo.kl_coef=0.1"])


def test_adapters_alone_are_no_model_to_evaluate() -> None:
    with pytest.raises(ValueError, match=r"checkpoint\.models: .* leave it out with cluster\.lora"):
        load_recipe("tiny", ["checkpoint.models=true", "cluster.lora={rank: 8}"])


def test_a_warm_up_that_the_schedule_ignores_is_refused() -> None:
    constant = "ppo.lr_scheduler=constant"
    assert load_recipe("tiny", [constant]).ppo.lr_scheduler == "constant"  # its rates have no warm-up
    with pytest.raises(ValueError, match=r"ppo: actor\.warmup_steps: 5 with lr_scheduler constant, which"):
        load_recipe("llama31_8b_stem", [constant])
    with pytest.raises(ValueError, match=r"ppo: critic\.warmup_steps: 10 with lr_scheduler constant"):
        load_recipe("llama31_8b_stem", [constant, "ppo.actor.warmup_steps=0"])
    assert load_recipe("tiny", [constant, "preset=march", "ppo.critic.warmup_steps=3"])


def test_trap_transformers_constant_schedule_takes_no_warm_up_and_says_nothing() -> None:
    import torch
    from transformers import get_scheduler

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = get_scheduler("constant", optimizer, num_warmup_steps=5, num_training_steps=10)
    assert schedule.get_last_lr() == [1.0]


def test_an_unknown_recipe_names_those_that_exist() -> None:
    with pytest.raises(FileNotFoundError, match="tiny"):
        load_recipe("no-such-recipe")


def test_too_few_rows_are_refused_before_anything_starts() -> None:
    with pytest.raises(ValueError, match="fewer than the 40 steps"):
        num_steps(load_recipe("tiny"), num_rows=64 * 39)


@pytest.mark.parametrize("roles", ["[solver]", "[solver, checker]", "[solver, checker, proposer]"])
def test_a_step_is_one_optimizer_step_over_a_row_of_each_trained_role(
    roles: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load_recipe("tiny", [f"train_roles={roles}"])
    parsed = parse_with_openrlhf(arguments_of(recipe), monkeypatch)
    assert parsed.train.batch_size == recipe.rows_per_step == 64 * len(recipe.train_roles)


def test_a_group_estimator_is_passed_on_by_openrlhfs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = ["ppo.estimator=rloo", "rollout.samples_per_query=4"]
    parsed = parse_with_openrlhf(arguments_of(load_recipe("tiny", grouped)), monkeypatch)
    assert (parsed.algo.advantage.estimator, parsed.rollout.n_samples_per_prompt) == ("rloo", 4)
    assert parsed.train.batch_size == 64 * 4 * 2
    with pytest.raises(ValueError, match=r"ppo: gamma: 0.9 with estimator"):
        load_recipe("tiny", [*grouped, "ppo.gamma=0.9"])


def test_a_trained_proposer_is_sampled_as_the_actor_scores_it() -> None:
    three = "train_roles=[solver, checker, proposer]"
    with pytest.raises(ValueError, match=r"audit.proposer: temperature and top_p must equal"):
        load_recipe("tiny", [three, "audit.proposer.temperature=0.5"])
    with pytest.raises(ValueError, match=r"audit.proposer.top_k: 5, but the proposer is trained"):
        load_recipe("tiny", [three, "audit.proposer.top_k=5"])
    assert load_recipe("tiny", ["audit.proposer.top_k=5"]).audit.proposer.top_k == 5
    with pytest.raises(ValueError, match=r"audit.structured: proposer constrains the proposer"):
        load_recipe("tiny", [three, "audit.structured=proposer"])
    assert load_recipe("tiny", ["audit.structured=proposer"]).audit.structured == "proposer"


@pytest.mark.parametrize(
    "overrides",
    [[], ["ppo.kl_coef=0"], ["guards.max_unscored_rate=0.1"], ["canary.answers=4", "guards.kl.patience=2"]],
)
def test_a_recipe_that_was_written_out_is_read_again(overrides: list[str]) -> None:
    recipe = load_recipe("tiny", overrides)
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe
