"""The demo's result: curves, page, summary and sentence, and its run folder; training and vLLM are played."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from rich.console import Console

from pipeline.demo import run as demo
from pipeline.demo.evaluate import setup_for
from pipeline.demo.evaluation import MEASURES, Evaluation, Example, JudgedAnswer, rate, summarise
from pipeline.demo.figures import PANELS, draw_curves
from pipeline.demo.report import Piece, describe, find, mark_values, render_page
from pipeline.demo.summary import Summary
from pipeline.record.mlflow_sender import kept_status
from pipeline.record.run import RunState, TrainingFailedError
from pipeline.record.tracking import start_mlflow_run
from pipeline.settings.recipe import load_recipe
from pipeline.tiny.truth import judge
from reward.types import Claim, ClaimState, ClaimVerdict, Document, Outcome, RagQuery, Span, Verdict

NUM_ROWS = 40
CONTRACT = {
    "seed", "steps", "oracle_faithfulness_before", "oracle_faithfulness_after", "false_accept_before",
    "false_accept_after", "checker_accuracy_before", "checker_accuracy_after", "reward_before",
    "reward_after", "num_checker_trajectories", "wall_s", "mlflow_run_id", "model", "preset", "rows_held_out",
    "intervals", "solver_right_before", "solver_right_after", "checker_right_before", "checker_right_after",
    "proposer_covers_before", "proposer_covers_after", "unscored_before", "unscored_after",
    "claims_per_answer_before", "claims_per_answer_after",
}  # fmt: skip


def step_rows(num_steps: int) -> list[dict[str, float]]:
    """Rows as `steps.jsonl` holds them, with every metric of the panels."""
    rng = random.Random(0)
    keys = [key for panel in PANELS for key in panel.lines.values()]
    rows = [{"step": float(i)} | {key: rng.random() for key in keys} for i in range(1, num_steps + 1)]
    return [row | {"checker/num_trained": 60.0} for row in rows]


def judged(index: int, *, faithful: bool, accepted: bool, num_faithful: int | None = None) -> JudgedAnswer:
    return JudgedAnswer(
        query_id=f"w{index}", outcome=Outcome.SUPPORTED if accepted else Outcome.REFUTED,
        reward=0.0 if accepted else -1.0, right=faithful, faithful=faithful,
        num_faithful=int(faithful) if num_faithful is None else num_faithful,
        false_accept=accepted and not faithful, false_reject=faithful and not accepted, coverage=1.0,
        truncated=False, num_mentions=2, num_claims=2, num_questions=2, num_votes=6, num_votes_right=5,
        num_consensus_right=2, covered=True,
    )  # fmt: skip


def example(response: str, *, outcome: Outcome = Outcome.SUPPORTED, faithful: bool = True) -> Example:
    """An answer about one fact, "The July picnic in Kabul raised 466 euros."."""
    query = RagQuery(
        id="q",
        query="a) The July picnic in Kabul raised how many euros?",
        documents=(Document(id="d1", text="The July picnic in Kabul raised 466 euros."),),
    )
    reward = {Outcome.SUPPORTED: 0.0, Outcome.UNSCORED: None}.get(outcome, -1.0)
    start = response.find("raised ") + len("raised ")
    claim = Claim(index=1, question="?", answer="1", span=Span(start=start, end=start + 3))
    state = ClaimState.SUPPORTED if outcome is Outcome.SUPPORTED else ClaimState.CONTRADICTED
    claims = () if outcome is Outcome.UNSCORED else (ClaimVerdict(claim=claim, state=state),)
    verdict = Verdict(id="q", outcome=outcome, reward=reward, claims=claims)
    values = judge(query, response).values
    return Example(query=query, response=response, verdict=verdict, faithful=faithful, values=values)


def evaluation(
    *,
    faithful: float,
    false_accept: float = 0.0,
    model: str = "start",
    examples: Sequence[Example] = (),
    num_rows: int = NUM_ROWS,
) -> Evaluation:
    """`num_rows` answers of which the given shares are faithful (and accepted), or accepted but wrong."""
    good, missed = round(faithful * num_rows), round(false_accept * num_rows)
    answers = [judged(i, faithful=i < good, accepted=i < good + missed) for i in range(num_rows)]
    setup = setup_for(load_recipe("tiny"), model, num_rows=num_rows)
    shown = examples or [example("a) The July picnic in Kabul raised 466 euros.")]
    return summarise(answers, shown, setup=setup, prompt_digest="digest")


def a_summary(**changes: Any) -> Summary:
    names = tuple(MEASURES)
    figures = {f"{name}_{when}": 0.5 for name in names for when in ("before", "after")}
    known = {
        "seed": 0, "steps": 4, "num_checker_trajectories": 1234, "wall_s": 61.0, "mlflow_run_id": "id",
        "rows_held_out": NUM_ROWS, "model": "start", "goal_met": True, "finding": "Goal met.",
        "note": "Errors were injected.", "phases_s": {}, "intervals": {},
    }  # fmt: skip
    return Summary.model_validate(figures | known | changes)


@pytest.mark.parametrize("num_steps", [1, 40])
def test_curves_are_a_png_even_where_metrics_are_missing(tmp_path: Path, num_steps: int) -> None:
    rows = step_rows(num_steps)
    for row in rows[::2]:
        del row["oracle/consensus_accuracy"], row["checker/kl"]
    estimate = rate([True, False])
    draw_curves(rows, tmp_path / "curves.png", ends={"oracle/faithful_rate": (estimate, estimate)})
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_no_steps_no_curves(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="train first"):
        draw_curves([], tmp_path / "curves.png", ends={})


@pytest.mark.parametrize(
    ("before", "after", "goal_met", "said"),
    [
        (
            (0.6, 0.05),
            (0.9, 0.05),
            True,
            "Goal met. On 40 held-out rows faithful answers rose from 60.0% to 90.0%",
        ),
        ((0.6, 0.05), (0.7, 0.0), False, "short of the 15 points"),
        ((0.6, 0.0), (0.4, 0.0), False, "fell from 60.0% to 40.0%: -20.0 points"),
        ((0.6, 0.0), (0.6, 0.0), False, "stayed"),
        ((0.6, 0.0), (0.9, 0.05), False, "False accepts rose from 0.0% to 5.0%"),
        ((0.6, 0.0), (0.9, 0.025), False, "chance alone could do it"),
        ((0.2, 0.0), (0.4, 0.5), False, "the reward does not show them"),
    ],
)
def test_the_finding_is_honest(
    before: tuple[float, float], after: tuple[float, float], goal_met: bool, said: str
) -> None:
    old, new = (evaluation(faithful=f, false_accept=a) for f, a in (before, after))
    finding = find(old, new)
    assert finding.goal_met is goal_met
    assert said in finding.sentence
    assert finding.sentence.startswith("Goal met." if goal_met else "Goal not met.")


@pytest.mark.parametrize(
    ("false_accepts", "goal_met", "said"),
    [
        (1, True, "within the 1 point that the goal allows; so few that chance alone could do it"),
        (3, False, "not surely within the 1 point"),
    ],
)
def test_a_false_accept_in_four_hundred_is_said_and_does_not_miss_the_goal(
    false_accepts: int, goal_met: bool, said: str
) -> None:
    before = evaluation(faithful=0.6, num_rows=400)
    after = evaluation(faithful=0.9, false_accept=false_accepts / 400, num_rows=400)
    finding = find(before, after)
    assert finding.goal_met is goal_met
    assert "False accepts rose from 0.0%" in finding.sentence and said in finding.sentence


def test_other_worlds_are_not_compared() -> None:
    old = evaluation(faithful=0.5)
    other = old.model_copy(update={"setup": old.setup.model_copy(update={"seed": 1})})
    with pytest.raises(ValueError, match="different rows"):
        find(old, other)


@pytest.mark.parametrize(
    ("shown", "piece"),
    [
        (example("The July picnic in Kabul raised 466 euros."), ("supported", True, "466")),
        (example("The July picnic in Kabul raised 120 euros."), ("supported", False, "466")),
        (
            example("The July picnic in Kabul raised 120 euros.", outcome=Outcome.REFUTED),
            ("refused", False, "466"),
        ),
        (example("The May picnic in Kabul raised 466 euros."), ("supported", False, None)),
        (
            example("The July picnic in Kabul raised 466 euros.", outcome=Outcome.UNSCORED),
            ("unchecked", True, "466"),
        ),
        (example("raised 466"), ("supported", False, None)),
    ],
)
def test_numbers_are_marked_with_the_check_and_the_truth(
    shown: Example, piece: tuple[str, bool, str | None]
) -> None:
    pieces = mark_values(shown)
    assert "".join(part.text for part in pieces) == shown.response
    (number,) = [part for part in pieces if part.check]
    assert (number.check, number.is_true, number.truth) == piece


def test_an_answer_without_numbers_is_one_piece() -> None:
    assert [part for part in mark_values(example("Nobody knows.")) if part.text] == [Piece("Nobody knows.")]


@pytest.mark.parametrize(
    ("outcome", "faithful", "words"),
    [
        (Outcome.SUPPORTED, True, "accepted, and true"),
        (Outcome.SUPPORTED, False, "accepted, but wrong"),
        (Outcome.REFUTED, True, "refused, but true"),
        (Outcome.NO_CLAIMS, False, "refused, and wrong"),
        (Outcome.UNSCORED, True, "no score"),
    ],
)
def test_answers_are_described(outcome: Outcome, faithful: bool, words: str) -> None:
    assert describe(example("raised 466", outcome=outcome, faithful=faithful))[1] == words


def test_the_page_escapes_what_models_write_and_loads_nothing(tmp_path: Path) -> None:
    draw_curves(step_rows(3), tmp_path / "curves.png", ends={})
    hostile = [example('<script>alert("x")</script> raised 120 {{ x }}', faithful=False)]
    before, after = evaluation(faithful=0.5, examples=hostile), evaluation(faithful=0.9, examples=hostile)
    summary = a_summary(note="<b>Errors</b> were injected.", goal_met=False)
    page = render_page(before, after, summary=summary, curves=tmp_path / "curves.png", commands=["a && b"])
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "&lt;b&gt;Errors&lt;/b&gt; were injected." in page and "a &amp;&amp; b" in page
    assert "{{ x }}" in page, "what a model writes is no template"
    assert "://" not in page and "data:image/png;base64," in page
    assert "finding missed" in page and "accepted, but wrong" in page and "1,234 Checker trajectories" in page


class Stage:
    """Plays the two heavy parts of the demo, with a real run folder and a real MLflow store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.measured: list[str] = []
        self.num_trainings = 0
        self.training_fails = self.measuring_fails = False
        monkeypatch.setattr(demo, "train", self.train)
        monkeypatch.setattr("pipeline.demo.measure._run", self.run)

    def train(self, recipe: str, *, run_dir: Path, overrides: list[str], part_of: str) -> int:
        self.num_trainings += 1
        settings, folder = load_recipe(recipe, overrides), run_dir.resolve()
        if not (folder / "run.json").exists():
            uri = f"sqlite:///{folder.parent / 'mlflow.db'}"
            run_id = start_mlflow_run(
                tracking_uri=uri,
                artifact_root=folder.parent / "artifacts",
                experiment="e",
                name="n",
                params={},
            )
            state = RunState(
                recipe=settings, recipe_digest=settings.digest, rows=folder / "rows", num_rows=1,
                tracking_uri=uri, mlflow_run_id=run_id,
            )  # fmt: skip
            (folder / "run.json").write_text(state.model_dump_json())
        state = RunState.model_validate_json((folder / "run.json").read_text())
        with kept_status(folder):
            if self.training_fails:
                raise TrainingFailedError("the worker died")
            rows = step_rows(settings.data.max_steps or 0)
            (folder / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            (folder / "result.json").write_text("{}")
        return 0

    def run(self, console: Console, command: list[str], *more: Any) -> int:
        if self.measuring_fails:
            return 1
        model, out = command[3], Path(command[4])
        self.measured.append(out.name)
        trained = out.name == demo.AFTER_FILE
        measured = evaluation(faithful=0.9 if trained else 0.6, false_accept=0.05)
        asked = {"num_rows": int(command[8]), "seed": int(command[10])}
        setup = setup_for(load_recipe("tiny"), model, **asked)
        out.write_text(measured.model_copy(update={"setup": setup}).model_dump_json())
        return 0


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "config.json").write_text("{}")
    monkeypatch.setattr("pipeline.settings.recipe.TINY_POLICY", tmp_path / "start")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    return Stage(monkeypatch)


