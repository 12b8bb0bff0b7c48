"""Credit by token: which tokens bear a refuted turn's penalty, and advantages against float64 formulas.

The right side of the identity tests knows no tensors of ours: texts, the sentences that are wrong in them,
rewards of a group, and the definition of docs/presets.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pipeline.settings.ppo import PpoSettings
from pipeline.settings.recipe import load_recipe
from reward.types import Claim, ClaimState, ClaimVerdict, Outcome, Role, Span, Trajectory, Verdict
from tests.experience_rows import (
    Experience,
    Maker,
    answer,
    byte_tokens,
    decode_bytes,
    rows_of,
    trained,
)

from pipeline.training.advantages import spared  # isort: skip  # after cpu.install()
from pipeline.training.credit import refuted_answers, token_credit, tokens_of  # isort: skip

Array = NDArray[np.float64]
KL = 0.05
PPO = {"estimator": "rloo", "gamma": 1.0, "kl_coef": KL}
BY_CLAIM = PpoSettings.model_validate(PPO | {"solver_credit": "claim"})
BY_ANSWER = PpoSettings.model_validate(PPO)


def policy(tokens: torch.Tensor) -> torch.Tensor:
    return torch.sin(tokens[:, 1:].double() * 1.7 + tokens[:, :-1].double() * 0.3).float()


def reference(tokens: torch.Tensor) -> torch.Tensor:
    return torch.sin(tokens[:, 1:].double() * 1.3 + tokens[:, :-1].double() * 0.2).float()


def maker(ppo: PpoSettings, *, samples: int) -> Maker:
    return Maker(ppo, samples=samples, policy=policy, reference=reference, critic=None)


def claim(text: str, words: str, state: ClaimState = ClaimState.CONTRADICTED, **changes: Any) -> ClaimVerdict:
    """A claim about the first place of these words."""
    start = text.index(words)
    span = Span(start=start, end=start + len(words))
    asked = Claim(index=1, question="How much?", answer=words, span=span)
    return ClaimVerdict(claim=asked.model_copy(update=changes), state=state)


def refuted(text: str, *wrong: str, reward: float = -1.0, **changes: Any) -> Verdict:
    return Verdict(
        id="q",
        outcome=Outcome.REFUTED,
        reward=reward,
        reason="contradicted",
        claims=tuple(claim(text, words) for words in wrong),
    ).model_copy(update=changes)


def said(text: str, *wrong: str, **options: Any) -> Experience:
    """An answer, refuted by the claims about these words, or supported."""
    verdict = refuted(text, *wrong) if wrong else None
    return answer(-1.0 if wrong else 0.0, text=text, verdict=verdict, checker=None, **options)


# The tokens of a span.

TEXTS = [
    "The picnic raised 466 euros.",
    "naïve café, 10 € • 東京 2025年",
    "👩‍👩‍👧 came: 3 🎉 and 七",
    "\u00e9e\u0301",
]


READABLE = st.characters(codec="utf-8", exclude_characters="\ufffd")


def byte_level() -> Tokenizer:
    """A BPE over bytes, as of Llama 3, Qwen and GPT."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    return tokenizer


