"""The rows of a run: those that a recipe cannot take are refused before anything starts."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from pipeline.data.prepare import Manifest, read_manifest
from pipeline.data.tokenizer_digest import tokenizer_sha256
from pipeline.rows import planned_rows, rows_manifest
from pipeline.settings.recipe import TINY_POLICY, load_recipe
from reward.roles.prompts import load_prompts
from tests.march_cli import DATA, march

LORA, LLAMA = "llama31_8b_stem_lora_1gpu", "meta-llama/Llama-3.1-8B-Instruct"
LIMIT = 6144
FULL = load_prompts("full").digest
COUNTED = {"tokenizer": LLAMA, "max_prompt_tokens": LIMIT, "longest_prompt_tokens": 5000}
TWOWIKI = DATA / "2wikimultihopqa" / "train.json"


def rows(folder: Path, **changes: object) -> list[str]:
    """Options that put 320 rows in place of the recipe's own, of which only the manifest is written."""
    made = {"source": "x", "num_read": 320, "num_duplicates": 0, "num_overlong": 0, "num_rows": 320}
    manifest = Manifest.model_validate(
        {**made, "prompt_digest": FULL, "rows_sha256": "", **COUNTED, **changes}
    )
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    return ["--set", f"data.path={folder}"]


def tokenizer(folder: Path, *, template: str = "{{ messages }}", words: int = 3) -> Path:
    """The files of a tokenizer."""
    folder.mkdir(parents=True)
    vocabulary = {f"word{place}": place for place in range(words)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    return folder


def in_the_cache(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tokenizer of the hub as a download leaves it; returns its folder."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    folder = cache / f"models--{name.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    return tokenizer(folder / "snapshots" / "abc")


FIX = f"`march prepare DATASET --input FILE --tokenizer {LLAMA} --max-prompt-tokens 6144 --out rows`"
REFUSED = {
    "too long": (
        {"longest_prompt_tokens": LIMIT + 1},
        "longest_prompt_tokens 6145 exceeds rollout.max_prompt_tokens 6144",
    ),
    "not counted": (
        {"tokenizer": None, "max_prompt_tokens": None, "longest_prompt_tokens": None},
        "tokenizer is null: no prompt was counted, and one above rollout.max_prompt_tokens 6144 would end "
        "the run",
    ),
    "another tokenizer": (
        {"tokenizer": "Qwen/Qwen3-8B"},
        "tokenizer 'Qwen/Qwen3-8B' has another name (it cannot be compared by content here) than model "
        f"'{LLAMA}'",
    ),
    "other prompts": (
        {"prompt_digest": "0123456789abcdef"},
        "prompts 0123456789ab are not those of audit.prompts 'full'",
    ),
}


@pytest.mark.parametrize(("changes", "said"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["train", LORA, "--run-dir", "run"], 2),
        (["train", LORA, "--dry-run"], 2),
        (["doctor", "--json", "--only", "recipe", "--recipe", LORA], 1),
    ],
    ids=["train", "dry run", "doctor"],
)
def test_rows_that_may_be_too_long_are_refused_before_a_rollout(
    command: list[str],
    code: int,
    changes: dict[str, object],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    assert march(*command, *rows(Path("rows"), **changes)) == code
    shown = capsys.readouterr()
    assert f"rows/manifest.json: {said}; prepare the rows again: {FIX}" in shown.out + shown.err
    if command[0] == "train":
        assert shown.err.count("\n") == 1
    assert not (tmp_path / "run" / "run.json").exists()


def test_the_limit_counts_where_the_longest_prompt_is_not_known(tmp_path: Path) -> None:
    said = rows(tmp_path, longest_prompt_tokens=None, max_prompt_tokens=LIMIT + 1)
    with pytest.raises(ValueError, match=r"max_prompt_tokens 6145 exceeds rollout\.max_prompt_tokens 6144"):
        planned_rows(load_recipe(LORA, said[1:]))
    assert planned_rows(load_recipe(LORA, rows(tmp_path, longest_prompt_tokens=None)[1:])) == 320


@pytest.mark.parametrize("changes", [{"longest_prompt_tokens": LIMIT}, {"max_prompt_tokens": 24567}])
def test_rows_that_fit_are_taken(changes: dict[str, object], tmp_path: Path) -> None:
    assert planned_rows(load_recipe(LORA, rows(tmp_path, **changes)[1:])) == 320


def taken(folder: Path, *, model: object, counted_by: object, digest: str | None = None) -> bool:
    """Whether a recipe with this model takes rows that this tokenizer counted."""
    given = rows(folder, tokenizer=str(counted_by), tokenizer_sha256=digest)[1:]
    try:
        return planned_rows(load_recipe(LORA, [*given, f"model={model}"])) == 320
    except ValueError as error:
        assert "model" in str(error)
        return False


def test_a_tokenizer_is_known_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    one, copy = tokenizer(tmp_path / "one"), tokenizer(tmp_path / "copy")
    other = tokenizer(tmp_path / "more-words", words=4)
    chats = tokenizer(tmp_path / "another-template", template="{{ messages }}!")
    digest = tokenizer_sha256(str(one))
    assert taken(tmp_path, model=copy, counted_by=one)  # rows of a version that wrote no digest
    assert taken(tmp_path, model=copy, counted_by="/gone/since", digest=digest)
    assert taken(tmp_path, model=copy, counted_by="Qwen/Qwen3-8B", digest=digest)
    for model in (other, chats):
        assert not taken(tmp_path, model=model, counted_by=one)
        assert not taken(tmp_path, model=model, counted_by=model, digest=digest)  # changed since


def test_a_hubs_tokenizer_in_the_cache_is_compared_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = in_the_cache("shop/solver", tmp_path / "cache", monkeypatch)
    same, other = tokenizer(tmp_path / "same"), tokenizer(tmp_path / "solver", words=4)
    assert tokenizer_sha256("shop/solver") == tokenizer_sha256(str(folder)) is not None
    assert taken(tmp_path, model="shop/solver", counted_by=same)
    assert taken(tmp_path, model=same, counted_by="shop/solver")
    assert not taken(tmp_path, model=other, counted_by="shop/solver")


@pytest.mark.parametrize(
    ("model", "counted_by", "is_taken"),
    [
        (LLAMA, LLAMA, True),
        ("/models/solver", "/models/solver", True),
        ("shop/solver", "other/solver", False),
        ("shop/solver", "/models/solver", False),
    ],
)
def test_what_is_not_here_is_compared_by_name(
    model: str, counted_by: str, is_taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    assert taken(tmp_path, model=model, counted_by=counted_by, digest="a" * 64) is is_taken


def test_a_tokenizer_that_was_saved_anew_is_the_same(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(TINY_POLICY)
    loaded.add_special_tokens({"additional_special_tokens": ["<|padding|>"]})  # as training code may
    loaded.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.json").read_bytes() != (TINY_POLICY / "tokenizer.json").read_bytes()
    assert tokenizer_sha256(str(tmp_path)) == tokenizer_sha256(str(TINY_POLICY)) is not None


def test_a_template_may_stand_in_the_configuration_or_beside_it(tmp_path: Path) -> None:
    old, new, named = (tokenizer(tmp_path / name) for name in ("old", "new", "named"))
    (new / "tokenizer_config.json").write_text("{}")
    (new / "chat_template.jinja").write_text("{{ messages }}")
    templates = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "{{ messages }}"}]
    (named / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    assert len({tokenizer_sha256(str(folder)) for folder in (old, new, named)}) == 1


@pytest.mark.parametrize("text", [None, "{", "{}", '{"model": {}}'])
def test_a_tokenizer_that_cannot_be_read_has_no_digest(text: str | None, tmp_path: Path) -> None:
    folder = tokenizer(tmp_path / "t")
    (folder / "tokenizer.json").unlink() if text is None else (folder / "tokenizer.json").write_text(text)
    assert tokenizer_sha256(str(folder)) is None
    assert tokenizer_sha256("/no/such/folder") is None and tokenizer_sha256("") is None


def test_the_command_that_is_told_makes_rows_that_are_taken(tmp_path: Path) -> None:
    """Real rows: refused uncounted, and taken after the preparation that the refusal tells."""
    out = tmp_path / "rows"
    recipe = load_recipe("2wikimultihopqa_tiny", [f"data.path={out}"])
    assert march("prepare", "2wikimultihopqa", "--input", TWOWIKI, "--out", out, "--prompts", "compact") == 0
    with pytest.raises(ValueError, match="tokenizer is null") as refused:
        rows_manifest(recipe)
    [command] = re.findall("`march (.*)`", str(refused.value))
    told = command.replace("DATASET", "2wikimultihopqa").replace("FILE", shlex.quote(str(TWOWIKI)))
    assert march(*shlex.split(told)) == 0
    manifest = rows_manifest(recipe)
    assert manifest is not None and manifest == read_manifest(out)
    assert (manifest.tokenizer, manifest.max_prompt_tokens) == (str(TINY_POLICY), 3000)
    assert manifest.tokenizer_sha256 == tokenizer_sha256(str(TINY_POLICY))
    moved = tmp_path / "trained"
    shutil.copytree(TINY_POLICY, moved)
    assert planned_rows(recipe.model_copy(update={"model": str(moved)})) == manifest.num_rows
