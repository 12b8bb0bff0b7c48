"""Worlds: rows with their truth, splits that share nothing, and a judge that agrees with the truth."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.data.prepare import ROWS_FILE
from pipeline.rows import num_made, planned_rows, write_made
from pipeline.settings.recipe import load_recipe
from pipeline.settings.worlds import WikiSettings
from pipeline.tiny.truth import held_out_rows
from pipeline.tiny.truth import judge as judge_tiny
from pipeline.training.oracle import oracle_for
from pipeline.worlds.judge import judge
from pipeline.worlds.wiki.facts import facts_of
from pipeline.worlds.wiki.paragraphs import SHIPPED, shipped, tidy
from pipeline.worlds.wiki.relations import RELATIONS, statement_of
from pipeline.worlds.wiki.world import WikiWorld, count_rows
from pipeline.worlds.world import SPLITS, Asked, WorldRow
from reward.types import Answer, Claim, ClaimState, ClaimVerdict, Document, Outcome, RagQuery, Verdict
from tests.march_cli import march, refused

WORLD = WikiWorld()


def said(asked: Sequence[Asked], wording: int = 0) -> str:
    values = ((one, one.value or "") for one in asked)
    return " ".join(statement_of(one.relation, one.subject, value, wording) for one, value in values)


def facts(title: str, text: str, *triples: tuple[str, str]) -> dict[str, str]:
    return {fact.relation: fact.value for fact in facts_of(title, text, triples)}


def test_the_shipped_rows_are_counted_in_the_docs() -> None:
    page = (Path(__file__).parent.parent / "docs" / "worlds.md").read_text()
    counts = [count_rows(WORLD.rows(split)) for split in SPLITS]
    for kind in ("date", "name", "number"):
        assert f"| one fact: {kind} | {' | '.join(str(c[f'one fact: {kind}']) for c in counts)} |" in page
        assert f"| two facts: {kind}s | {' | '.join(str(c[f'two facts: {kind}']) for c in counts)} |" in page
    mixed = [sum(n for what, n in counter.items() if " and " in what) for counter in counts]
    assert f"| two facts of two kinds | {mixed[0]} | {mixed[1]} |" in page
    nothing = [counter["no document says it"] for counter in counts]
    assert f"| what no document says | {nothing[0]} | {nothing[1]} |" in page
    assert f"{counts[0].total():,} for training, {counts[1].total():,} held out" in page
    assert counts[1].total() >= 400


def test_the_package_is_small_and_holds_no_answers() -> None:
    assert SHIPPED.stat().st_size < 1_500_000 and (SHIPPED.parent / "LICENSE").is_file()
    assert {row.split for row in shipped()} == {"train", "held_out"}


def test_the_splits_share_no_paragraph_subject_or_fact() -> None:
    train, held_out = WORLD.rows("train"), WORLD.rows("held_out")

    def of(rows: Sequence[WorldRow]) -> tuple[set[str], set[str], set[str]]:
        titles = {document.title for row in rows for document in row.query.documents}
        texts = {document.text for row in rows for document in row.query.documents}
        return titles, texts, {one.subject for row in rows for one in row.asked}

    for ours, theirs in zip(of(train), of(held_out), strict=True):
        assert not ours & theirs
    both = {f"{one.subject} {one.relation} {one.value}" for row in train for one in row.asked}
    assert not both & {f"{one.value} {one.relation} {one.subject}" for row in held_out for one in row.asked}


def test_every_row_says_what_it_asks_for_and_only_where_it_says_so() -> None:
    for row in (row for split in SPLITS for row in WORLD.rows(split)):
        texts = {document.id: document for document in row.query.documents}
        titles = [document.title for document in row.query.documents]
        assert len(set(titles)) == len(titles)
        for one in row.asked:
            assert one.kind == RELATIONS[one.relation].kind
            if one.value is not None:
                assert one.value in texts[one.document].text and one.value not in row.query.query
            else:
                everything = " ".join(f"{document.title} {document.text}" for document in texts.values())
                assert one.subject not in everything


def test_two_facts_are_of_two_paragraphs() -> None:
    for row in WORLD.rows("train"):
        assert len({one.document for one in row.asked}) == len(row.asked)


def test_the_judge_agrees_with_the_truth_of_every_row() -> None:
    for row in (row for split in SPLITS for row in WORLD.rows(split)):
        if not row.is_answerable:
            assert judge(row, "The documents do not say.").right
            continue
        assert judge(row, said(row.asked, len(row.query.id) % 3)).right, row.asked
        if len(row.asked) == 2:
            assert judge(row, said(row.asked[::-1])).right, row.asked


def test_exchanged_values_are_wrong() -> None:
    for row in WORLD.rows("held_out"):
        if len(row.asked) == 2 and row.asked[0].kind == row.asked[1].kind:
            a, b = row.asked
            swapped = (a.model_copy(update={"value": b.value}), b.model_copy(update={"value": a.value}))
            if a.relation == b.relation:
                assert not judge(row, said(swapped)).faithful, row.asked


def one_row(**changes: object) -> WorldRow:
    text = (
        "Sam Wood (July 10, 1883 \u2013 September 22, 1949) was an American director, born in Philadelphia."
    )
    documents = (Document(id="1", title="Sam Wood", text=text),)
    query = RagQuery(id="q", query="When was Sam Wood born?", documents=documents)
    asked = {
        "question": query.query,
        "subject": "Sam Wood",
        "kind": "date",
        "value": "July 10, 1883",
        "relation": "date of birth",
        "document": "1",
    }
    return WorldRow(query=query, asked=(Asked.model_validate(asked | changes),))


@pytest.mark.parametrize(
    ("response", "right", "faithful"),
    [
        ("Sam Wood was born on July 10, 1883.", True, True),
        ("Sam Wood was born on 10 July 1883.", True, True),
        ("The American director Sam Wood was born on July 10, 1883.", True, True),
        ("Sam Wood was born in 1883.", False, True),
        ("Sam Wood was born on July 10, 1883 and died on September 22, 1949.", False, True),
        ("Sam Wood was born on July 11, 1883.", False, False),
        ("Sam Wood was born on September 22, 1949.", False, False),
        ("Sam Wood died on July 10, 1883.", False, False),
        ("Sam Wood was born on July 10, 1883 and died in 1950.", False, False),
        ("Sam Wood was born.", False, False),
        ("The documents do not say.", False, False),
    ],
)
def test_the_judges_table(response: str, right: bool, faithful: bool) -> None:
    found = judge(one_row(), response)
    assert (found.right, found.faithful) == (right, faithful)


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Levity is from 2003.", True),
        ("Levity is a 2003 film.", True),
        ("The release of Levity is 2003.", True),
        ("The release of Levity is 2004.", False),
        ("Levity cost 2003 dollars.", False),
    ],
)
def test_a_bare_year_is_a_date(response: str, right: bool) -> None:
    text = "Levity is a 2003 drama film directed by Ed Solomon."
    query = RagQuery(
        id="q", query="From which year is Levity?", documents=(Document(id="1", title="Levity", text=text),)
    )
    asked = Asked(
        question=query.query, subject="Levity", kind="date", value="2003", relation="year", document="1"
    )
    assert judge(WorldRow(query=query, asked=(asked,)), response).right is right


def test_where_no_document_says_it_only_an_abstention_is_right() -> None:
    row = one_row(value=None, document="")
    assert judge(row, "The documents do not say when Sam Wood was born.").right
    assert not judge(row, "Sam Wood was born on July 10, 1883.").faithful


@pytest.mark.parametrize(
    ("title", "text", "triples", "expected"),
    [
        (
            "Lola (1981 film)",
            "Lola is a 1981 West German film directed by Rainer Werner Fassbinder, and is the second.",
            [("director", "Rainer Werner Fassbinder")],
            {"director": "Rainer Werner Fassbinder", "year": "1981"},
        ),
        (
            "Vortex (1981 film)",
            "Vortex is a 1981 film directed by Scott B and Beth B and starring James Russo.",
            [("director", "Scott B")],
            {"year": "1981"},
        ),
        (
            "Gonzalo García Núñez",
            "Gonzalo García Núñez (born February 16, 1947) is a Peruvian engineer of the University, Lima.",
            [("place of birth", "Lima")],
            {"date of birth": "February 16, 1947", "nationality": "Peruvian"},
        ),
        (
            "Salvador J. Lara",
            "Salvador J. Lara (July 11, 1920 \u2013 September 1, 1945) was a soldier.",
            [("date of birth", "1920")],
            {"date of birth": "July 11, 1920", "date of death": "September 1, 1945"},
        ),
        (
            "Love Me with All Your Heart",
            "A version recorded by The Ray Charles Singers went to number three.",
            [("performer", "Ray Charles")],
            {},
        ),
        (
            "Glossop High School",
            "Glossop High School is a public high school in the Riverland of South Australia.",
            [("country", "Australia")],
            {},
        ),
        (
            "Deh Mian, Larestan",
            "Deh Miyan is a village in Iran. At the 2006 census, its population was 800, in 102 families.",
            [],
            {"population": "800", "families": "102"},
        ),
    ],
)
def test_facts_are_what_a_paragraph_says(
    title: str, text: str, triples: list[tuple[str, str]], expected: dict[str, str]
) -> None:
    assert facts(title, text, *triples) == expected


def test_lost_spaces_are_put_back() -> None:
    assert tidy('Wood( July 10,1883 \u2013  1949 ) made" A Night" and a Hindi- language film') == (
        'Wood (July 10, 1883 \u2013 1949) made "A Night" and a Hindi-language film'
    )


def test_settings_change_what_is_asked() -> None:
    world = WikiWorld(WikiSettings(kinds=("number",), num_asked=(2,), num_documents=4))
    rows = world.rows("held_out")
    assert rows and all(len(row.asked) == 2 and row.is_answerable for row in rows)
    assert {one.kind for row in rows for one in row.asked} == {"number"}
    assert max(len(row.query.documents) for row in rows) == 4


def test_the_parts_are_apart() -> None:
    shown, rewarded = ({row.asked[0].subject for row in WORLD.part(part)} for part in ("warmup", "training"))
    assert shown and rewarded and not shown & rewarded
    assert not WikiWorld(WikiSettings(warmup_share=0)).part("warmup")


def test_official_files_go_the_same_way(tmp_path: Path) -> None:
    rows = [{"_id": row.id, "context": row.context, "evidences": row.evidences} for row in shipped()[140:230]]
    path = tmp_path / "train.json"
    path.write_text(json.dumps(rows))
    whole = WikiWorld(WikiSettings(train_file=path))
    assert whole.rows("train") and whole.rows("held_out")
    assert {row.query.id for row in WikiWorld(WikiSettings(train_file=path)).rows("train")} == {
        row.query.id for row in whole.rows("train")
    }
    (tmp_path / "held_out.json").write_text(json.dumps(rows[:10]))
    own = WikiWorld(WikiSettings(held_out_file=tmp_path / "held_out.json"))
    kept = {row.query.query for row in WikiWorld().rows("held_out")}
    assert kept.isdisjoint(row.query.query for row in own.rows("train")), "they measure other trainings"
    split = WikiWorld(WikiSettings(train_file=path, held_out_file=tmp_path / "held_out.json"))
    titles = {document.title for row in split.rows("held_out") for document in row.query.documents}
    assert titles.isdisjoint(
        document.title for row in split.rows("train") for document in row.query.documents
    )


def test_rows_of_the_tiny_world_say_where_their_facts_are() -> None:
    (row,) = held_out_rows(1, seed=0)
    answer = " ".join(
        document.text
        for document in row.query.documents
        if document.id in {one.document for one in row.asked}
    )
    assert judge_tiny(row.query, answer).faithful
    assert not judge_tiny(row.query, "The documents do not say.").right


def test_the_command_counts_shows_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert march("world", "--show", 1, "--out", tmp_path) == 0
    shown = capsys.readouterr().out
    assert "one fact: date" in shown and '"asked": [' in shown
    lines = [json.loads(line) for line in (tmp_path / "held_out.jsonl").read_text().splitlines()]
    assert len(lines) == len(WORLD.rows("held_out")) and lines[0].keys() >= {
        "id",
        "query",
        "documents",
        "asked",
    }
    assert "no such file" in refused(capsys, "world", "--set", f"train_file={tmp_path}/none.json")
    assert "unknown key" in refused(capsys, "world", "--set", "depth=3")


def test_an_oracle_beside_the_reward_knows_the_rows_by_their_ids() -> None:
    row = next(row for row in WORLD.rows("held_out") if len(row.asked) == 1 and row.is_answerable)
    asked = row.asked[0]
    claim = Claim(index=1, kind=asked.kind, question=asked.question, answer=str(asked.value))
    found = ClaimVerdict(claim=claim, state=ClaimState.SUPPORTED, consensus=asked.value)
    verdict = Verdict(id=row.query.id, outcome=Outcome.SUPPORTED, reward=0.0, claims=(found,))
    judge = oracle_for("wiki", WikiSettings())
    truth = judge(row.query, said(row.asked), verdict)
    assert truth is not None and truth.faithful and not truth.false_accept
    assert (truth.num_consensus, truth.num_consensus_right) == (1, 1)
    wrong = judge(row.query, said([asked.model_copy(update={"value": "3 May 1801"})]), verdict)
    assert wrong is not None and wrong.false_accept
    assert judge(row.query.model_copy(update={"id": "another"}), "", verdict) is None


def test_a_training_on_the_world_reads_rows_that_no_warm_up_shows(tmp_path: Path) -> None:
    settings = ["data.source=wiki", "data.max_steps=2", "rollout.max_prompt_tokens=9999"]
    recipe = load_recipe("tiny", settings)
    assert num_made(recipe) == planned_rows(recipe) == 2 * recipe.rollout.batch_size
    assert write_made(recipe, tmp_path, num_made(recipe)) > num_made(recipe)
    shown = {row.query.query for row in WORLD.part("warmup")}
    lines = [json.loads(line) for line in (tmp_path / ROWS_FILE).read_text().splitlines()]
    assert not shown & {json.loads(line["label"])["query"] for line in lines}


@pytest.mark.parametrize("votes", [("3 May 1801",) * 3, ("3 May 1801", "4 May 1802", None)])
def test_voters_that_all_err_are_not_right_because_a_lookup_overrules_them(
    votes: tuple[str | None, ...],
) -> None:
    row = next(row for row in WORLD.rows("held_out") if not row.is_answerable and row.asked[0].kind == "date")
    claim = Claim(index=1, kind="date", question=row.asked[0].question, answer="3 May 1801")
    answers = tuple(Answer(value=one, evidence="") for one in votes)
    state = ClaimState.NOT_IN_DOCUMENTS if None not in votes else ClaimState.NO_CONSENSUS
    found = ClaimVerdict(claim=claim, state=state, consensus=None, votes=answers)
    verdict = Verdict(id=row.query.id, outcome=Outcome.REFUTED, reward=-1.0, claims=(found,))
    truth = oracle_for("wiki", WikiSettings())(row.query, "It was on 3 May 1801.", verdict)
    assert truth is not None and (truth.num_consensus, truth.num_consensus_right) == (1, 0)
