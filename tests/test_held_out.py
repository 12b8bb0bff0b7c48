"""Judged while it trains: what a look counts, which one is the best, when it is enough, and that no held-out
row is trained on."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.data.prepare import ROWS_FILE
from pipeline.launch.held_out_rows import _rows_of, apart, held_out_file, refuse_trained, write_held_out
from pipeline.record.checkpoints import keep_model_of, model_of
from pipeline.rows import write_made
from pipeline.settings.guards import GuardSettings
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.settings.sources import HeldOutSettings
from pipeline.training.held_out import (
    HELD_OUT_FOLDER,
    SCORE,
    HeldOut,
    Look,
    best_look,
    held_out_metrics,
    read_answers,
    recorded_looks,
)
from pipeline.training.oracle import judge_tiny
from pipeline.training.trainer_settings import TrainerSettings
from pipeline.worlds.known import is_right
from pipeline.worlds.wiki.world import WikiWorld
from pipeline.worlds.world import NUM_MEASURED
from reward.config import AuditConfig
from reward.types import Document, Outcome, RagQuery, Verdict

SUPPORTED, REFUTED, NO_CLAIMS, UNSCORED = (
    Outcome.SUPPORTED,
    Outcome.REFUTED,
    Outcome.NO_CLAIMS,
    Outcome.UNSCORED,
)
QUERY = RagQuery(
    id="q",
    query="How many came, and who led them?",
    documents=(Document(id="d", text="2,500 people came on 3 May 1883. Anna Berg led them."),),
)


def held_out_of(folder: Path, *, every: int = 2, patience: int | None = None) -> HeldOut:
    recipe = SimpleNamespace(guards=GuardSettings(), audit=AuditConfig())
    settings = SimpleNamespace(run_dir=folder, num_steps=9, recipe=recipe)
    return HeldOut(HeldOutSettings(every=every, patience=patience), cast("TrainerSettings", settings))


@pytest.mark.parametrize(
    ("outcome", "right", "counts"),
    [
        (SUPPORTED, True, 1),
        (SUPPORTED, False, 0),
        (SUPPORTED, None, 1),
        (NO_CLAIMS, True, 1),
        (NO_CLAIMS, False, 0),
        (NO_CLAIMS, None, 0),
        (REFUTED, True, 0),
        (REFUTED, None, 0),
    ],
)
def test_an_answer_counts_by_its_audit_and_by_what_is_right(
    outcome: Outcome, right: bool | None, counts: int
) -> None:
    found = held_out_metrics([outcome, UNSCORED], [right, True], max_unscored_rate=0.5)
    assert found[SCORE] == counts / 2 and found["held_out/unscored_rate"] == 0.5
    assert found.get("held_out/right_rate") == (None if right is None else float(right))


def test_an_unscored_answer_is_in_no_rate_and_counts_0_in_the_score() -> None:
    outcomes = [SUPPORTED, REFUTED, NO_CLAIMS, SUPPORTED, UNSCORED]
    for unknown in (True, False, None):
        found = held_out_metrics(outcomes, [True, True, False, False, unknown], max_unscored_rate=0.5)
        assert found == {
            "held_out/num_answers": 5,
            "held_out/unscored_rate": pytest.approx(0.2),
            "held_out/supported_rate": 0.5,
            "held_out/refuted_rate": 0.25,
            "held_out/no_claims_rate": 0.25,
            "held_out/right_rate": 0.5,
            SCORE: 0.2,
        }


def test_a_policy_that_breaks_its_audits_is_not_the_best() -> None:
    """85 right answers of 100 are better than 45 right ones beside 50 whose audit failed."""
    looks = []
    for step, (right, refuted, unscored) in enumerate([(85, 15, 0), (45, 5, 50)]):
        outcomes = [SUPPORTED] * right + [REFUTED] * refuted + [UNSCORED] * unscored
        rights = [outcome is not REFUTED for outcome in outcomes]
        looks.append(Look(step, held_out_metrics(outcomes, rights, max_unscored_rate=0.5)[SCORE]))
    assert looks == [Look(0, 0.85), Look(1, 0.45)] and best_look(looks) == looks[0]


def test_a_look_of_which_too_much_is_unscored_has_no_score() -> None:
    found = held_out_metrics([SUPPORTED, UNSCORED, UNSCORED], [True] * 3, max_unscored_rate=0.5)
    assert SCORE not in found and found["held_out/supported_rate"] == 1
    assert SCORE not in held_out_metrics([UNSCORED], [True], max_unscored_rate=1.0)


@pytest.mark.parametrize(
    ("answer", "accepted", "right"),
    [
        ("About it: 2500 people came.", "2,500", True),
        ("2.5 people came.", "25", False),
        ("2.5 people came.", "5", False),
        ("They came on 3 May 1883.", "1883", True),
        ("They came in 1884.", "1883", False),
        ("anna berg led them.", "Anna Berg", True),
        ("Annabel Berg led them.", "Anna Berg", False),
        ("Yes, they came.", "yes", True),
        ("Yesterday.", "yes", False),
        ("No, according to the documents they did not come.", "no", True),
        ("No mention of it is made in the documents.", "no", False),
        ("It was not led by Anna Berg.", "Anna Berg", False),
        ("The leader isn't Anna Berg.", "Anna Berg", False),
        ("It was led not only by Anna Berg.", "Anna Berg", True),
        ("They did not come by boat, but Anna Berg led them.", "Anna Berg", True),
    ],
)
def test_an_answer_is_right_that_states_an_accepted_one(answer: str, accepted: str, right: bool) -> None:
    assert is_right(QUERY, answer, ("nothing like it", accepted)) is right


def test_without_a_known_answer_nobody_says_what_is_right_and_an_unanswerable_query_wants_none() -> None:
    assert is_right(QUERY, "2,500", ()) is None
    unanswerable = QUERY.model_copy(update={"unanswerable": True})
    assert is_right(unanswerable, "The documents do not say.", ()) is True
    assert is_right(unanswerable, "2,500 people came.", ()) is False


def test_a_worlds_truth_says_what_is_right_and_not_only_what_is_faithful() -> None:
    from pipeline.tiny.world import sample_worlds

    world = next(one for one in sample_worlds(50, 1, "held_out") if len(one.asked) > 1)
    verdict = Verdict(id="q", outcome=UNSCORED, reward=None, reason="engine")
    facts = [fact.statement() for fact in world.asked]
    for said, right in ((" ".join(facts), True), (facts[0], False)):
        judged = judge_tiny(world.query, said, verdict)
        assert judged.faithful and judged.right is right


def test_rows_of_a_file_are_judged_by_their_answers_and_by_no_world(tmp_path: Path) -> None:
    """The tiny world's judge finds any text wrong that is not of its making."""
    held_out = held_out_of(tmp_path)
    held_out.asked = HeldOutSettings(path=tmp_path / "rows.jsonl")
    held_out._answers = {"q": ("2,500",)}
    verdict = Verdict(id="q", outcome=SUPPORTED, reward=0.0)
    oracle = judge_tiny(QUERY, "2,500", verdict)
    assert not oracle.right
    record = SimpleNamespace(response="2,500", oracle=oracle, verdict=verdict)
    figures = held_out.judged([(QUERY, cast("Any", record))], 2)
    assert figures["held_out/right_rate"] == figures["held_out/score"] == 1


