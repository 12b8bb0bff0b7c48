"""How model and judge are sampled: the paper's settings (Table 6), and what a judge's retry changes."""

from __future__ import annotations

from reward.config import SamplingSettings

GENERATION = SamplingSettings(temperature=0.6, top_p=0.95, top_k=20, max_tokens=8192, seed=0)
NUM_GENERATIONS = 8
JUDGING = SamplingSettings(temperature=0, max_tokens=2048, seed=0)
JUDGE_RETRIES = 2
MOST_UNREAD = 0.5  # share of the judge's replies
_RETRY_TEMPERATURE = 0.6  # at 0 the reply would be the same


def attempt_settings(judging: SamplingSettings, attempt: int) -> SamplingSettings:
    """How a judge is sampled at an attempt, from 0: each retry has another seed, and may vary."""
    if attempt == 0:
        return judging
    temperature = max(judging.temperature, _RETRY_TEMPERATURE)
    seed = (judging.seed or 0) + attempt
    return judging.model_copy(update={"temperature": temperature, "seed": seed})