def byte_fallback() -> Tokenizer:
    """Words, and bytes where there is none, as of Llama 2: each loose byte is a replacement character."""
    words = ["<|end|>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *"The picnraised46▁"]
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


BYTE_LEVEL, BYTE_FALLBACK = byte_level(), byte_fallback()
PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that GPT-2 writes as they are
HIDDEN = [byte for byte in range(256) if byte not in PRINTED]
BYTES_OF = {chr(byte): byte for byte in PRINTED} | {chr(256 + n): byte for n, byte in enumerate(HIDDEN)}


def bytes_of(tokenizer: Tokenizer, token: str) -> bytes:
    if tokenizer is BYTE_LEVEL:
        return bytes(BYTES_OF[letter] for letter in token)
    return bytes([int(token[3:5], 16)]) if token.startswith("<0x") else token.replace("▁", " ").encode()


@settings(max_examples=150, deadline=None)
@given(data=st.data(), text=st.one_of(st.sampled_from(TEXTS), st.text(READABLE, max_size=12)))
@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, BYTE_FALLBACK], ids=["byte_level", "byte_fallback"])
def test_every_token_of_a_span_and_no_other_is_hit(tokenizer: Tokenizer, data: Any, text: str) -> None:
    """Of any tokenisation of a text, also one that cuts characters and that no tokenizer would choose."""
    written = text.encode()
    words = {
        name: bytes_of(tokenizer, name) for name in tokenizer.get_vocab() if name not in ("<|end|>", "<unk>")
    }
    token_ids, ends = [], []
    while sum(map(len, ends)) < len(written):
        left = written[sum(map(len, ends)) :]
        name = data.draw(
            st.sampled_from(sorted(name for name, word in words.items() if left.startswith(word)))
        )
        token_ids.append(tokenizer.token_to_id(name))
        ends.append(words[name])
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))

    first, last = len(text[:start].encode()), len(text[:end].encode())
    places = np.cumsum([0, *map(len, ends)])
    hit = {n for n in range(len(ends)) if start < end and places[n] < last and places[n + 1] > first}
    token_ids.append(tokenizer.token_to_id("<|end|>"))
    decode = tokenizer.decode  # drops special tokens
    assert decode(token_ids) == text
    assert tokens_of([Span(start=start, end=end)], token_ids, text=text, decode=decode) == hit


@pytest.mark.parametrize(
    ("text", "wrong", "spared_parts"),
    [
        ("It is 5. Then 6 came. I like it.", ["6"], ["It is 5. ", " I like it."]),
        ("It is 5. Then 6 came.\nThe 7 left", ["5", "7"], [" Then 6 came.\n"]),
        ("Café: 5 €. Ende: 6 €!\n\nUnd 七。そう 8。", ["6", "8"], ["Café: 5 €. ", "\n\nUnd 七。"]),
        ("<think>It is 5.</think>\n\nSix. It is 7.", ["7"], ["\n\nSix. "]),
        ("1. It is 5.\n2. Then 6 came.\n3. And all", ["5", "6"], ["\n3. And all"]),
    ],
)
def test_the_sentences_of_refuted_claims_bear_the_penalty_and_the_end_is_of_no_other(
    text: str, wrong: list[str], spared_parts: list[str]
) -> None:
    tokens = byte_tokens(text)
    pairs = token_credit(said(text, *wrong).rollout, None, tokens, decode=decode_bytes)
    assert {value for _, value in pairs} == {1.0}
    wanted = {
        len(text[: text.index(part)].encode()) + n for part in spared_parts for n in range(len(part.encode()))
    }
    assert {token for token, _ in pairs} == wanted


WHOLE = "It is 5. Then 6 came."


@pytest.mark.parametrize(
    "changes",
    [
        {"claims": (claim(WHOLE, "6", span=None), claim(WHOLE, "5"))},
        {"claims": (claim(WHOLE, "6"), claim(WHOLE, "5"))},
        {"claims": (), "uncovered": (Span(start=6, end=7), Span(start=14, end=15))},
        {"reason": "refuted_without_claims"},
        {"claims": ()},
    ],
    ids=["no_span", "all_sentences", "all_uncovered", "looked_up", "no_claims"],
)
def test_a_penalty_of_no_known_sentence_or_of_all_is_of_the_whole_answer(changes: dict[str, Any]) -> None:
    record = said(WHOLE, "6").rollout
    record = record.model_copy(update={"verdict": refuted(WHOLE, "6", **changes)})
    assert token_credit(record, None, byte_tokens(WHOLE), decode=decode_bytes) == []


