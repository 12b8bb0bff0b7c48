"""The token edge of the engine samplers: prompts to ids, engine outputs to records."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reward.config import LocalSamplerConfig
from reward.samplers import Message, SamplerError
from reward.samplers.make import make_sampler
from reward.samplers.token_ids import completion_budget, load_tokenizer, prompt_token_ids, sample_group
from reward.types import SampleGroup

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
WORDS = ["<pad>", "<end>", "<user>", "<assistant>", "how", "many", "466", "euros"]
PAD, END, USER, ASSISTANT, HOW, MANY, NUMBER, EUROS = range(len(WORDS))
MESSAGES = [Message(role="user", content="how many euros")]
PROMPT = (USER, HOW, MANY, EUROS, END, ASSISTANT)


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.add_special_tokens(WORDS[:4])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(folder)
    return folder


def completion(token_ids: list[int], finish_reason: str = "stop") -> Any:
    logprobs = [{token: SimpleNamespace(logprob=-0.5 * token)} for token in token_ids]
    return SimpleNamespace(token_ids=token_ids, finish_reason=finish_reason, logprobs=logprobs)


def group_of(folder: Path, completions: list[Any], *, n: int, num_asked: int) -> SampleGroup:
    output = SimpleNamespace(prompt_token_ids=list(PROMPT), outputs=completions, num_cached_tokens=4)
    return sample_group(
        output,
        load_tokenizer(str(folder), field="x"),
        n=n,
        params=SimpleNamespace(n=num_asked),
        weights_version=7,
    )


def test_a_prompt_is_the_rendered_chat_and_nothing_more(tokenizer_folder: Path) -> None:
    tokenizer = load_tokenizer(str(tokenizer_folder), field="sampler.tokenizer")
    assert tuple(prompt_token_ids(tokenizer, MESSAGES)) == PROMPT


def test_token_ids_keep_the_end_token_and_the_text_does_not(tokenizer_folder: Path) -> None:
    completions = [completion([NUMBER, EUROS, END]), completion([NUMBER, EUROS], "length")]
    group = group_of(tokenizer_folder, completions, n=2, num_asked=2)
    stopped, cut = group.samples
    assert (stopped.token_ids, stopped.text, stopped.finish_reason) == (
        (NUMBER, EUROS, END),
        "466 euros",
        "stop",
    )
    assert (cut.token_ids, cut.text, cut.finish_reason) == ((NUMBER, EUROS), "466 euros", "length")
    assert stopped.logprobs == (-3.0, -3.5, -0.5)
    assert group.prompt_token_ids == PROMPT and group.weights_version == 7
    assert (group.use.num_prompt, group.use.num_cached) == (len(PROMPT), 4)


def test_one_greedy_completion_stands_for_all(tokenizer_folder: Path) -> None:
    group = group_of(tokenizer_folder, [completion([NUMBER, END])], n=3, num_asked=1)
    assert [s.text for s in group.samples] == ["466"] * 3


@pytest.mark.parametrize(
    ("completions", "reason"),
    [
        ([], "bad_response"),
        ([completion([NUMBER, END])], "bad_response"),  # one of two is not repeated
        ([completion([NUMBER, END]), completion([])], "engine"),
        ([completion([NUMBER, END]), completion([NUMBER], "abort")], "engine"),
    ],
)
def test_a_bad_output_is_a_failure(tokenizer_folder: Path, completions: list[Any], reason: str) -> None:
    with pytest.raises(SamplerError) as caught:
        group_of(tokenizer_folder, completions, n=2, num_asked=2)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("num_prompt", "max_tokens", "expected"),
    [
        (10, 32, 32),
        (68, 32, 32),
        (69, 32, 31),
        (84, 32, 16),
        (85, 32, None),
        (96, 4, 4),
        (97, 4, None),
        (120, 4, None),
    ],
)
def test_a_completion_gets_what_the_prompt_leaves_or_the_prompt_is_refused(
    num_prompt: int, max_tokens: int, expected: int | None
) -> None:
    if expected is not None:
        assert completion_budget(num_prompt, max_tokens=max_tokens, max_model_len=100) == expected
        return
    with pytest.raises(SamplerError, match="max_model_len 100") as caught:
        completion_budget(num_prompt, max_tokens=max_tokens, max_model_len=100)
    assert caught.value.reason == "prompt_too_long"


def test_a_missing_model_or_template_is_one_clear_line(tokenizer_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sampler\.model: '/no/such' is not a folder"):
        make_sampler(LocalSamplerConfig(model="/no/such"))
    with pytest.raises(ValueError, match=r"tokenizer: 'nope' is not a folder; .* model's name, OWNER/NAME"):
        load_tokenizer("nope", field="tokenizer")
    for file in tokenizer_folder.iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="has no chat template"):
        load_tokenizer(str(tmp_path), field="sampler.tokenizer")
