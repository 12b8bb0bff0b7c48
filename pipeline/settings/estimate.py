"""Every figure that an estimate assumes, named, with its source; `--set estimate.NAME=VALUE` overrides it."""

from typing import Literal

from pydantic import Field

from reward.config import Settings


class EstimateSettings(Settings):
    """Assumptions of `--dry-run`; they change no training and are not part of a recipe's digest."""

    table1: Literal["stem", "general"] | None = Field(
        default=None, description="Rows and lengths of the paper's Table 1, while data.path has no manifest."
    )
    tokens_per_word: float = Field(
        default=1.33, gt=0, description="English text; OpenAI: a token is about 3/4 of a word."
    )
    solver_tokens: int = Field(default=400, ge=1, description="Mean answer; a guess.")
    proposer_tokens: int = Field(default=400, ge=1, description="Mean list of questions; a guess.")
    checker_tokens: int = Field(default=600, ge=1, description="Mean list of quotations; a guess.")
    proposer_calls: float = Field(default=1.1, ge=1, description="An answer, retries included; a guess.")
    checker_calls: float = Field(default=1.1, ge=1, description="A voter and answer: rounds, parts; a guess.")
    longest_over_mean: float = Field(
        default=3.0, ge=1, description="A step waits for its longest completion; a guess."
    )
    gpu_tflops: float = Field(default=989.0, gt=0, description="Dense bf16; NVIDIA's sheet of the H100 SXM.")
    gpu_bandwidth_gb_s: float = Field(default=3350.0, gt=0, description="NVIDIA's sheet of the H100 SXM.")
    mfu: float = Field(
        default=0.35, gt=0, le=1, description="Of gpu_tflops, in training; PaLM got 0.46 (Chowdhery 2022)."
    )
    prefill_mfu: float = Field(
        default=0.4, gt=0, le=1, description="The same while prompts are read; a guess."
    )
    decode_bandwidth: float = Field(
        default=0.6, gt=0, le=1, description="Of gpu_bandwidth_gb_s, while tokens are written; a guess."
    )
    step_overhead_s: float = Field(
        default=30.0, ge=0, description="Weight sync, sleeping, waking, offloading; a guess."
    )
    process_gib: float = Field(
        default=1.5, ge=0, description="CUDA context, NCCL, fragments; each process on a GPU; a guess."
    )
    engine_overhead_gib: float = Field(
        default=3.0, ge=0, description="An engine's activations and CUDA graphs; a guess."
    )