def test_so_is_one_that_the_query_decides_one_for_saying_less_and_one_of_another_text() -> None:
    record = said(WHOLE, "6").rollout
    assert token_credit(record, None, byte_tokens(WHOLE), decode=decode_bytes)
    for name in ("says_less", "unanswerable"):
        whole = record.model_copy(update={name: True})
        assert token_credit(whole, None, byte_tokens(WHOLE), decode=decode_bytes) == []
    assert token_credit(record, None, byte_tokens(WHOLE[:-1]), decode=decode_bytes) == []


def test_a_mention_that_nobody_checked_and_a_vote_that_failed_bear_it_as_before() -> None:
    text = "It is 5. Then 6 came. Then 7. And 8."
    claims = (claim(text, "5"), claim(text, "6", ClaimState.SUPPORTED), claim(text, "7", ClaimState.FAILED))
    record = said(text, "5").rollout
    verdict = refuted(text, claims=claims, uncovered=(Span(start=text.index("8"), end=text.index("8") + 1),))
    pairs = token_credit(
        record.model_copy(update={"verdict": verdict}), None, byte_tokens(text), decode=decode_bytes
    )
    assert bytes(byte_tokens(text)[token] for token, _ in pairs).decode().strip() == "Then 6 came."


# Advantages.

GROUPS: list[tuple[str, list[str], float | None]] = [
    # Two of four are refuted, one in a short sentence of a long answer; one is UNSCORED.
    ("The July picnic raised 466 €. It was in Kabul. Nobody else was there.", [], 0.0),
    ("It raised 466 €. Nine people came to it, as they do in every July.", ["466"], -1.0),
    ("It raised 7 €.", [], None),
    ("Kabul. The picnic raised 5 €, which is less than in the May before.", ["5"], -1.0),
    # All are refuted.
    ("It raised 1 €. That is all.", ["1"], -1.0),
    ("It raised 2 €. That is all.", ["2"], -1.0),
    ("It raised 3 €.", ["3"], -1.0),
    ("It raised 4 €.", [], None),
    # One is refuted, as a whole; two are masked.
    ("It raised 8 €.", ["8"], -1.0),
    ("It raised 466 €.", [], 0.0),
    ("", [], None),
    ("", [], None),
    # One in two sentences of three; rates of errors are rewards between.
    ("It raised 466 €. In June 6. In May 5.", ["466", "5"], -0.5),
    ("It raised 466 €.", [], 0.0),
    ("It raised 466 €. Not 8.", ["8"], -0.25),
    ("It raised 466 €. Not 9, but much more.", ["9"], -1.0),
]


def free_bytes(text: str, wrong: list[str]) -> list[int]:
    """The bytes between sentences that are wrong, where there are words."""
    ends = [n + 1 for n, letter in enumerate(text) if letter == "." and text[n + 1 : n + 2] in ("", " ")]
    sentences = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    is_wrong = [any(words in sentence for words in wrong) for sentence in sentences]
    free, start = [], 0
    for sentence, bears in zip(sentences, is_wrong, strict=True):
        end = start + len(sentence.encode())
        # The space before a wrong sentence is the end of the right one before it.
        after_right = bears and start and not is_wrong[sentences.index(sentence) - 1]
        free += [start] if after_right else [] if bears else range(start, end)
        start = end
    return free


def expected(*, by_claim: bool) -> list[Array]:
    """The advantage of each token of each answer, from the definition of docs/presets.md."""
    advantages = []
    for place, (text, wrong, reward) in enumerate(GROUPS):
        group = range(place - place % 4, place - place % 4 + 4)
        others = [r for n in group if n != place and (r := GROUPS[n][2]) is not None]
        if reward is None:
            advantages.append(np.zeros(0))
            continue
        baseline = sum(others) / len(others) if others else reward
        own, num = reward - baseline, len(text.encode()) + 1
        values = np.full(num, own)
        free = free_bytes(text, wrong) if by_claim and wrong else []
        if free and others:
            balanced = -own * (num - len(free)) / len(free)
            values[free] = max(own, min(0.0 - baseline, balanced))
        tokens = np.array([*range(1, 6), *byte_tokens(text)], dtype=np.float64)
        log_ratio = np.sin(tokens[1:] * 1.7 + tokens[:-1] * 0.3) - np.sin(
            tokens[1:] * 1.3 + tokens[:-1] * 0.2
        )
        advantages.append(values - KL * log_ratio[4:][::-1].cumsum()[::-1])
    return advantages


