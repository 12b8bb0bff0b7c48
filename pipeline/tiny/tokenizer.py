"""The tiny policy's tokenizer: a token for each word of the world and each digit, bytes for the rest.

About 420 tokens for the default world, and lossless: whatever text goes in comes back. One token a digit
makes copying a number a matter of copying symbols. Words carry their leading space, as in GPT-2's byte-level
scheme, so nothing depends on position. A world with names, dates or abstentions has more words, and a token
for each of its verbs of several words. In such a world the space before a tag's value belongs to the value,
so that a name is copied into a bracket as its sentence writes it.
"""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pipeline.settings.worlds import PLAIN_WORLD, WorldSettings
from pipeline.tiny.facts import ABSTENTION
from pipeline.tiny.words import (
    CITIES,
    EVENTS,
    FIRST_NAMES,
    LAST_NAMES,
    MONTHS,
    PLACES,
    THEMES,
    UNITS,
    VERB_FORMS,
    verbs_of,
)

PAD, END = "<pad>", "<|end|>"
SPECIAL_TOKENS = (PAD, "<|system|>", "<|user|>", "<|assistant|>", END)
PHRASES = ("[Answer: ", "- Question:", ". Evidence:", "Doc:", "Query:")  # of the roles' forms, one token each
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

_COMMON_WORDS = (*MONTHS, *EVENTS, *UNITS, *UNITS.values(), "the", "The", "in", "how", "many")
_OTHER_WORDS = (
    *("solver", "proposer", "checker", "Doc", "Query", "Question", "Evidence", "Answer", "The"),
    *(" Query", " Question", " Evidence", " [", "- ", " a", " b", " c", "a)", " a)", " b)", " c)"),
)
_NO_ANSWER = ("none", "Cannot", "answer")  # of a Checker's line that finds nothing
_PIECES = Regex(r"- | ?[abc]\)| ?\[|\d| ?\p{L}+|[^\s\p{L}\d]|\s")  # no piece holds two digits
_BYTE_SCORE, _WORD_SCORE = -10.0, -1.0  # a known word always beats its bytes


def build_tokenizer(world: WorldSettings = PLAIN_WORLD) -> PreTrainedTokenizerFast:
    """Returns the tokenizer of a world with its chat template; pads on the left, as generation needs."""
    words, phrases = _words_and_phrases(world)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = Tokenizer(models.Unigram(_vocabulary(byte_level, words), unk_id=0, byte_fallback=False))
    split = pre_tokenizers.Split(_PIECES, behavior="isolated", invert=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in SPECIAL_TOKENS]
    )
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in phrases])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        model_max_length=4096,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def _words_and_phrases(world: WorldSettings) -> tuple[set[str], tuple[str, ...]]:
    """Words that follow a space, and texts that are one token wherever they stand."""
    if world.kinds == PLAIN_WORLD.kinds and not world.unanswerable_share:
        return {*CITIES, *_COMMON_WORDS}, PHRASES
    asked = " ".join(VERB_FORMS[verb].asked for kind in world.kinds for verb in verbs_of(kind))
    subjects = CITIES if world.kinds == PLAIN_WORLD.kinds else (*THEMES, *PLACES)
    spoken = {*asked.split(), *ABSTENTION.removesuffix(".").split(), *FIRST_NAMES, *LAST_NAMES}
    verbs = (f" {verb}" for kind in world.kinds for verb in verbs_of(kind) if " " in verb)
    words = {*_COMMON_WORDS, *subjects, *spoken, *_NO_ANSWER}
    return words, (*(text.rstrip() for text in PHRASES), " at the", *verbs)


def _vocabulary(byte_level: pre_tokenizers.ByteLevel, after_space: set[str]) -> list[tuple[str, float]]:
    """Special tokens, the 256 bytes, then the words in the byte alphabet's spelling, each with its score."""
    words = sorted({*(f" {word}" for word in after_space), *_OTHER_WORDS})
    spelled = ["".join(piece for piece, _ in byte_level.pre_tokenize_str(word)) for word in words]
    return [
        *((text, 0.0) for text in SPECIAL_TOKENS),
        *((letter, _BYTE_SCORE) for letter in sorted(pre_tokenizers.ByteLevel.alphabet())),
        *((word, _WORD_SCORE) for word in spelled),
    ]
