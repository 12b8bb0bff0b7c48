"""Which tokenizer a prompt was counted by: a digest of what decides the count, read without a network.

One tokenizer goes by several names: the hub's, a local folder's, a folder of weights trained from it. Files
are no better: saving a tokenizer writes its `tokenizer.json` again. So the vocabulary and the chat template
count. Added tokens do not: training code adds some (for padding), which leaves prompts as long as before.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

_TOKENIZER, _CONFIG, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


def tokenizer_sha256(name: str) -> str | None:
    """SHA-256 (hex) of a tokenizer's vocabulary and chat template.

    Args:
        name: A folder, or the name of a Hugging Face model, which is looked for in the local cache alone.

    Returns:
        None when it is not on this machine, or has no `tokenizer.json`.
    """
    try:
        read = [_file(name, file) for file in (_TOKENIZER, _CONFIG, _TEMPLATE)]
        if read[0] is None:
            return None
        model = json.loads(read[0])["model"]
        template = read[2] if read[2] is not None else _template(json.loads(read[1] or "{}"))
        content = json.dumps([model["vocab"], template], sort_keys=True)
    except (ImportError, OSError, ValueError, LookupError):  # whoever loads it says what is wrong with it
        return None
    return hashlib.sha256(content.encode()).hexdigest()


def _file(name: str, file: str) -> str | None:
    """The text of one of a tokenizer's files; None when it is not here.

    Raises:
        ImportError: Hugging Face's library is not installed, so there is no cache.
        ValueError: neither a folder nor a model's name.
    """
    path = Path(name) / file
    if not Path(name).is_dir():
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(name, file)
        if not isinstance(found, str):
            return None
        path = Path(found)
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _template(config: dict[str, Any]) -> str | None:
    """The template of a configuration that was written before templates had a file of their own."""
    found = config.get("chat_template")
    if isinstance(found, list):
        found = {one["name"]: one["template"] for one in found}.get("default")
    return None if found is None else str(found)