def step(ppo: PpoSettings) -> list[Experience]:
    answers = [
        answer(
            reward,
            text=text,
            checker=None,
            verdict=refuted(text, *wrong, reward=reward) if wrong and reward is not None else None,
        )
        for text, wrong, reward in GROUPS
    ]
    return rows_of(maker(ppo, samples=4).make_experience_batch(answers))[: len(answers)]


@pytest.mark.parametrize("by_claim", [True, False])
def test_advantages_are_those_of_the_definition_with_masked_members_in_the_groups(by_claim: bool) -> None:
    rows, wanted = step(BY_CLAIM if by_claim else BY_ANSWER), expected(by_claim=by_claim)
    for row, want in zip(rows, wanted, strict=True):
        assert trained(row).double().numpy() == pytest.approx(want, abs=2e-5)


@settings(max_examples=200)
@given(
    rewards=st.lists(st.sampled_from([0.0, -1.0, -0.5, -0.25]), min_size=2, max_size=8),
    num_bearing=st.integers(1, 50),
    num_free=st.integers(1, 200),
)
def test_a_wrong_answer_is_not_paid_and_its_right_sentences_less_than_a_supported_one(
    rewards: list[float], num_bearing: int, num_free: int
) -> None:
    reward, others = rewards[0], sum(rewards[1:]) / (len(rewards) - 1)
    own = torch.tensor([reward - others], dtype=torch.float64)
    values = torch.cat([torch.zeros(num_bearing), torch.full((num_free,), -reward)]).double().unsqueeze(0)
    paid = own + spared(own, values, torch.ones_like(values))
    assert (paid >= own).all() and (paid[0, :num_bearing] == own).all()
    # Beside this one a supported answer has the same others, and this one in the place of itself.
    assert (paid <= 0.0 - others + 1e-12).all()
    assert own > 0 or paid.sum() <= 1e-9


def test_what_is_not_split_is_paid_bit_for_bit_as_before() -> None:
    """With the setting on, an answer that nobody refutes, or that is refuted as a whole."""
    for one, other, (text, wrong, _) in zip(step(BY_CLAIM), step(BY_ANSWER), GROUPS, strict=True):
        is_whole = not wrong or text.count(".") == 1
        assert torch.equal(one.advantages, other.advantages) or not is_whole
        assert torch.equal(one.rewards, other.rewards)


def test_an_answer_that_was_cut_bears_that_as_a_whole() -> None:
    cut = PpoSettings.model_validate(PPO | {"solver_credit": "claim", "truncated_reward": -1.0})
    for ppo, is_split in ((cut, False), (BY_CLAIM, True)):
        answers = [said(WHOLE, "6", truncated=True), said("It is 5.")]
        row = rows_of(
            maker(ppo.model_copy(update={"kl_coef": 0.0}), samples=2).make_experience_batch(answers)
        )[0]
        assert bool(trained(row).unique().numel() > 1) is is_split


def test_stale_answers_stay_masked() -> None:
    answers = [said(WHOLE, "6"), said("It is 5.")]
    answers[0].action_mask = torch.zeros_like(answers[0].action_mask)
    rows = rows_of(maker(BY_CLAIM, samples=2).make_experience_batch(answers))
    assert not rows[0].advantages.any()


# A Checker's turn.

