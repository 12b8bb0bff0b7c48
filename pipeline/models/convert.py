"""Reads a model's files, makes safetensors of a GGUF, and checks the tokenizer before anything trains on it.

Two faults are found here and not after an hour of training. A tokenizer whose end token is not what the chat
template writes after a turn: every answer runs on to the limit of tokens. A template that shows no system
message: the roles' instructions never reach the model.
"""

from __future__ import annotations

import json
import logging
import math
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.models.sources import HUB_FILES

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_INDEX = "model.safetensors.index.json"  # of weights in several files
_LIBRARIES = ("gguf", "safetensors", "tokenizers", "torch", "transformers")
_NOT_OF_A_TOKENIZER = {
    *("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"),
    *("is_local", "local_files_only", "name_or_path"),
}
_PROBE = {role: f"{role}-message" for role in ("system", "user", "assistant")}


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps warnings and progress bars of the libraries off the terminal."""
    logging.disable(logging.WARNING)  # before the import: DeepSpeed, which transformers imports, warns then
    from transformers.utils import logging as of_transformers

    of_transformers.disable_progress_bar()
    try:
        yield
    finally:
        of_transformers.enable_progress_bar()
        logging.disable(logging.NOTSET)


def library_versions() -> dict[str, str]:
    """What can change a conversion."""
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def convert_gguf(file: Path, folder: Path) -> None:
    """Writes a GGUF file as a folder of Hugging Face's, in 32 bits; ValueError where it cannot be read."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ValueError(f"{file}: is no GGUF file, or damaged; fetch it again")
    where: dict[str, Any] = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(**where)
        model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    except (ValueError, KeyError, NotImplementedError, EOFError) as error:
        raise ValueError(
            f"{file}: transformers cannot read this GGUF ({str(error).splitlines()[0][:160]}); give the "
            "model's safetensors"
        ) from error
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def copy_folder(source: Path, folder: Path) -> None:
    """Copies a model's safetensors and texts; ValueError for a folder without, or with a part of them."""
    if not (source / "config.json").is_file():
        raise ValueError(f"{source}: has no config.json; give the folder of a Hugging Face model")
    if not any(source.glob("*.safetensors")):
        raise ValueError(f"{source}: has no *.safetensors; save the weights so, pickles are not taken")
    named = _shards(source)
    if gone := sorted(name for name in named if not (source / name).is_file()):
        raise ValueError(
            f"{source}: {_INDEX} names {gone[0]}, which is not there ({len(gone)} of {len(named)} "
            "files); fetch it again"
        )
    for pattern in HUB_FILES:
        for path in source.glob(pattern):
            shutil.copyfile(path, folder / path.name)


def _shards(folder: Path) -> set[str]:
    """The files that the index of weights names; none where there is no index."""
    index = folder / _INDEX
    found = json.loads(index.read_text(encoding="utf-8"))["weight_map"] if index.is_file() else {}
    return set(found.values())


def settle_tokens(folder: Path, *, end: str = "", pad: str = "", needs_system: bool = True) -> str:
    """Checks the tokenizer of a folder, writes the tokens into it that it must name, and returns the end.

    Args:
        folder: Of the model; its tokenizer and configuration are set right in place.
        end: The token that ends a turn; empty to demand that the tokenizer names the right one itself.
        pad: For a tokenizer that names none.

    Raises:
        ValueError: there is no chat template, it shows no system message, or the end token is wrong.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    written = end_of_turn(tokenizer, folder.name, needs_system=needs_system)
    if end and end != written:
        raise ValueError(
            f"end token {end!r}: the chat template ends a turn with {written!r}; give that, or leave it out"
        )
    if not end and tokenizer.eos_token != written:
        raise ValueError(
            f"the tokenizer's end token is {tokenizer.eos_token!r}, but the chat template ends a turn with "
            f"{written!r}, so no answer would end; add --end-token '{written}'"
        )
    _write_tokens(folder, tokenizer, end=written, pad=tokenizer.pad_token or pad or written)
    if (read := AutoTokenizer.from_pretrained(folder).eos_token) != written:
        raise ValueError(
            f"{folder.name}: its files make {read!r} the end token whatever is written; fix them"
        )
    return written


def end_of_turn(tokenizer: PreTrainedTokenizerBase, name: str, *, needs_system: bool = True) -> str:
    """The special token that the chat template writes after a turn of the assistant.

    Raises:
        ValueError: there is no template or no such token, or it shows no system message.
    """
    if not tokenizer.chat_template:
        raise ValueError(
            f"{name}: its tokenizer has no chat template; choose a model that was tuned for chat"
        )
    if needs_system and not _shows_system(tokenizer):
        raise ValueError(
            f"{name}: its chat template shows no system message, where the roles' instructions stand; choose "
            "another model, or add --no-system and train with prompts whose system texts are empty"
        )
    messages = [{"role": role, "content": _PROBE[role]} for role in ("user", "assistant")]
    text = str(tokenizer.apply_chat_template(messages, tokenize=False))
    after = text.rpartition(_PROBE["assistant"])[2].lstrip()
    special = {str(token) for token in tokenizer.added_tokens_decoder.values()} | set(
        tokenizer.all_special_tokens
    )
    found = [token for token in special if after.startswith(token)]
    if not found:
        raise ValueError(
            f"{name}: its chat template writes no special token after a turn, so nothing ends an answer; "
            "choose another model"
        )
    return max(found, key=len)


def _shows_system(tokenizer: PreTrainedTokenizerBase) -> bool:
    messages = [{"role": role, "content": _PROBE[role]} for role in ("system", "user")]
    try:
        return _PROBE["system"] in str(tokenizer.apply_chat_template(messages, tokenize=False))
    except Exception:  # templates raise Jinja's errors by themselves: "System role not supported"
        return False


def _write_tokens(folder: Path, tokenizer: PreTrainedTokenizerBase, *, end: str, pad: str) -> None:
    """The end and the padding, in every file that generation or training reads them from."""
    path = folder / "tokenizer_config.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    # transformers copies a GGUF's ids there, which are those of the wrong tokens.
    kept = {key: value for key, value in known.items() if key not in _NOT_OF_A_TOKENIZER}
    _write(path, kept | {"eos_token": end, "pad_token": pad})
    if (older := folder / "special_tokens_map.json").is_file():  # it is read over the other
        _update(older, {"eos_token": end, "pad_token": pad})
    ids = {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(one) for name, one in (("eos", end), ("pad", pad))
    }
    _update(folder / "config.json", ids)
    generation = folder / "generation_config.json"
    if generation.is_file():
        known = json.loads(generation.read_text()).get("eos_token_id")
        several = isinstance(known, list) and ids["eos_token_id"] in known
        _update(generation, ids | ({"eos_token_id": known} if several else {}))


def _update(path: Path, values: dict[str, Any]) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    _write(path, known | values)


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def count_parameters(folder: Path) -> tuple[int, str]:
    """How many parameters the safetensors hold, and in which type; reads headers alone.

    ValueError where one is damaged.
    """
    from safetensors import SafetensorError, safe_open

    total, dtypes = 0, set()
    paths = [folder / name for name in sorted(_shards(folder))]  # beside them may be the same in another form
    for path in paths or sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as opened:
                for key in opened.keys():  # noqa: SIM118 (it is no mapping)
                    tensor = opened.get_slice(key)
                    total += math.prod(tensor.get_shape())
                    dtypes.add(str(tensor.get_dtype()))
        except SafetensorError as error:
            raise ValueError(f"{path.name}: is cut or damaged ({error}); fetch the model again") from error
    return total, ", ".join(sorted(dtypes))
