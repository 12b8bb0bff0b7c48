"""A retraining's job and its stages' keys: files count by content, and everything that decides counts."""

from __future__ import annotations

import json
import re
import textwrap
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml

from orchestration.retrain.attempt import Attempt
from orchestration.retrain.evaluation import IncompleteError, demand_whole
from orchestration.retrain.inputs import make_plan
from orchestration.retrain.job import JOBS, BudgetSettings, Job, job_file, load_job
from orchestration.retrain.records import ParentWeights, Spent, Stage, StageRequest, StageResult, stage_key
from orchestration.retrain.rows import counted
from orchestration.retrain.training import _progress, drop_checkpoints
from pipeline.evaluate.results import Counts
from pipeline.record.tracking import drop_steps_after
from pipeline.settings.recipe import load_recipe
from tests.benchmark_files import FOLDERS
from tests.march_cli import march, refused
from tests.rollout_runs import step_log

PARENT = ParentWeights(sha256="a" * 64, uri="tiny")
SHIPPED = [path.stem for path in JOBS.glob("*.yaml") if "\nregistry:" in path.read_text()]


def write_job(folder: Path, **changes: object) -> Path:
    """A job of the tiny recipe in a file of its own, with a benchmark beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "worlds.json").write_text('{"num_worlds": 8, "seed": 1}')
    tree: dict[str, object] = {
        "name": "shop",
        "recipe": {"name": "tiny", "overrides": ["data.max_steps=2"]},
        "evaluation": {"benchmarks": {"tiny": "worlds.json"}},
        "registry": {"model": "shop-solver"},
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(tree | changes))
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_jobs_load_and_name_what_is_there(name: str) -> None:
    job = load_job(name)
    load_recipe(job.recipe.name, list(job.recipe.overrides))
    assert all(path.is_file() for path in (*job.evaluation.benchmarks.values(), job.registry.policy))
    assert make_plan(job).digest


def test_the_job_of_the_docs_names_a_recipe_that_is_there(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "retraining.md").read_text()
    [text] = re.findall(r"^    name: shop\n(?:    .+\n)+", page, re.MULTILINE)
    (tmp_path / "job.yaml").write_text(textwrap.dedent(text))
    job = load_job(str(tmp_path / "job.yaml"))
    assert load_recipe(job.recipe.name, list(job.recipe.overrides)).data.max_steps == 200


def test_what_is_read_lies_beside_the_job_and_what_is_written_does_not(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path, registry={"model": "m", "policy": "rules.yaml"})))
    assert job.evaluation.benchmarks["tiny"] == tmp_path / "worlds.json"
    assert job.registry.policy == tmp_path / "rules.yaml"
    assert job.folder == Path("runs/retrain/shop").absolute()


def test_a_recipe_names_no_path_for_rows_that_the_job_gives(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "manifest.json").write_text("{}")
    (tmp_path / "recipe.yaml").write_text(
        "extends: tiny\nname: shop\ndata: {source: prepared, max_steps: 2}\n"
    )
    given = {"recipe": {"name": "recipe.yaml"}, "data": {"rows": "rows"}}
    plan = make_plan(load_job(str(write_job(tmp_path, **given))))
    assert plan.recipe.data.path == tmp_path / "rows"
    with pytest.raises(ValueError, match="path: missing; give the folder"):
        make_plan(load_job(str(write_job(tmp_path, recipe={"name": "recipe.yaml"}))))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recipes": "tiny"}, "job.yaml: recipes: unknown key; did you mean recipe?"),
        ({"budget": {"hour": 2}}, "job.yaml: budget.hour: unknown key; did you mean hours?"),
        ({"name": "a/b"}, "name: String should match"),
        (
            {"data": {"rows": "r", "prepare": {"inputs": [{"dataset": "jsonl", "path": "x"}]}}},
            "leave one out",
        ),
        ({"evaluation": {"benchmarks": {}}}, "evaluation.benchmarks"),
        ({"budget": {"money": 5}}, "needs price_per_hour"),
        ({"cluster": {"address": "http://user:secret@host:8265"}}, "cluster.address"),
        ({"triggers": {"cron": {"expression": "often"}}}, "triggers.cron"),
    ],
)
def test_a_wrong_job_is_told_by_its_key(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        load_job(str(write_job(tmp_path, **changes)))
    assert "secret" not in str(error.value)


def test_a_job_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(FileNotFoundError, match="there are: smollm2, tiny"):
        load_job("huge")


def test_a_job_is_found_by_its_folder(tmp_path: Path) -> None:
    file = write_job(tmp_path / "shop")
    assert job_file(str(tmp_path / "shop")) == file


def test_the_command_tells_a_wrong_job_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there are: smollm2, tiny" in refused(capsys, "retrain", "nowhere")
    assert "unknown key" in refused(capsys, "retrain", write_job(tmp_path), "--set", "budget.hour=2")
    assert "cluster.address" in refused(capsys, "retrain", write_job(tmp_path), "--cluster", "head:8265")
    assert "no bucket" in refused(capsys, "retrain", write_job(tmp_path), "--set", "store.location=s3://")


def key_of(job: Job, stage: Stage = Stage.EVALUATE) -> str:
    """The key of a stage, when the stages before it made what they always make."""
    facts = {"rows_sha256": "b" * 64, "weights_sha256": "c" * 64, "version": "1", "registered_ms": 5}
    outputs = {"rows": "1", "model": "2", "run": "3", "evaluation": "4", "lineage": "5"}
    done = {one: StageResult(stage=one.result_name, key="k", outputs=outputs, facts=facts) for one in Stage}
    return stage_key(stage, make_plan(job).inputs(stage, PARENT, done))


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.EVALUATE_CHAMPION])
def test_the_same_content_in_another_place_has_the_same_key(tmp_path: Path, stage: Stage) -> None:
    one, other = (load_job(str(write_job(tmp_path / name))) for name in ("one", "other"))
    registry = one.registry.model_copy(update={"uri": "http://127.0.0.1:5000"})
    assert key_of(one.model_copy(update={"registry": registry}), stage) == key_of(
        other.model_copy(update={"registry": registry, "work": tmp_path}), stage
    )


CHANGES: list[tuple[Stage, str]] = [
    (Stage.PREPARE, "recipe.overrides=[data.max_steps=3]"),
    (Stage.PREPARE, "recipe.overrides=[data.max_steps=2,seed=1]"),
    (Stage.TRAIN, "recipe.overrides=[data.max_steps=2,seed=1]"),
    (Stage.TRAIN, "recipe.overrides=[data.max_steps=2,ppo.kl_coef=0.1]"),
    (Stage.EVALUATE, "evaluation.seed=1"),
    (Stage.EVALUATE, "evaluation.generations=4"),
    (Stage.EVALUATE, "evaluation.overrides=[generation.temperature=0.5]"),
    (Stage.EVALUATE, "evaluation.judge={url: 'http://host/v1', model: other}"),
    (Stage.REGISTER, "registry.model=other"),
]


@pytest.mark.parametrize(("stage", "change"), CHANGES, ids=lambda one: str(one))
def test_whatever_decides_an_output_changes_the_key(tmp_path: Path, stage: Stage, change: str) -> None:
    path = str(write_job(tmp_path))
    assert key_of(load_job(path), stage) != key_of(load_job(path, [change]), stage)


@pytest.mark.parametrize(
    "change",
    [
        "evaluation.concurrency=2",
        "evaluation.timeout_s=5",
        "budget.hours=3",
        "retries.attempts=9",
        "lease_s=5",
        "recipe.overrides=[data.max_steps=2,tracking.experiment=other]",
    ],
)
def test_what_decides_nothing_changes_no_key(tmp_path: Path, change: str) -> None:
    path = str(write_job(tmp_path))
    job, changed = load_job(path), load_job(path, [change])
    for stage in (Stage.PREPARE, Stage.TRAIN, Stage.EVALUATE, Stage.PROMOTE):
        assert key_of(job, stage) == key_of(changed, stage)
    assert make_plan(job).digest == make_plan(changed).digest


def test_a_benchmark_that_changed_changes_the_evaluation_alone(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path)))
    before = key_of(job), key_of(job, Stage.TRAIN), make_plan(job).digest
    (tmp_path / "worlds.json").write_text(json.dumps({"num_worlds": 8, "seed": 2}))
    after = key_of(job), key_of(job, Stage.TRAIN), make_plan(job).digest
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True, False]


def test_champion_and_candidate_are_evaluated_under_one_key(tmp_path: Path) -> None:
    plan = make_plan(load_job(str(write_job(tmp_path))))
    weights = ParentWeights(sha256="c" * 64, uri="")
    trained = StageResult(stage="train", key="k", facts={"weights_sha256": "c" * 64})
    inputs = plan.inputs(Stage.EVALUATE, PARENT, {Stage.TRAIN: trained})
    assert inputs == plan.inputs(Stage.EVALUATE_CHAMPION, PARENT, {Stage.TRAIN: trained}, weights)
    assert stage_key(Stage.EVALUATE, inputs) == stage_key(Stage.EVALUATE_CHAMPION, inputs)


def test_rows_that_a_job_prepares_are_counted_as_the_recipe_wants_them(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "query": "How many?", "documents": []}\n')
    prepare: dict[str, object] = {"inputs": [{"dataset": "jsonl", "path": "rows.jsonl"}]}
    job = load_job(str(write_job(tmp_path, data={"prepare": prepare})))
    recipe = load_recipe(job.recipe.name, list(job.recipe.overrides))
    assert job.data.prepare is not None
    left_out = counted(job.data.prepare, recipe)
    assert (left_out.tokenizer, left_out.max_prompt_tokens) == ("tiny", recipe.rollout.max_prompt_tokens)
    same = {"tokenizer": "tiny", "max_prompt_tokens": recipe.rollout.max_prompt_tokens}
    named = load_job(str(write_job(tmp_path, data={"prepare": prepare | same})))
    assert make_plan(named).data == make_plan(job).data
    other = load_job(str(write_job(tmp_path, data={"prepare": prepare | {"max_prompt_tokens": 9}})))
    assert key_of(other, Stage.PREPARE) != key_of(job, Stage.PREPARE)
    assert other.data.prepare is not None and counted(other.data.prepare, recipe).tokenizer == "tiny"


def test_a_missing_file_is_told_by_the_key_that_names_it(tmp_path: Path) -> None:
    path = write_job(tmp_path, data={"rows": "nowhere"})
    with pytest.raises(FileNotFoundError, match=r"data\.rows: .*manifest\.json"):
        make_plan(load_job(str(path)))


RAGTRUTH: dict[str, object] = {"benchmarks": {"ragtruth": str(FOLDERS["ragtruth"])}}


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        (RAGTRUTH, r"evaluation\.judge: missing; a model judges ragtruth"),
        (RAGTRUTH | {"style": "10-shot"}, "10-shot"),
        ({"benchmarks": {"ragtruht": "worlds.json"}}, "ragtruht"),
        ({"benchmarks": {"tiny": "worlds.json"}, "audit": "model"}, "a model judges tiny"),
        ({"benchmarks": {"tiny": "worlds.json"}, "overrides": ["judge_retris=1"]}, "judge_retris"),
    ],
)
def test_what_the_evaluation_would_refuse_is_refused_before_the_training(
    tmp_path: Path, evaluation: dict[str, object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_job(tmp_path, evaluation=evaluation, work=str(tmp_path / "work"))
    with pytest.raises(ValueError, match=said):
        make_plan(load_job(str(path)))
    store = f"store.location={tmp_path / 'store'}"
    told = refused(capsys, "retrain", path, "--dry-run", "--set", store)
    assert re.search(said, " ".join(told.split()))


def test_a_benchmark_with_its_judge_is_planned(tmp_path: Path) -> None:
    judge = {"url": "http://judge:8000/v1", "model": "JUDGE"}
    job = load_job(str(write_job(tmp_path, evaluation=RAGTRUTH | {"judge": judge})))
    assert make_plan(job).digest


@pytest.mark.parametrize(
    ("budget", "spent", "said"),
    [
        (BudgetSettings(), Spent(hours=1e6, tokens=10**12), None),
        (BudgetSettings(hours=2), Spent(hours=1.99), None),
        (BudgetSettings(hours=2), Spent(hours=2), "2.00 of 2.00 hours"),
        (BudgetSettings(tokens=100), Spent(tokens=100), "100 of 100 tokens"),
        (BudgetSettings(money=5, price_per_hour=2), Spent(hours=2.4), None),
        (BudgetSettings(money=5, price_per_hour=2), Spent(hours=2.5), "5.00 of 5.00"),
        (BudgetSettings(money=1, price_per_million_tokens=10), Spent(tokens=100_000), "1.00 of 1.00"),
    ],
)
def test_a_budget_ends_where_it_says(budget: BudgetSettings, spent: Spent, said: str | None) -> None:
    line = spent.over(budget)
    assert line is None if said is None else line is not None and said in line


@pytest.mark.parametrize(
    ("num_missing", "num_asked", "attempt", "command_attempt", "asks_again"),
    [
        (3, 60, 1, 1, True),
        (3, 60, 9, 1, True),
        (3, 60, 9, 3, True),
        (3, 60, 9, 4, False),
        (3, 60, 4, 4, False),
        (3, 50, 4, 4, True),
        (3, 3, 9, 4, True),
        (0, 60, 1, 1, False),
    ],
)
def test_missing_answers_are_asked_for_again_and_more_than_the_gates_allow_is_no_refusal(
    num_missing: int, num_asked: int, attempt: int, command_attempt: int, asks_again: bool, tmp_path: Path
) -> None:
    """Answers are counted among the answers, of which an item has several."""
    counts = Counts(num_items=10, num_generations=num_asked - num_missing, num_failed=num_missing)
    request = StageRequest(
        job=load_job(str(write_job(tmp_path))),
        stage=Stage.EVALUATE,
        key="k" * 64,
        inputs={},
        max_missing=0.05,
        attempt=attempt,
        command_attempt=command_attempt,
    )
    with pytest.raises(IncompleteError, match="3 answers") if asks_again else nullcontext():
        demand_whole(request, [counts])


@pytest.mark.parametrize(
    ("more", "overrides", "is_kept"),
    [({}, [], False), ({"keep_checkpoints": True}, [], True), ({}, ["checkpoint.models=true"], True)],
)
def test_a_finished_training_leaves_checkpoints_where_they_are_wanted(
    more: dict[str, bool], overrides: list[str], is_kept: bool, tmp_path: Path
) -> None:
    job = load_job(str(write_job(tmp_path, recipe={"name": "tiny", "overrides": overrides}, **more)))
    request = StageRequest(
        job=job.model_copy(update={"work": tmp_path / "work"}),
        stage=Stage.TRAIN,
        key="k" * 64,
        inputs={},
        attempt=1,
        command_attempt=1,
    )
    (tmp_path / "run" / "checkpoints" / "actor").mkdir(parents=True)
    drop_checkpoints(Attempt(request), tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints").exists() is is_kept


def test_steps_that_are_done_again_are_paid_for_again(tmp_path: Path) -> None:
    told, is_told = list[int](), threading.Event()

    def tell(**progress: int) -> None:
        told.append(progress["tokens"])
        is_told.set()

    def write_steps(first: int, last: int) -> None:
        log = step_log(tmp_path)
        for step in range(first, last + 1):
            log.append(step, {"rollout/num_tokens": 1000})

    write_steps(1, 30)
    recipe = SimpleNamespace(data=SimpleNamespace(max_steps=100))
    with _progress(cast(Attempt, SimpleNamespace(recipe=recipe, tell=tell)), tmp_path):
        drop_steps_after(tmp_path, 10)  # as a run that goes on from its last checkpoint does
        for _ in range(2):  # the first may have been read before
            is_told.clear()
            assert is_told.wait(30)
        write_steps(11, 25)
    assert told[-1] == 15_000


def test_money_is_time_and_tokens() -> None:
    budget = BudgetSettings(money=100, price_per_hour=4, price_per_million_tokens=0.5)
    assert Spent(hours=1.5, tokens=2_000_000).money(budget) == pytest.approx(7.0)


def test_a_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It made the registry's SQLite file."""
    path = write_job(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "MARCH_ARTIFACTS"):
        monkeypatch.delenv(name, raising=False)
    before = sorted(tmp_path.rglob("*"))
    assert march("retrain", path, "--dry-run") == 0
    assert sorted(tmp_path.rglob("*")) == before