ONE, TWO, THREE = (
    "1. Evidence: 5 € [Answer: 5]\n",
    "2. Evidence: 六\n[Answer: 6]\n",
    "3. Evidence: 7 [Answer: 7]\n",
)
VOTES = f"I read it.\n{ONE}{TWO}{THREE}9. x [Answer: 1]"


def voted(text: str, *rewards: float | None) -> Trajectory:
    return Trajectory(
        role=Role.CHECKER,
        prompt_token_ids=tuple(range(1, 9)),
        response_token_ids=tuple(byte_tokens(text)),
        finish_reason="stop",
        own_reward=min((one for one in rewards if one is not None), default=None),
        answer_rewards=rewards,
    )


@pytest.mark.parametrize(
    ("rewards", "bears"),
    [
        ((0.0, -1.0, 0.0), [TWO, "9. x [Answer: 1]"]),
        (
            (-1.0, 0.0, None),
            ["1. Evidence: 5 € [Answer: 5]\n", "3. Evidence: 7 [Answer: 7]\n", "9. x [Answer: 1]"],
        ),
    ],
)
def test_the_answers_that_their_own_vote_refutes_bear_the_penalty(
    rewards: Sequence[float | None], bears: list[str]
) -> None:
    parts = refuted_answers(voted(VOTES, *rewards), VOTES)
    assert [VOTES[part.start : part.end] for part in parts] == bears
    thought = f"<think>1. Is it 5?\n2. Or 6?</think>\n{VOTES}"
    shifted = refuted_answers(voted(thought, *rewards), thought)
    assert [thought[part.start : part.end] for part in shifted] == bears


def test_each_vote_is_paid_on_its_own_answer() -> None:
    """Groups of three answers with a vote each; the last has no readable vote and no row."""
    ppo = PpoSettings.model_validate(
        PPO | {"kl_coef": 0.0, "checker_credit": "vote", "checker_reward": "each_answer"}
    )
    wrong = "1. Evidence: a [Answer: 5]\n2. Evidence: b, b and b [Answer: 6]"
    turns = [voted(wrong, -1.0, 0.0), voted("1. c [Answer: 1]", 0.0), voted("1. d [Answer: 2]", -1.0)]
    answers = [answer(0.0, checker=None, more=[turn], credit=ppo.checker_credit) for turn in turns]
    rows = rows_of(maker(ppo, samples=3).make_experience_batch(answers))[3:]
    first = wrong.index("2.")
    num = len(wrong) + 1
    own, supported = -1 - (0 - 1) / 2, 0 - (0 - 1) / 2
    free = min(supported, -own * (num - (num - 1 - first)) / (num - 1 - first))
    assert trained(rows[0]).tolist() == pytest.approx([*[own] * first, *[free] * (num - 1 - first), own])
    assert trained(rows[1]).unique().tolist() == pytest.approx([1.0])
    assert trained(rows[2]).unique().tolist() == pytest.approx([-0.5])


# Settings.


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["ppo.solver_credit=claim"], "ppo: solver_credit: claim with estimator gae"),
        (
            ["ppo.checker_reward=each_answer", "ppo.checker_credit=vote"],
            "checker_reward: each_answer with est",
        ),
        (
            ["ppo.checker_reward=each_answer", "ppo.estimator=rloo", "rollout.samples_per_query=4"],
            "checker_reward: each_answer with checker_credit: answer, which pays no answer for itself",
        ),
        (
            [
                "ppo.solver_credit=claim",
                "ppo.estimator=rloo",
                "rollout.samples_per_query=4",
                "audit.reward_supported=-0.1",
            ],
            "audit.reward_supported: -0.1 with ppo.solver_credit: claim",
        ),
    ],
)
def test_a_credit_that_is_not_defined_is_one_clear_line(overrides: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_recipe("tiny", overrides)
    assert says in str(caught.value) and "set" in str(caught.value) and "\n" not in str(caught.value)
