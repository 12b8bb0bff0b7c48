"""A whole preparation: the same for any number of processes, with a list of what it left out, and a card."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.terminal.messages import user_error
from pipeline.data.card import render_card
from pipeline.data.duplicates import Reason
from pipeline.data.job import run_job
from pipeline.data.prepare import Manifest, Removal, read_manifest
from pipeline.data.sources import SOURCES
from pipeline.data.work import Choices, Input, PrepareJob
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.settings.recipe import TINY_POLICY
from reward.offline.files import file_sha256
from reward.types import RagQuery
from tests.benchmark_rows import SLICES, TWOWIKI_DEV, write_bioasq
from tests.march_cli import march, refused

CHOICES = Choices(near_duplicates=0.8, noise=0.3, accepted_licences=("bioasq",))


def job(out: Path, *inputs: tuple[str, Path], **options: Any) -> PrepareJob:
    given = tuple(Input(SOURCES[name], path) for name, path in inputs)
    return PrepareJob(given, out, **({"num_workers": 0, "prompts": "compact", "choices": CHOICES} | options))


def everything(tmp_path: Path) -> tuple[tuple[str, Path], ...]:
    return (*SLICES.items(), ("bioasq", write_bioasq(tmp_path)))


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()}


def removals(out: Path) -> list[Removal]:
    return [Removal.model_validate_json(line) for line in (out / "removed.jsonl").open()]


def plain(path: Path, *rows: dict[str, Any]) -> tuple[str, Path]:
    path.write_text("\n".join(map(json.dumps, rows)))
    return ("jsonl", path)


def row(name: str, query: str, *documents: str) -> dict[str, Any]:
    return {"id": name, "query": query, "documents": list(documents)}


def test_the_rows_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    inputs, made = everything(tmp_path), []
    for num_workers in (0, 2):
        out = tmp_path / str(num_workers)
        run_job(job(out, *inputs, num_workers=num_workers, evaluation_sets=(TWOWIKI_DEV,)))
        made.append(contents(out))
    assert made[0] == made[1]
    assert sorted(made[0]) == ["data_card.md", "manifest.json", "removed.jsonl", "train.jsonl"]


def test_an_input_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows").mkdir()
    name, path = plain(tmp_path / "rows" / "train.jsonl", row("1", "How many?", "There are 5."))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"train\.jsonl: is an input"):
        run_job(job(tmp_path / "rows", (name, path)))
    assert path.read_bytes() == before
    world = tmp_path / "world" / "train.jsonl"
    world.parent.mkdir()
    world.write_bytes(TWOWIKI_DEV.read_bytes())
    assert "train.jsonl: is an input" in refused(
        capsys, "world", "--out", world.parent, "--set", f"train_file={world}"
    )
    assert world.read_bytes() == TWOWIKI_DEV.read_bytes()


def test_several_sources_make_one_set(tmp_path: Path) -> None:
    manifest = run_job(job(tmp_path / "out", *everything(tmp_path)))
    written = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").open()]
    sources = list(dict.fromkeys(line["datasource"] for line in written))
    assert sources == [*SLICES, "bioasq"] == [found.source for found in manifest.statistics]
    assert manifest.num_rows == len(written) == sum(found.num_rows for found in manifest.statistics)
    assert manifest.num_read == 24 + 8 + 8 + 6 + 24 + 40
    assert {file.name: file.sha256 for file in manifest.inputs}["train.json"] == file_sha256(
        SLICES["2wikimultihopqa"]
    )
    assert read_manifest(tmp_path / "out") == manifest


def test_the_statistics_are_those_of_the_rows(tmp_path: Path) -> None:
    (found,) = run_job(job(tmp_path, ("2wikimultihopqa", SLICES["2wikimultihopqa"]))).statistics
    raw = json.loads(SLICES["2wikimultihopqa"].read_text())
    words = [sum(len(" ".join(sentences).split()) for _, sentences in row["context"]) for row in raw]
    queries = [len(row["question"].split()) for row in raw]
    relevant = sum(len({title for title, _ in row["supporting_facts"]}) for row in raw)
    assert (found.num_rows, found.num_documents.min, found.num_documents.max) == (24, 10, 10)
    assert found.query_words.mean == pytest.approx(sum(queries) / 24)
    assert found.document_words.mean == pytest.approx(sum(words) / 24)
    assert (found.document_words.min, found.document_words.max) == (min(words), max(words))
    assert found.irrelevant_ratio == pytest.approx(1 - relevant / 240)


@pytest.mark.parametrize(("name", "ratio"), [("musique", 0.85), ("hotpotqa", 0.8), ("tatqa", None)])
def test_the_irrelevant_share_is_counted_where_it_is_told(
    name: str, ratio: float | None, tmp_path: Path
) -> None:
    (found,) = run_job(job(tmp_path, (name, SLICES[name]))).statistics
    assert found.irrelevant_ratio == (ratio if ratio is None else pytest.approx(ratio, abs=0.001))


def test_bioasqs_irrelevant_share_is_the_noise(tmp_path: Path) -> None:
    path = write_bioasq(tmp_path, 300)
    (found,) = run_job(job(tmp_path / "out", ("bioasq", path))).statistics
    assert found.irrelevant_ratio == pytest.approx(0.3, abs=0.04)


def test_rows_of_evaluation_sets_are_left_out_and_listed(tmp_path: Path) -> None:
    given = job(
        tmp_path / "0", ("2wikimultihopqa", SLICES["2wikimultihopqa"]), evaluation_sets=(TWOWIKI_DEV,)
    )
    manifest = run_job(given)
    listed = removals(tmp_path / "0")
    assert (manifest.num_overlap_document, manifest.num_rows) == (7, 17)
    assert [one.reason for one in listed] == [Reason.OVERLAP_DOCUMENT] * 7
    dev = {row["_id"]: row["context"] for row in json.loads(TWOWIKI_DEV.read_text())}
    train = {row["_id"]: row["context"] for row in json.loads(SLICES["2wikimultihopqa"].read_text())}
    for one in listed:
        assert one.match is not None and one.match.dataset == "dev.json"
        name, _, document = one.match.id.partition(": ")
        text = dev[name][int(document.rpartition("#")[2])][1]
        assert text in [sentences for _, sentences in train[one.id]]
        assert re.fullmatch(r"train\.json:\d+ \(row \d+\)", one.place)
    looser = replace(
        given, out=tmp_path / "2", choices=CHOICES.model_copy(update={"max_shared_documents": 2})
    )
    assert run_job(looser).num_overlap_document == 2
    (found,) = manifest.statistics
    assert found.shared_documents == {0: 17, 1: 2, 2: 3, 6: 2}


def test_every_reason_is_counted_and_listed(tmp_path: Path) -> None:
    long = " ".join(f"word{i}" for i in range(40))
    shared = " ".join(f"shared{i}" for i in range(40))
    question = "What was the revenue of the company before the sale of its northern branch?"
    rows = (
        row("kept", question, long),
        row("copy", question, long),
        row("near", question.upper(), long + " more"),
        row("asked", "Who founded the town on the river?", long),
        row("held", "Where is it?", shared),
        row("other", "When was the town founded?", "In 1900."),
    )
    evaluation = plain(tmp_path / "dev.jsonl", row("e", "Who founded the town on the river?", shared))
    manifest = run_job(
        job(tmp_path / "out", plain(tmp_path / "rows.jsonl", *rows), evaluation_sets=(evaluation[1],))
    )
    found = {one.id: (one.reason, one.match and one.match.id) for one in removals(tmp_path / "out")}
    assert found == {
        "copy": (Reason.DUPLICATE, "kept"),
        "near": (Reason.NEAR_DUPLICATE, "kept"),
        "asked": (Reason.OVERLAP_QUESTION, "e"),
        "held": (Reason.OVERLAP_DOCUMENT, "e: 1"),
    }
    assert manifest.removed == {
        Reason.NO_DOCUMENTS: 0,
        Reason.OVERLAP_QUESTION: 1,
        Reason.OVERLAP_DOCUMENT: 1,
        Reason.DUPLICATE: 1,
        Reason.NEAR_DUPLICATE: 1,
        Reason.OVERLONG: 0,
    }
    assert manifest.removed_sha256 == file_sha256(tmp_path / "out" / "removed.jsonl")
    (indexed,) = manifest.evaluation_sets
    assert (indexed.dataset, indexed.num_queries, indexed.num_documents) == ("dev.jsonl", 1, 1)


def test_a_sample_is_drawn_by_its_seed(tmp_path: Path) -> None:
    drawn = []
    for place, seed in enumerate((0, 0, 1)):
        choices = CHOICES.model_copy(update={"sample": 10, "seed": seed})
        given = job(tmp_path / str(place), ("2wikimultihopqa", SLICES["2wikimultihopqa"]), choices=choices)
        assert run_job(given).num_rows == 10
        drawn.append((tmp_path / str(place) / "train.jsonl").read_text())
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_sample_of_more_rows_than_there_are_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, path = plain(tmp_path / "rows.jsonl", *(row(str(i), f"Who is {i}?", f"{i} came.") for i in range(4)))
    command = ("prepare", "jsonl", "--input", path, "--input", path, "--near-duplicates", 0)
    assert march(*command, "--sample", 5, "--limit", 3, "--out", tmp_path / "out") == 0
    assert "\nonly 6 rows could be drawn, of 10 that --sample asks for\n" in capsys.readouterr().out
    assert march(*command, "--sample", 3, "--out", tmp_path / "out") == 0
    assert "--sample" not in capsys.readouterr().out


def test_noise_is_said_to_have_no_effect_without_bioasq(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, path = plain(tmp_path / "rows.jsonl", row("0", "Who?", "Ann came."))
    assert march("prepare", "jsonl", "--input", path, "--noise", 0.5, "--out", tmp_path / "out") == 0
    assert "march: --noise has no effect without bioasq\n" in capsys.readouterr().err


def test_a_share_of_rows_loses_the_documents_that_answer(tmp_path: Path) -> None:
    inputs = [("hotpotqa", SLICES["hotpotqa"]), ("musique", SLICES["musique"])]
    rows: dict[float, dict[str, RagQuery]] = {}
    for share in (0.0, 0.5, 1.0):
        manifest = run_job(job(tmp_path / str(share), *inputs, choices=Choices(unanswerable=share)))
        lines = [json.loads(line) for line in (tmp_path / str(share) / "train.jsonl").open()]
        queries = [RagQuery.model_validate_json(line["label"]) for line in lines]
        rows[share] = {query.id: query for query in queries}
        num = sum(query.unanswerable for query in queries)
        assert num == sum(one.num_unanswerable for one in manifest.statistics)
        assert share in (0.5, num / len(queries)) and (share != 0.5 or 0 < num < len(queries))
    supporting = {
        f"{row['_id']}": row["supporting_facts"] for row in json.loads(SLICES["hotpotqa"].read_text())
    }
    for query_id, query in rows[1.0].items():
        whole = rows[0.0][query_id].documents
        assert 0 < len(query.documents) < len(whole) and set(query.documents) < set(whole)
        needed = {title for title, _ in supporting.get(query_id, [])}
        assert not needed & {document.title for document in query.documents}
    assert all(query in (rows[0.0][name], rows[1.0][name]) for name, query in rows[0.5].items())


def test_a_source_that_does_not_say_what_answers_cannot_lose_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--unanswerable: 0.1 with ragtruth, .*leave it out"):
        job(tmp_path, ("ragtruth", SLICES["ragtruth"]), choices=Choices(unanswerable=0.1))


def test_your_own_rows_may_say_that_nothing_answers_them(tmp_path: Path) -> None:
    rows = [
        row("a", "How many came?", "50 came."),
        row("b", "Who came?", "50 came.") | {"unanswerable": True},
    ]
    manifest = run_job(job(tmp_path / "out", plain(tmp_path / "rows.jsonl", *rows)))
    written = [json.loads(json.loads(line)["label"]) for line in (tmp_path / "out" / "train.jsonl").open()]
    assert [query.get("unanswerable", False) for query in written] == [False, True]
    assert manifest.statistics[0].num_unanswerable == 1


def test_a_licence_that_is_not_clear_must_be_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("prepare", "bioasq", "--input", write_bioasq(tmp_path), "--out", tmp_path / "out")
    assert "read its terms, and if they allow your use add --accept-licence bioasq" in refused(
        capsys, *command
    )
    assert march(*command, "--accept-licence", "bioasq") == 0
    manifest = read_manifest(tmp_path / "out")
    assert manifest is not None and manifest.choices.accepted_licences == ("bioasq",)


def test_the_command_takes_several_datasets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["prepare", "2wikimultihopqa", "musique", "--out", tmp_path, "--exclude-overlap", TWOWIKI_DEV]
    for name in ("2wikimultihopqa", "musique"):
        command += ["--input", SLICES[name]]
    assert march(*command) == 0
    shown = capsys.readouterr().out
    assert "25 of 32 rows in" in shown and "left out: 7 overlap_document" in shown
    assert "--max-shared-documents lets common ones pass" in shown
    assert "data_card.md" in contents(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("squad", "--input", "a"), "DATASET: 'squad' is none that is known; give one of bioasq, "),
        (("musique",), "--input: give files with --input, or addresses with --url, or --download"),
        (("musique", "--input", "a", "--download"), "--download; one of these"),
        (("musique", "tatqa", "--input", "a"), "--input: 1 for 2 datasets; give one each, in the same order"),
        (("jsonl", "--download"), "Plain JSONL cannot be fetched: it is your own file; give --input"),
        (("musique", "--input", "no.jsonl"), "no.jsonl: no such file; fix the path"),
        (("musique", "--input", "{in}", "--exclude-overlap", "no"), "no: no such file; fix the path"),
        (
            ("musique", "--input", "{in}", "--exclude-overlap", "{in}", "--near-duplicates", "0"),
            "--exclude-overlap: needs --near-duplicates above 0; 1 compares words exactly",
        ),
        (("musique", "--input", "{in}", "--max-prompt-tokens", "9"), "give both or neither"),
        (("tatqa", "--input", "{in}"), "musique_ans.jsonl:1: table: missing; add it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_user_can_fix_is_one_line(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = (argument.replace("{in}", str(SLICES["musique"])) for argument in arguments)
    assert says in refused(capsys, "prepare", *given, "--out", "o")


def test_a_file_cut_short_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(SLICES["musique"].read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"rows\.jsonl:8: not JSON"):
        run_job(job(tmp_path / "out", ("musique", path), num_workers=2))
    assert not (tmp_path / "out").exists()


def test_all_rows_in_an_evaluation_set_is_an_error_that_says_so(tmp_path: Path) -> None:
    given = job(tmp_path / "out", ("musique", SLICES["musique"]), evaluation_sets=(SLICES["musique"],))
    with pytest.raises(ValueError, match=r"none of 8 rows is left \(8 overlap question"):
        run_job(given)


def test_rows_without_documents_are_counted(tmp_path: Path) -> None:
    path = write_bioasq(tmp_path, 5)
    rows = json.loads(path.read_text())
    rows["questions"][2]["snippets"] = []
    path.write_text(json.dumps(rows))
    manifest = run_job(job(tmp_path / "out", ("bioasq", path)))
    assert (manifest.num_no_documents, manifest.num_rows) == (1, 4)
    assert [(one.id, one.reason) for one in removals(tmp_path / "out")] == [("g2", Reason.NO_DOCUMENTS)]


def test_your_own_rows_without_a_text_are_left_out(tmp_path: Path) -> None:
    rows = [row("a", "Who?"), row("b", "Who?", "", " \n"), row("c", "Who?", "", "Ann came.")]
    manifest = run_job(job(tmp_path / "out", plain(tmp_path / "rows.jsonl", *rows)))
    assert (manifest.num_no_documents, manifest.num_rows) == (2, 1)
    assert [one.id for one in removals(tmp_path / "out")] == ["a", "b"]


def test_several_bad_rows_are_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = [{"id": "d", "text": "x"}] * 2
    bad = [
        {"id": "1", "documents": ["x"]},
        row("2", "Who?") | {"documents": "x"},
        row("3", "Who?") | {"documents": [5]},
        row("4", "Who?") | {"documents": twice},
        *(row(str(i), "") for i in range(5, 12)),
    ]
    _, path = plain(tmp_path / "rows.jsonl", *bad, row("good", "Who?", "Ann came."))
    error = refused(capsys, "prepare", "jsonl", "--input", path, "--out", tmp_path / "new" / "out")
    for number, says in enumerate(
        (
            "query: missing; add it; ",
            "documents: is no list (found 'x'); fix the row or remove it; ",
            "documents.0: is neither a text nor an object with id and text (found 5); ",
            "row '4': documents: id 'd' is used twice",
            "query: String should have at least 1 character",
        ),
        start=1,
    ):
        assert f"{path}:{number}: {says}" in error
    assert error.endswith("; bad rows beside these: 6\n") and error.count("rows.jsonl:") == 5
    assert not (tmp_path / "new").exists()


def test_what_a_failed_preparation_finds_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match="query: missing"):
        run_job(job(tmp_path / "out", plain(tmp_path / "rows.jsonl", {"id": "1", "documents": ["x"]})))
    assert contents(tmp_path / "out") == {}


def test_a_folder_whose_card_cannot_be_written_has_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "out" / "data_card.md").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match=r"data_card\.md"):
        run_job(job(tmp_path / "out", plain(tmp_path / "rows.jsonl", row("0", "Who?", "Ann came."))))
    assert read_manifest(tmp_path / "out") is None


@pytest.mark.parametrize(
    ("wrong", "right"), [("unanswerabel", "unanswerable"), ("anwsers", "answers"), ("querry", "query")]
)
def test_a_misspelt_key_is_named_with_the_right_one(wrong: str, right: str, tmp_path: Path) -> None:
    misspelt = {"id": "1", "query": "Who?", "documents": ["x"], "unanswerable": True, "answers": []}
    misspelt[wrong] = misspelt.pop(right)
    given = job(tmp_path / "out", plain(tmp_path / "rows.jsonl", row("0", "Who?", "Ann came."), misspelt))
    with pytest.raises(ValueError, match=rf"rows\.jsonl:2: {wrong}: is no key of a row, but {right} is; fix"):
        run_job(given)


def test_a_key_that_is_there_twice_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "1", "query": "Who?", "documents": ["Ann came."], "query": "Why?"}\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl:1: query: is given twice; keep one of the two"):
        run_job(job(tmp_path / "out", ("jsonl", file)))


@pytest.mark.parametrize("name", ["rows.csv", "rows.TSV"])
def test_a_table_is_no_file_of_your_own_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text('id,query,documents\n1,Who?,"[""Ann came.""]"\n')
    with pytest.raises(
        ValueError, match=rf"{name}: is a table, of which `march audit` alone reads rows; write"
    ):
        run_job(job(tmp_path / "out", ("jsonl", path)))
    with pytest.raises(ValueError, match=rf"{name}: is a table"):
        list(make_benchmark("jsonl_audit").items(path))


def test_keys_that_are_not_used_are_counted_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row("a", "Who?", "Ann came.") | {"topic": "x", "uid": "like id, which is there"},
        row("b", "Who?") | {"topic": "x", "so|urce\n\x1b": 1},
    ]
    _, path = plain(tmp_path / "rows.jsonl", *rows)
    assert march("prepare", "jsonl", "--input", path, "--out", tmp_path / "out") == 0
    assert "\n3 keys of rows are not used: so|urce \ufffd, topic, uid\n" in capsys.readouterr().out
    card = (tmp_path / "out" / "data_card.md").read_text()
    assert "| Plain JSONL | topic | 2 |\n| Plain JSONL | uid | 1 |" in card
    assert "| Plain JSONL | so\\|urce \ufffd | 1 |" in card


def test_one_id_of_two_queries_is_named_with_its_lines(tmp_path: Path) -> None:
    inputs = [
        plain(tmp_path / f"{name}.jsonl", row("0", "Why?", "So."), row("1", name, "Ann came."))
        for name in "ab"
    ]
    with pytest.raises(ValueError, match=r"a\.jsonl:2, .*b\.jsonl:2: id: '1' belongs to two "):
        run_job(job(tmp_path / "out", *inputs))


def test_only_what_was_taken_away_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, path = plain(tmp_path / "rows.jsonl", row("a", "Who?", "50 came.") | {"unanswerable": True})
    assert march("prepare", "jsonl", "--input", path, "--out", tmp_path / "1") == 0
    assert "\n1 of them are known to be unanswerable\n" in capsys.readouterr().out
    command = ("prepare", "musique", "--input", SLICES["musique"], "--unanswerable", "1")
    assert march(*command, "--out", tmp_path / "2") == 0
    assert "8 of them are known to be unanswerable: what answers was taken away\n" in capsys.readouterr().out


def test_a_missing_library_is_named_with_its_extra() -> None:
    said = user_error(ModuleNotFoundError("No module named 'rensa'", name="rensa"))
    assert said == "rensa is not installed; pip install '.[data]', or add --near-duplicates 0"


def test_an_older_manifest_is_still_read() -> None:
    old = {"source": "2wikimultihopqa", "num_read": 3, "num_duplicates": 1, "num_overlong": 0, "num_rows": 2}
    manifest = Manifest.model_validate(old | {"prompt_digest": "a", "rows_sha256": "b"})
    assert (manifest.num_rows, manifest.statistics, manifest.num_near_duplicates) == (2, (), 0)
    assert "2 rows of 3 read" in render_card(manifest)


@pytest.mark.slow
def test_processes_count_tokens_as_one_does(tmp_path: Path) -> None:
    made = []
    for num_workers in (0, 2):
        out = tmp_path / str(num_workers)
        inputs = (("2wikimultihopqa", SLICES["2wikimultihopqa"]), ("musique", SLICES["musique"]))
        options = {"tokenizer_path": str(TINY_POLICY), "max_prompt_tokens": 3500, "num_workers": num_workers}
        manifest = run_job(job(out, *inputs, **options))
        made.append(contents(out))
    assert made[0] == made[1]
    assert manifest.num_overlong and manifest.longest_prompt_tokens
    assert manifest.longest_prompt_tokens <= 3500
    tokens = [one.num_prompt_tokens for one in removals(out)]
    assert all(num is not None and num > 3500 for num in tokens)


@pytest.fixture
def prepared(tmp_path: Path) -> Manifest:
    return run_job(job(tmp_path / "out", *everything(tmp_path), evaluation_sets=(TWOWIKI_DEV,)))


def test_the_card_shows_the_papers_figures_beside_ours(prepared: Manifest) -> None:
    card = render_card(prepared)
    for figure in (
        "4,721",
        "8.62",
        "9.03 (1 to 157)",
        "1,314.86",
        "30.1%",
        "11,221.72",
        "24.4%",
        "CC-BY-SA-4.0",
    ):
        assert figure in card
    assert card.count("| paper, ") == 3


def test_a_source_of_which_nothing_is_left_has_figures(tmp_path: Path) -> None:
    inputs = [(name, SLICES[name]) for name in ("musique", "tatqa")]
    manifest = run_job(job(tmp_path / "out", *inputs, evaluation_sets=(SLICES["musique"],)))
    assert [found.num_rows for found in manifest.statistics] == [0, 24]
    assert "| MuSiQue | 0 | 0.00 |" in render_card(manifest)