def mlflow_run(run_dir: Path) -> Any:
    state = RunState.model_validate_json((run_dir / "run.json").read_text())
    return MlflowClient(state.tracking_uri).get_run(state.mlflow_run_id)


def test_a_whole_demo_leaves_its_summary_page_and_mlflow_run(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = Path("runs/demo")
    assert demo.run_demo(run_dir=run_dir, seed=3, steps=4) == 0
    summary = json.loads((run_dir / "summary.json").read_text())
    assert not CONTRACT - summary.keys()
    assert (summary["seed"], summary["steps"], summary["num_checker_trajectories"]) == (3, 4, 240)
    assert (summary["oracle_faithfulness_before"], summary["oracle_faithfulness_after"]) == (0.6, 0.9)
    assert summary["goal_met"] is True and summary["wall_s"] > 0
    run = mlflow_run(run_dir)
    assert run.info.status == "FINISHED" and run.info.run_id == summary["mlflow_run_id"]
    assert run.data.metrics["held_out/oracle_faithfulness"] == 0.9
    client = MlflowClient(f"sqlite:///{Path('runs/mlflow.db').resolve()}")
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {
        "summary.json", "demo.html", "curves.png",
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "Goal met." in printed and "errors injected" in " ".join(printed.split())
    assert "ui --backend-store-uri sqlite:///runs/mlflow.db" in printed


def test_a_finished_demo_is_shown_and_not_run_again(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = Path("runs/demo")
    demo.run_demo(run_dir=run_dir, seed=0, steps=4)
    demo.run_demo(run_dir=run_dir, seed=0, steps=4)
    assert stage.num_trainings == 1 and stage.measured == [demo.BEFORE_FILE, demo.AFTER_FILE]
    assert "finished before" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ValueError, match="finished demo of seed 0 and 4 steps"):
        demo.run_demo(run_dir=run_dir, seed=1, steps=4)


def test_a_demo_of_other_settings_is_another_demo(stage: Stage) -> None:
    run_dir = Path("runs/demo")
    own = ["ppo.kl_coef=0.1"]
    demo.run_demo(run_dir=run_dir, seed=0, steps=4, overrides=own, num_rows=300)
    summary = json.loads((run_dir / "summary.json").read_text())
    again = "march demo --seed 0 --steps 4 --rows 300 --set ppo.kl_coef=0.1 --run-dir runs/tiny-again"
    assert (summary["command"], summary["overrides"]) == (again, own)
    demo.run_demo(run_dir=run_dir, seed=0, steps=4, overrides=own, num_rows=300)
    with pytest.raises(ValueError, match=r"with ppo\.kl_coef=0\.1, measured on 300 rows"):
        demo.run_demo(run_dir=run_dir, seed=0, steps=4, num_rows=300)
    with pytest.raises(ValueError, match="--set seed=3: give it by --seed"):
        demo.run_demo(run_dir=Path("runs/other"), overrides=["seed=3"])


def test_an_interrupted_demo_is_no_other_demo(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir, stage.measuring_fails = Path("runs/demo"), True
    with pytest.raises(TrainingFailedError):
        demo.run_demo(run_dir=run_dir, seed=0, steps=4)
    assert "all in runs/demo, where the same command goes on" in capsys.readouterr().out
    for other in ({"seed": 1}, {"steps": 5}, {"overrides": ["ppo.kl_coef=0.1"]}, {"recipe": "tiny_kinds"}):
        with pytest.raises(ValueError, match=r"runs/demo holds an unfinished demo of \['tiny', 0, 4, 400\]"):
            demo.run_demo(**{"run_dir": run_dir, "seed": 0, "steps": 4, **other})  # type: ignore[arg-type]
    stage.measuring_fails = False
    assert demo.run_demo(run_dir=run_dir, seed=0, steps=4) == 0


def test_an_interrupted_demo_resumes_without_measuring_again(stage: Stage) -> None:
    run_dir = Path("runs/demo")
    stage.training_fails = True
    with pytest.raises(TrainingFailedError):
        demo.run_demo(run_dir=run_dir, seed=0, steps=4)
    assert mlflow_run(run_dir).info.status == "FAILED"
    assert not (run_dir / "summary.json").exists()
    stage.training_fails = False
    demo.run_demo(run_dir=run_dir, seed=0, steps=4)
    assert stage.measured == [demo.BEFORE_FILE, demo.AFTER_FILE]
    assert mlflow_run(run_dir).info.status == "FINISHED"


def test_a_measurement_of_other_worlds_is_made_again(stage: Stage) -> None:
    run_dir = Path("runs/demo")
    run_dir.mkdir(parents=True)
    (run_dir / demo.BEFORE_FILE).write_text(evaluation(faithful=0.1).model_dump_json())
    demo.run_demo(run_dir=run_dir, seed=0, steps=4)
    assert json.loads((run_dir / "summary.json").read_text())["oracle_faithfulness_before"] == 0.6


def test_a_failed_measurement_says_where_its_log_is(stage: Stage) -> None:
    stage.measuring_fails = True
    with pytest.raises(TrainingFailedError, match=r"runs/demo/evaluate\.log"):
        demo.run_demo(run_dir=Path("runs/demo"), seed=0, steps=4)
    assert stage.num_trainings == 0


def test_a_run_folder_that_is_a_file_is_said_at_once(stage: Stage) -> None:
    Path("taken").write_text("")
    with pytest.raises(FileExistsError):
        demo.run_demo(run_dir=Path("taken"), seed=0, steps=4)
    assert stage.measured == []


def test_the_report_prints_in_a_narrow_terminal(stage: Stage) -> None:
    demo.run_demo(run_dir=Path("runs/demo"), seed=0, steps=4)
    summary = Summary.model_validate_json(Path("runs/demo/summary.json").read_text())
    console = Console(width=60, record=True)
    demo.print_report(console, Path("runs/demo"), summary)
    assert "Faithful" in console.export_text()
