"""The demonstrations of a run as the file that OpenRLHF reads: rendered prompts and completions.

    {"input": "<|im_start|>system\\n...", "output": "Sam Wood was born ...<|im_end|>", "role": "solver"}

The text of a prompt is rendered here, by the tokenizer's own chat template and as a rollout renders it, so
that OpenRLHF has no template to apply. What is longer than `warmup.max_tokens` is left out: OpenRLHF would
silently cut the completion.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pipeline.data.rows import parse_row
from pipeline.data.values import raw_rows
from pipeline.settings.recipe import Recipe
from pipeline.warmup.demonstrations import Lesson, demonstrations
from pipeline.worlds.world import Demonstration
from reward.offline.files import replace_file, weights_sha256
from reward.offline.rows import InputRecord
from reward.provenance import json_sha256
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.samplers.token_ids import render_chat
from reward.types import Record, Role

DEMONSTRATIONS_FILE = "demonstrations.jsonl"


class Prepared(Record):
    key: str = Field(description="Digest of the demonstrations, the model and the settings.")
    sha256: str = Field(description="Of the file.")
    num_written: int
    num_overlong: int
    by_role: dict[str, int]
    mean_tokens: float
    longest_tokens: int


class GivenDemonstration(InputRecord):
    messages: tuple[Message, ...] = Field(min_length=1)
    completion: Annotated[str, Field(min_length=1)]
    role: Role = Role.SOLVER


def demand_demonstrations(recipe: Recipe) -> None:
    """Raises ValueError for a recipe that has none; before a folder is made."""
    if recipe.warmup.demonstrations is None and recipe.data.source != "wiki":
        raise ValueError(
            f"data.source: {recipe.data.source} has no demonstrations; set it to wiki, or give your own: "
            "warmup.demonstrations: FILE.jsonl with messages and completion a line"
        )


def prepare(recipe: Recipe, folder: Path, *, known_key: str | None = None) -> Prepared:
    """Writes a run's demonstrations; equal settings write equal files.

    `known_key` is what the folder's run was begun with; None for a new one.

    Raises:
        ValueError: too little is left, or the folder's run is another.
        FileNotFoundError: a file of demonstrations is not there.
    """
    tokenizer = _tokenizer(recipe.model_path)
    lines: list[str] = []
    lengths: list[int] = []
    by_role: Counter[str] = Counter()
    num_overlong = 0
    for one in _shown(recipe):
        prompt, completion = render_chat(tokenizer, one.messages), one.completion + tokenizer.eos_token
        length = len(tokenizer(prompt + completion, add_special_tokens=False)["input_ids"])
        if length > recipe.warmup.max_tokens:
            num_overlong += 1
            continue
        written = {"input": prompt, "output": completion, "role": one.role}
        lines.append(json.dumps(written, ensure_ascii=False))
        lengths.append(length)
        by_role[one.role.value] += 1
    if len(lines) < recipe.warmup.batch_size:
        raise ValueError(
            f"warmup: {len(lines)} demonstrations are left ({num_overlong} are over warmup.max_tokens "
            f"{recipe.warmup.max_tokens}), fewer than one batch of {recipe.warmup.batch_size}; raise "
            "it, or give more"
        )
    text = "".join(f"{line}\n" for line in lines)
    key = _key(recipe, text)
    if known_key not in (None, key):
        raise ValueError(
            f"{folder}: holds a warm-up of other settings, weights or demonstrations ({known_key:.12}; now "
            f"{key:.12}); use another --run-dir, or the same settings to resume"
        )
    replace_file(folder / DEMONSTRATIONS_FILE, text)
    return Prepared(
        key=key,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        num_written=len(lines),
        num_overlong=num_overlong,
        by_role=dict(by_role),
        mean_tokens=sum(lengths) / len(lengths),
        longest_tokens=max(lengths),
    )


def _key(recipe: Recipe, text: str) -> str:
    settings = {
        "model": recipe.model,
        "weights": weights_sha256(folder) if (folder := Path(recipe.model_path)).is_dir() else None,
        "seed": recipe.seed,
        "warmup": recipe.warmup.model_dump(mode="json", exclude={"save_every", "demonstrations"}),
        "demonstrations": hashlib.sha256(text.encode()).hexdigest(),
    }
    return json_sha256(settings)


def _shown(recipe: Recipe) -> Iterator[Demonstration]:
    given = recipe.warmup.demonstrations
    if given is not None:
        for raw in raw_rows(given):
            one = parse_row(raw, GivenDemonstration)
            yield Demonstration(one.role, list(one.messages), one.completion)
        return
    from pipeline.worlds.wiki.world import WikiWorld

    lesson = Lesson(
        rows=WikiWorld(recipe.data.wiki).part("warmup"),
        prompts=load_prompts(recipe.audit.prompts),
        audit=recipe.audit,
        shares=recipe.warmup.shares,
        cannot_answer_share=recipe.warmup.cannot_answer_share,
    )
    yield from demonstrations(lesson, recipe.warmup.num_demonstrations, recipe.seed)


def _tokenizer(model: str) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    if not tokenizer.chat_template:
        raise ValueError(
            f"model: {model} has no chat template; give one that has, or add it to its tokenizer"
        )
    return tokenizer
