"""Supervised training of the tiny policy: what is learned from, repeatability, the structured start."""

import shlex
from dataclasses import replace

import pytest
import torch

from pipeline.tiny.initialisation import new_model
from pipeline.tiny.manifest import read_manifest
from pipeline.tiny.recipe import BASE, ERRORS
from pipeline.tiny.supervised import main, parse_arguments, stages_of
from pipeline.tiny.tokenizer import build_tokenizer
from pipeline.tiny.training import batches, collate, completion_loss, make_optimisers, rate_factor, train
from reward.roles.prompts import load_prompts

TOKENIZER, PROMPTS = build_tokenizer(), load_prompts("compact")
SHORT = replace(BASE, num_steps=6, batch_size=4)


def start(seed=0):
    return new_model(len(TOKENIZER), pad_token_id=0, eos_token_id=4, seed=seed)


def test_batches_teach_completions_and_their_end():
    found = list(batches(TOKENIZER, PROMPTS, SHORT))
    assert len(found) == 6
    for batch in found:
        assert batch.ids.shape == batch.is_completion.shape and batch.ids.shape[0] == 4
        for ids, learned in zip(batch.ids, batch.is_completion, strict=True):
            prompt, completion = ids[: learned.nonzero()[0]], ids[learned]
            assert TOKENIZER.decode(prompt, skip_special_tokens=False).endswith("<|assistant|>")
            assert completion[-1] == TOKENIZER.eos_token_id and (completion == 0).sum() == 0


def test_loss_is_that_of_all_logits():
    model, batch = start(), next(iter(batches(TOKENIZER, PROMPTS, SHORT)))
    labels = batch.ids.masked_fill(~batch.is_completion, -100)
    expected = model(input_ids=batch.ids, labels=labels).loss
    torch.testing.assert_close(completion_loss(model, batch), expected)


def test_padding_does_not_change_the_loss():
    pairs = [([1, 2, 3], [9, 8, 4]), ([1, 2], [7, 4])]
    model = start()
    together = completion_loss(model, collate(pairs, 0))
    apart = [completion_loss(model, collate([pair], 0)) * len(pair[1]) for pair in pairs]
    torch.testing.assert_close(together, sum(apart) / 5)


@pytest.mark.parametrize(
    ("stage", "step", "factor"),
    [
        (BASE, 3, 0.1),
        (BASE, 30, 1.0),
        (BASE, 500, 1.0),
        (BASE, 720, 0.5),
        (BASE, 900, 0.05),
        (ERRORS, 80, 0.5),
    ],
)
def test_rate_factor(stage, step, factor):
    assert rate_factor(step, stage) == pytest.approx(factor)


@pytest.mark.parametrize("stage", [BASE, ERRORS])
def test_every_weight_is_trained_once(stage):
    model = start()
    held = [id(p) for one in make_optimisers(model, stage) for g in one.param_groups for p in g["params"]]
    assert sorted(held) == sorted(id(weight) for weight in model.parameters())


def test_the_start_and_the_training_are_repeatable():
    first, second = start(), start()
    train(first, TOKENIZER, PROMPTS, SHORT)
    train(second, TOKENIZER, PROMPTS, SHORT)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(start(1).lm_head.weight, start(2).lm_head.weight)


def test_the_structured_start_matches_repeated_words():
    """At the end of a repeated phrase, layer 1 attends to the end of its first occurrence."""
    model = start()
    model.set_attn_implementation("eager")
    phrase = TOKENIZER.encode(" July picnic in Kabul raised", add_special_tokens=False)
    filler = TOKENIZER.encode(" Oslo drew tickets in May", add_special_tokens=False)
    ids = torch.tensor([[*filler, *phrase, 77, *filler, *phrase]])
    attention = model(input_ids=ids, output_attentions=True).attentions[1][0].mean(0)[-1]  # (T,)
    first_end = len(filler) + len(phrase) - 1
    assert int(attention[: -len(phrase)].argmax()) in (first_end, first_end + 1)


def test_defaults_of_the_command_are_the_recipe():
    assert stages_of(parse_arguments(["--out", "x"])) == (BASE, ERRORS)
    changed = stages_of(
        parse_arguments(
            shlex.split("--out x --seed 3 --p-late 0.5 --mix 1 2 3 --base-mix 3 2 1 --error-lr 0.1")
        )
    )
    assert changed[0] == replace(BASE, seed=3, mix=(3.0, 2.0, 1.0))
    assert changed[1].mix == (1.0, 2.0, 3.0) and changed[1].errors.p_late == 0.5 and changed[1].lr == 0.1


def test_a_start_without_an_error_stage_has_only_its_own_errors(tmp_path):
    main(["--out", str(tmp_path / "start"), "--steps", "1", "--error-steps", "0"])
    manifest = read_manifest(tmp_path / "start")
    assert [stage.name for stage in manifest.stages] == ["base"]
    assert manifest.about.startswith("No errors were injected")
