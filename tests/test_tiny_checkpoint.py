"""The shipped start of reinforcement is what its manifest says; and how such a folder is written."""

from pathlib import Path

import pytest
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

import pipeline.tiny
from pipeline.settings.worlds import PLAIN_WORLD, WorldSettings
from pipeline.tiny.manifest import MANIFEST, publish, read_manifest
from pipeline.tiny.tokenizer import build_tokenizer
from pipeline.tiny.truth import judge
from pipeline.tiny.words import KINDS
from pipeline.tiny.world import sample_worlds
from reward.roles.prompts import load_prompts

FOLDER = Path(pipeline.tiny.__file__).parent / "checkpoint"
KINDS_FOLDER = FOLDER.with_name("checkpoint_kinds")
KINDS_WORLD = WorldSettings(kinds=KINDS, unanswerable_share=0.2)
BOTH = pytest.mark.parametrize(("folder", "world"), [(FOLDER, PLAIN_WORLD), (KINDS_FOLDER, KINDS_WORLD)])


@pytest.fixture(scope="module")
def manifest():
    return read_manifest(FOLDER)


@BOTH
def test_the_folder_holds_what_the_manifest_says(folder, world):
    manifest = read_manifest(folder)
    assert {path.name for path in folder.iterdir()} == {*manifest.files, MANIFEST}
    assert "Errors were injected" in manifest.about
    assert [stage.name for stage in manifest.stages] == ["base", "errors"]
    assert all(stage.world == world for stage in manifest.stages)
    assert manifest.prompt_digest == load_prompts("compact").digest
    assert (folder / "model.safetensors").stat().st_size < 2_000_000
    with safe_open(folder / "model.safetensors", "pt") as weights:
        assert {str(weights.get_tensor(name).dtype) for name in weights.keys()} == {f"torch.{manifest.dtype}"}  # noqa: SIM118


def test_it_starts_where_reinforcement_can_be_seen(manifest):
    figures = manifest.figures
    assert figures["num_worlds"] == 500
    assert 0.55 <= figures["solver_faithful"] <= 0.68
    assert figures["solver_faithful_greedy"] > figures["solver_faithful"] + 0.1
    assert figures["proposer_exact"] >= 0.93
    assert figures["checker_accuracy"] >= 0.73


def test_the_start_with_kinds_errs_in_each_of_them():
    figures = read_manifest(KINDS_FOLDER).figures
    assert figures["num_worlds"] == 500
    assert 0.55 <= figures["solver_faithful"] <= 0.72
    assert figures["solver_faithful_greedy"] > figures["solver_faithful"] + 0.1
    assert figures["proposer_exact"] >= 0.93 and figures["checker_accuracy"] >= 0.73
    assert figures["solver_form"] >= 0.95 and figures["checker_form"] >= 0.97
    assert 0.4 <= figures["abstained_right"] <= 0.85 and figures["abstained_wrong"] <= 0.12
    assert set(figures["solver_by_kind"]) == set(KINDS)
    assert all(0.5 < right < 0.9 for right in figures["solver_by_kind"].values())
    assert set(figures["checker_by_kind"]) == {*KINDS, "unanswerable"}
    assert all(right > 0.65 for right in figures["checker_by_kind"].values())


@BOTH
def test_its_tokenizer_is_the_one_that_is_built(tmp_path, folder, world):
    shipped, built = AutoTokenizer.from_pretrained(folder), build_tokenizer(world)
    assert shipped.get_vocab() == built.get_vocab()
    assert shipped.chat_template == built.chat_template
    built.save_pretrained(tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_it_loads_and_answers(manifest):
    model, tokenizer = AutoModelForCausalLM.from_pretrained(FOLDER), AutoTokenizer.from_pretrained(FOLDER)
    assert model.num_parameters() == manifest.num_parameters
    assert model.config.vocab_size == len(tokenizer)
    worlds, prompts = sample_worlds(24, 123, "held_out"), load_prompts("compact")
    chats = [prompts.solver(one.query) for one in worlds]
    options = {"add_generation_prompt": True, "padding": True, "return_tensors": "pt", "return_dict": True}
    inputs = tokenizer.apply_chat_template(chats, **options)
    written = model.generate(**inputs, max_new_tokens=64, do_sample=False)[:, inputs["input_ids"].shape[1] :]
    answers = tokenizer.batch_decode(written, skip_special_tokens=True)
    judged = [judge(one.query, answer) for one, answer in zip(worlds, answers, strict=True)]
    assert sum(one.faithful for one in judged) > 12 and all(one.values for one in judged)


def test_a_changed_file_is_refused(tmp_path, manifest):
    (tmp_path / "weights").write_text("1")
    publish(tmp_path, manifest)
    publish(tmp_path, manifest)
    assert list(read_manifest(tmp_path).files) == ["weights"]
    (tmp_path / "weights").write_text("2")
    with pytest.raises(ValueError, match=r"weights: missing or changed"):
        read_manifest(tmp_path)
    (tmp_path / "weights").unlink()
    with pytest.raises(ValueError, match=r"weights: missing or changed"):
        read_manifest(tmp_path)
