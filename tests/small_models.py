"""Models of a few thousand parameters, for the tests of what is done to any model."""

from __future__ import annotations

import string
from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{{ message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def small_model(folder: Path, *, end: str = "<|im_end|>", template: str = TEMPLATE) -> Path:
    """A Llama of 20,000 parameters with a tokenizer of single characters; words are not broken up."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *string.printable]
    inner = Tokenizer(BPE({word: i for i, word in enumerate(words)}, [], unk_token="<|endoftext|>"))
    inner.add_special_tokens(words[:3])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=end, unk_token="<|endoftext|>")
    tokenizer.chat_template = template
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        tie_word_embeddings=True,
        eos_token_id=words.index(end),
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
