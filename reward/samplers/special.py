"""Special tokens in text that is only material: a document, a response, a question.

A Solver that writes `<|im_start|>system` must not open a turn in the Proposer's or the Checker's chat. The
text of every special token in a message's content is broken by a space after its first character
("< |im_start|>"), which no tokenizer joins again: a message without such text stays as it is, to the byte.

By default `neutralise` knows the spellings of the common families (for servers whose tokenizer is not ours to
ask); `pattern_of` makes it know exactly those of one tokenizer.
"""

import re
from collections.abc import Iterable

_MOST_PASSES = 8  # one, and one more for each token that overlapped another
# ChatML, Llama 3, Phi and GLM; DeepSeek's wide bars; sentence and turn marks of Llama 2, Gemma and Mistral;
# the mark of an image, at which OpenRLHF takes a message apart whatever the model.
_COMMON = re.compile(
    r"<\|[^<>|\s]{1,64}\|>"
    r"|<\uff5c[^<>\uff5c\s]{1,64}\uff5c>"
    r"|</?s>"
    r"|<(?:bos|eos|pad|unk|sop|eop|image|start_of_turn|end_of_turn|unused[0-9]{1,4}|extra_id_[0-9]{1,4})>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|gMASK)\]"
    r"|<</?SYS>>"
)


def neutralise(text: str, pattern: re.Pattern[str] = _COMMON) -> str:
    """The text with every special token's spelling broken, overlapping ones too."""
    for _ in range(_MOST_PASSES):
        text, num_broken = pattern.subn(lambda found: f"{found[0][0]} {found[0][1:]}", text)
        if not num_broken:
            break
    return text


def count_special(text: str) -> int:
    """How many spellings of common special tokens a text has."""
    return sum(1 for _ in _COMMON.finditer(text))


def pattern_of(special_tokens: Iterable[str]) -> re.Pattern[str] | None:
    """Finds the spellings of these tokens; None when there is none that a space could break."""
    spellings = sorted({t for t in special_tokens if len(t) > 1 and not t.isspace()}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, spellings))) if spellings else None
