"""A dense decoder's dimensions and the counts that follow from them.

From the model's `config.json` when it is a local folder, else from `published.yaml`. Llama's block is
assumed: grouped-query attention, a gated MLP of three matrices, RMSNorm, no biases.
"""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from pipeline.models.known import KNOWN
from reward.types import Record

_PUBLISHED = Path(__file__).with_name("published.yaml")
_DEFAULTS = ("num_key_value_heads", "head_dim")
_MIXTURE_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")


class Dimensions(Record):
    """Sizes of a dense decoder, under the names of Hugging Face's config.json."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool = False
    max_position_embeddings: int
    qk_norm: bool = Field(default=False, description="RMSNorm over each head's queries and keys, as Qwen3's.")

    @property
    def query_size(self) -> int:
        return self.num_attention_heads * self.head_dim

    @property
    def key_size(self) -> int:
        """Width of all keys of a token; values are as wide."""
        return self.num_key_value_heads * self.head_dim

    @property
    def linear_shapes(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of a layer's seven matrices: q, k, v, o, gate, up, down."""
        hidden, inner = self.hidden_size, self.intermediate_size
        attention = ((hidden, self.query_size), (hidden, self.key_size), (hidden, self.key_size))
        return (*attention, (self.query_size, hidden), (hidden, inner), (hidden, inner), (inner, hidden))

    @property
    def num_head_parameters(self) -> int:
        return self.vocab_size * self.hidden_size

    @property
    def num_body_parameters(self) -> int:
        """Of layers and norms, without embedding and head."""
        norms = 2 * self.hidden_size + (2 * self.head_dim if self.qk_norm else 0)
        matrices = sum(inputs * outputs for inputs, outputs in self.linear_shapes)
        return self.num_hidden_layers * (matrices + norms) + self.hidden_size

    @property
    def num_parameters(self) -> int:
        tables = 1 if self.tie_word_embeddings else 2
        return self.num_body_parameters + tables * self.num_head_parameters

    @property
    def num_critic_parameters(self) -> int:
        """With one output in place of the vocabulary: body, embedding and value head."""
        return self.num_body_parameters + self.num_head_parameters + self.hidden_size

    def num_adapter_parameters(self, rank: int) -> int:
        """Of LoRA's two matrices beside each linear layer of the body (Hu et al. 2021, section 4.1)."""
        each = sum(rank * (inputs + outputs) for inputs, outputs in self.linear_shapes)
        return self.num_hidden_layers * each

    @property
    def key_value_bytes(self) -> int:
        """Of one token in an engine's cache, all layers, bfloat16."""
        return 2 * 2 * self.num_hidden_layers * self.key_size


def dimensions_of(model: str) -> Dimensions:
    """From its folder's config.json, or as published for its name; ValueError for neither, or experts."""
    config = Path(model) / "config.json"
    if config.is_file():
        return _from_config(json.loads(config.read_text(encoding="utf-8")), where=str(config))
    published = yaml.safe_load(_PUBLISHED.read_text(encoding="utf-8"))
    if model not in published:
        last = Path(model).name  # of a path in the cache
        fetched = last if last in KNOWN else model if "/" in model else f"{model} --from PLACE"
        raise ValueError(
            f"model: {model!r} is no folder with a config.json and no fetched model, and an estimate knows "
            f"only {', '.join(published)} by name; bring it with "
            f"`march base-model fetch {fetched}`, or give its folder"
        )
    return Dimensions.model_validate(published[model])


def _from_config(config: dict[str, Any], *, where: str) -> Dimensions:
    if any(config.get(key) for key in _MIXTURE_KEYS):
        raise ValueError(f"model: {where} is a mixture of experts; the estimate holds for dense models only")
    needed = [name for name, field in Dimensions.model_fields.items() if field.is_required()]
    if lacking := [name for name in needed if name not in config and name not in _DEFAULTS]:
        raise ValueError(f"model: {where} has no {lacking[0]}; the estimate holds for dense text models only")
    heads = config["num_attention_heads"]
    defaults = {
        "num_key_value_heads": heads,
        "head_dim": config["hidden_size"] // heads,
        "qk_norm": config.get("model_type") == "qwen3",
    }
    known = {key: config[key] for key in Dimensions.model_fields if config.get(key) is not None}
    return Dimensions.model_validate(defaults | known)
