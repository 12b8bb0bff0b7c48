"""The tiny policy's architecture, and a start from which copying out of documents emerges within minutes.

From a random start a model of this size does not find the two-step circuit that copying needs (which
words came just before; where else did these words come) in the few hundred steps that a processor core
affords. So the start is drawn in that shape, in the spirit of mimetic initialisation (Trockman and
Kolter, 2023, https://arxiv.org/abs/2305.09828):

- the embedding uses the lower half of the channels for the token and one constant; the upper half is empty;
- layer 0 looks a few tokens back, by rotary phase alone, and writes a bag of them into the upper half;
- layer 1 matches bags by content, and copies the token at the best match.

Nothing is frozen; training is free to undo all of it.
"""

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaAttention

LOOK_BACK = (1.5, 2.5, 4.5, 5.5)  # tokens, one a head: where layer 0's attention peaks
PHASE_SHARPNESS = 2.0  # attention score at the peak over sqrt(head_dim), before softmax's own scale
MATCH_STRENGTH = 1.4
CONSTANT = 0.24  # of the constant channel; the token's own channels have deviation 0.05
FAST_FREQUENCY = 0.02  # rotary frequencies above it tell neighbours apart; below it they hardly turn


def new_model(vocab_size: int, *, pad_token_id: int, eos_token_id: int, seed: int) -> LlamaForCausalLM:
    """Returns the structured start: 4 layers, width 128, 4 heads, tied embeddings, 0.9 million parameters."""
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=4096,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=True,
        pad_token_id=pad_token_id,
        eos_token_id=eos_token_id,
        bos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    structure_(model, torch.Generator().manual_seed(seed))
    return model


@torch.no_grad()
def structure_(model: LlamaForCausalLM, generator: torch.Generator) -> None:
    """Overwrites every weight matrix in place, from `generator` alone."""
    config = model.config
    frequencies = config.rope_parameters["rope_theta"] ** (
        -torch.arange(0, config.head_dim, 2) / config.head_dim
    )  # (head_dim / 2,) radians a token
    _draw_matrices_(model, generator)
    constant = _draw_embedding_(model.model.embed_tokens.weight, generator, config.rms_norm_eps)
    _look_back_(model.model.layers[0].self_attn, frequencies, constant, generator)
    _match_bags_(model.model.layers[1].self_attn, frequencies, generator)


def _draw_matrices_(model: LlamaForCausalLM, generator: torch.Generator) -> None:
    """Deviation 0.5/sqrt(width), and less for those that write to the residual stream, by their number."""
    num_writers = 2 * model.config.num_hidden_layers
    for name, weight in model.model.layers.named_parameters():
        if weight.dim() == 2:
            deviation = 0.5 * model.config.hidden_size**-0.5
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                deviation *= num_writers**-0.5
            weight.normal_(std=deviation, generator=generator)


def _draw_embedding_(weight: Tensor, generator: torch.Generator, eps: float) -> float:
    """Fills `weight (V, D)`; returns what the constant channel is worth after the first normalisation."""
    half = weight.shape[1] // 2
    weight.zero_()
    weight[:, : half - 1] = 0.05 * torch.randn(weight.shape[0], half - 1, generator=generator)
    weight[:, half - 1] = CONSTANT
    return float(CONSTANT * (weight.pow(2).mean(-1) + eps).rsqrt().mean())


def _look_back_(
    attention: LlamaAttention, frequencies: Tensor, constant: float, generator: torch.Generator
) -> None:
    """Heads whose query and key come from the constant alone, so that only the rotary distance decides."""
    head_dim, half = 2 * len(frequencies), attention.q_proj.in_features // 2
    num_fast = int((frequencies > FAST_FREQUENCY).sum())
    scale = (PHASE_SHARPNESS * head_dim**0.5) ** 0.5 / constant
    for head, rows in enumerate(_heads(attention, head_dim)):
        phase = -frequencies[:num_fast] * LOOK_BACK[head % len(LOOK_BACK)]
        query, key = torch.zeros(head_dim), torch.zeros(head_dim)
        key[:num_fast] = 1.0
        query[:num_fast] = phase.cos()
        query[len(frequencies) : len(frequencies) + num_fast] = phase.sin()
        for weight, direction in ((attention.q_proj.weight, query), (attention.k_proj.weight, key)):
            weight[rows] *= 0.3
            weight[rows, half - 1] = direction * scale
    _copy_tokens_(attention, head_dim, slice(half, 2 * half), generator)


def _match_bags_(attention: LlamaAttention, frequencies: Tensor, generator: torch.Generator) -> None:
    """Heads whose query and key are one projection of the bag, on rotary pairs too slow to feel distance."""
    head_dim, half = 2 * len(frequencies), attention.q_proj.in_features // 2
    slow = torch.arange(int((frequencies > FAST_FREQUENCY).sum()) + 1, len(frequencies))
    slow = torch.cat((slow, slow + len(frequencies)))
    for rows in _heads(attention, head_dim):
        projection = MATCH_STRENGTH * _orthogonal(half, generator)[: len(slow)]  # (S, D / 2)
        for weight in (attention.q_proj.weight, attention.k_proj.weight):
            weight[rows] *= 0.1
            weight[rows.start + slow, half:] += projection
    _copy_tokens_(attention, head_dim, slice(0, half), generator)


def _copy_tokens_(attention: LlamaAttention, head_dim: int, into: slice, generator: torch.Generator) -> None:
    """Values carry the token's channels and the output writes them to `into`; two heads see all of them."""
    half = attention.q_proj.in_features // 2
    basis = _orthogonal(half, generator)
    for head, rows in enumerate(_heads(attention, head_dim)):
        start = head * head_dim % half
        view = 0.5 * basis[start : start + head_dim]  # (head_dim, D / 2)
        attention.v_proj.weight[rows] *= 0.2
        attention.o_proj.weight[:, rows] *= 0.2
        attention.v_proj.weight[rows, :half] += view
        attention.v_proj.weight[rows, half - 1] = 0.0
        attention.o_proj.weight[into, rows] += view.T


def _heads(attention: LlamaAttention, head_dim: int) -> list[slice]:
    return [slice(i, i + head_dim) for i in range(0, attention.q_proj.out_features, head_dim)]


def _orthogonal(size: int, generator: torch.Generator) -> Tensor:
    """A random rotation, `(size, size)`."""
    rotation: Tensor = torch.linalg.qr(torch.randn(size, size, generator=generator))[0]
    return rotation
