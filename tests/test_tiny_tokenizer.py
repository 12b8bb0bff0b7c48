"""The tiny tokenizer: lossless for any text, one token a digit, one a word of the world."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.tiny.tokenizer import END, PHRASES, SPECIAL_TOKENS, build_tokenizer
from pipeline.tiny.words import CITIES, EVENTS, MONTHS, UNITS
from pipeline.tiny.world import sample_worlds
from reward.roles.prompts import load_prompts

TOKENIZER = build_tokenizer()
_FRAGMENTS = st.one_of(
    st.text(), st.sampled_from([*SPECIAL_TOKENS, *PHRASES, " a)", "- ", "\n", "  ", " 07", "Kabul"])
)


def encode(text):
    return TOKENIZER.encode(text, add_special_tokens=False)


@settings(max_examples=400)
@given(st.lists(_FRAGMENTS, max_size=6).map("".join))
def test_round_trip_is_lossless(text):
    assert TOKENIZER.decode(encode(text), skip_special_tokens=False) == text


@given(st.text(alphabet="0123456789", min_size=1, max_size=30))
def test_one_token_a_digit(digits):
    assert [TOKENIZER.decode([i]) for i in encode(digits)] == list(digits)
    assert len(encode(f"raised {digits} euros")) - len(encode("raised  euros")) == len(digits)


@pytest.mark.parametrize("word", [*MONTHS, *EVENTS, *CITIES, *UNITS, *UNITS.values(), "in", "how", "many"])
def test_one_token_a_word(word):
    assert len(encode(f" {word}")) == 1


def test_size_and_special_ids():
    assert 400 < len(TOKENIZER) < 448
    assert TOKENIZER.convert_tokens_to_ids(list(SPECIAL_TOKENS)) == [0, 1, 2, 3, 4]
    assert (TOKENIZER.pad_token_id, TOKENIZER.eos_token_id, TOKENIZER.padding_side) == (0, 4, "left")


def test_chat_template_frames_each_turn():
    messages = load_prompts("compact").proposer("a) Nothing.")
    text = TOKENIZER.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "<|system|>proposer<|end|><|user|>a) Nothing.<|end|><|assistant|>"
    ids = TOKENIZER.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text
    closed = TOKENIZER.apply_chat_template([*messages, {"role": "assistant", "content": "x"}], tokenize=False)
    assert closed == f"{text}x{END}"


def test_prompts_stay_short():
    prompts = load_prompts("compact")
    lengths = [
        len(
            TOKENIZER.apply_chat_template(
                prompts.solver(world.query), add_generation_prompt=True, return_dict=False
            )
        )
        for world in sample_worlds(200, 0, "train")
    ]
    assert max(lengths) < 256