def test_looks_are_every_so_many_steps_and_after_the_last_one(tmp_path: Path) -> None:
    held_out = held_out_of(tmp_path)
    assert [step for step in range(1, 10) if held_out.is_due(step)] == [2, 4, 6, 8, 9]


def test_a_run_is_over_when_its_patience_is_and_the_first_of_equals_is_the_best(tmp_path: Path) -> None:
    held_out = held_out_of(tmp_path, patience=2)
    over = []
    for step, score in enumerate([0.2, 0.5, 0.5, 0.6, 0.1, 0.6], 1):
        held_out.looks.append(Look(step, score))
        over.append(held_out.is_over())
    assert over == [False, False, False, False, False, True]
    assert held_out.best == Look(4, 0.6)
    held_out.asked = HeldOutSettings()
    assert not held_out.is_over()


def test_a_resumed_run_knows_its_looks_from_the_best_one_whose_model_is_there(tmp_path: Path) -> None:
    scores = {2: 0.7, 4: 0.3, 6: 0.5, 8: 0.4}
    lines = [{"step": step, **({SCORE: scores[step]} if step in scores else {})} for step in range(1, 9)]
    (tmp_path / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert recorded_looks(tmp_path) == []
    for step in (4, 6):
        model_of(tmp_path / "checkpoints", step).mkdir(parents=True)
    assert recorded_looks(tmp_path) == [Look(6, 0.5), Look(8, 0.4)]
    assert held_out_of(tmp_path, patience=1).is_over()
    keep_model_of(tmp_path / "checkpoints", 6)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["global_step6_hf"]
    assert best_look([]) is None


def tiny(*overrides: str) -> Recipe:
    batch = ["rollout.batch_size=16", "rollout.micro_batch_size=8", "ppo.micro_batch_size=8"]
    return load_recipe("tiny", ["data.max_steps=2", "held_out.num_rows=12", *batch, *overrides])


@pytest.mark.parametrize("world", ["tiny", "wiki"])
def test_no_held_out_row_is_trained_on(world: str, tmp_path: Path) -> None:
    wider = ["rollout.max_prompt_tokens=2000", "data.max_steps=null"] if world == "wiki" else []
    recipe = tiny(f"data.source={world}", *wider)
    write_made(recipe, tmp_path / "data", 32)
    write_held_out(recipe, tmp_path, tmp_path / "data" / ROWS_FILE)
    held_out = held_out_file(recipe, tmp_path)
    assert held_out is not None

    def queries(path: Path) -> list[RagQuery]:
        rows = map(json.loads, path.read_text().splitlines())
        return [RagQuery.model_validate_json(row["label"]) for row in rows]

    kept, trained = queries(held_out), queries(tmp_path / "data" / ROWS_FILE)
    assert len(kept) == 12 and len(trained) >= 32
    assert not {one.id for one in kept} & {one.id for one in trained}
    refuse_trained(kept, tmp_path / "data" / ROWS_FILE)
    with pytest.raises(ValueError, match=r"held_out: 1 rows are among those that are trained on"):
        refuse_trained([*kept, trained[3]], tmp_path / "data" / ROWS_FILE)
    documents = [one.model_copy(update={"text": f" {one.text}\n"}) for one in trained[3].documents]
    again = trained[3].model_copy(update={"documents": documents, "query": trained[3].query.rstrip("?.")})
    with pytest.raises(ValueError, match="held_out: 1 rows are among those"):
        refuse_trained([again], tmp_path / "data" / ROWS_FILE)


def test_held_out_rows_of_real_text_ask_for_no_subject_of_a_measurement() -> None:
    """Else the best look would be chosen on facts of the measurement that follows."""
    rows = WikiWorld().rows("held_out")
    kept = apart(rows, num_measured=NUM_MEASURED)
    measured = {one.subject for row in rows[:NUM_MEASURED] for one in row.asked}
    assert len(kept) > 50 and not measured & {one.subject for row in kept for one in row.asked}
    recipe = tiny("data.source=wiki", "data.max_steps=null", "rollout.max_prompt_tokens=2000")
    queries, _ = _rows_of(recipe)
    assert {query.id for query in queries} <= {row.query.id for row in kept} and len(queries) == 12


def test_a_world_without_rows_beside_a_measurement_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few = WikiWorld().rows("held_out")[:NUM_MEASURED]
    monkeypatch.setattr(WikiWorld, "rows", lambda *_: few)
    with pytest.raises(ValueError, match=r"held_out: the 400 that measurements take .* give held_out.path"):
        _rows_of(tiny("data.source=wiki", "data.max_steps=null", "rollout.max_prompt_tokens=2000"))


def test_a_file_of_rows_gives_answers_that_no_prompt_shows(tmp_path: Path) -> None:
    rows = [
        {"id": f"h{i}", "query": f"How many sold {i}?", "documents": ["Boats sold."], "answers": [f"{i}17"]}
        for i in range(20)
    ]
    rows[1].pop("answers")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = tiny(f"held_out.path={tmp_path / 'rows.jsonl'}")
    write_made(recipe, tmp_path / "data", 32)
    write_held_out(recipe, tmp_path, tmp_path / "data" / ROWS_FILE)
    answers = read_answers(tmp_path)
    assert answers["h11"] == ("1117",) and "h1" not in answers and len(answers) == 11
    written = (tmp_path / HELD_OUT_FOLDER / ROWS_FILE).read_text()
    assert "h11" in written and "1117" not in written and "h12" not in written
    rollout = SimpleNamespace(
        oracle=None, response="1117 sold it.", verdict=SimpleNamespace(outcome=SUPPORTED)
    )
    query = RagQuery.model_validate_json(json.loads(written.splitlines()[11])["label"])
    found = held_out_of(tmp_path).judged([(query, rollout)], 2)  # type: ignore[list-item]
    assert query.id == "h11" and found["held_out/right_rate"] == 1


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["data={source: prepared, path: rows}"], "held_out.path: missing"),
        (["rollout.max_staleness=1", "ppo.correction.level=token"], "rollout.max_staleness: 1"),
        (["held_out.every=0"], "held_out.every"),
    ],
)
def test_a_held_out_set_that_cannot_be_had_or_judged_is_refused(overrides: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tiny(*overrides)


def test_no_recipe_has_one_unless_it_asks(tmp_path: Path) -> None:
    recipe = load_recipe("tiny")
    write_held_out(recipe, tmp_path, tmp_path / "no rows")
    assert (
        recipe.held_out is None and held_out_file(recipe, tmp_path) is None and not list(tmp_path.iterdir())
    )


def test_the_trainer_saves_the_best_model_and_ends_its_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline import cpu

    cpu.install()
    from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

    from pipeline.training import trainer as module
    from pipeline.training.experience import MarchSamplesGenerator

    monkeypatch.setattr(module.ray, "get", lambda value: value)
    monkeypatch.setattr(SamplesGenerator, "generate_samples", lambda self, **kwargs: ([1], None, 1, False))
    rollout = SimpleNamespace(oracle=SimpleNamespace(right=True), verdict=SimpleNamespace(outcome=SUPPORTED))
    asked: list[dict[str, int]] = []

    def answered(**kwargs: int) -> list[Any]:
        asked.append(kwargs)
        return [SimpleNamespace(labels=[QUERY.model_dump_json()], rollout=rollout)]

    generator = object.__new__(MarchSamplesGenerator)
    generator.generate_eval_samples = answered
    saved: list[str] = []
    trainer = object.__new__(module.MarchTrainer)
    trainer.held_out = held_out_of(tmp_path, every=1, patience=1)
    trainer.samples_generator = generator
    trainer.generate_kwargs = {"max_len": 512, "n_samples_per_prompt": 4}
    trainer.args = SimpleNamespace(ckpt=SimpleNamespace(path=str(tmp_path)))
    trainer.actor_model_group = SimpleNamespace(
        async_run_method=lambda method_name, folder: saved.append(f"{method_name} {Path(folder).name}")
    )
    generator.is_over = trainer.held_out.is_over
    assert trainer._look(1)[SCORE] == 1 and generator.generate_samples()[0] == [1]
    assert trainer._look(2)[SCORE] == 1 and generator.generate_samples() == ([], None, 0, True)
    assert asked == [{"max_len": 512, "n_samples_per_prompt": 1}] * 2
    assert saved == ["save_model_to global_step1_hf"]
    trainer.held_out = None
    assert trainer._look(3) == {}
