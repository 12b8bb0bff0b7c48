"""An extra term of the Solver's reward: the score of a learned reward model, off by default.

The model is asked over OpenRLHF's reward wire, as its own `openrlhf.cli.serve_rm` serves it: `{"query":
[prompt and response]}` in, `{"rewards": [score]}` out. The term is weighed and bounded, so that no score
lifts a refuted answer over a supported one, which is what went wrong where such a score was added as it is. A
model that gives no finite number gives no term, and the answer no reward: it is UNSCORED.
"""

from __future__ import annotations

import math
import os

import httpx
from tenacity import AsyncRetrying, RetryError, retry_if_exception_type, stop_after_attempt, wait_exponential

from pipeline.settings.sources import RewardModelSettings

TOKEN_VARIABLE = "MARCH_REWARD_MODEL_TOKEN"
_ATTEMPTS = 3


class RewardModelError(RuntimeError):
    """The reward model gave no score; the message says why."""


class RewardModel:
    """A client of one reward model's server.

    Args:
        settings: Where it is, and what its score weighs. What the environment variable
            `MARCH_REWARD_MODEL_TOKEN` holds, if it is there, is sent as a bearer token.
    """

    def __init__(self, settings: RewardModelSettings) -> None:
        self._settings = settings
        token = os.environ.get(TOKEN_VARIABLE)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.AsyncClient(timeout=settings.timeout_s, headers=headers, trust_env=False)

    async def term(self, prompt: str, response: str) -> float:
        """Returns the weighed score of a response, within the bound.

        Args:
            prompt: As the policy saw it, its chat template included.
            response: The policy's text.

        Raises:
            RewardModelError: it cannot be reached, or its answer is no finite number.
        """
        score = _score(await self._asked(prompt + response))
        limit = self._settings.limit
        return max(-limit, min(limit, self._settings.weight * score))

    async def _asked(self, text: str) -> httpx.Response:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception_type(httpx.HTTPError),
        )
        try:
            async for attempt in attempts:
                with attempt:
                    answer = await self._http.post(self._settings.url, json={"query": [text]})
                    answer.raise_for_status()
        except RetryError as error:
            cause = error.last_attempt.exception()
            raise RewardModelError(f"{self._settings.url}: {type(cause).__name__}: {cause}") from cause
        return answer


def _score(answer: httpx.Response) -> float:
    """The one score of an answer; a list of one, or a number, as OpenRLHF's client takes them."""
    try:
        rewards = answer.json()["rewards"]
        score = rewards[0] if isinstance(rewards, list) and len(rewards) == 1 else rewards
        value = float(score) if isinstance(score, int | float) and not isinstance(score, bool) else math.nan
    except (ValueError, KeyError, TypeError) as error:
        raise RewardModelError(f"no score in {answer.text[:200]!r}") from error
    if not math.isfinite(value):
        raise RewardModelError(f"no finite score in {answer.text[:200]!r}")
    return value
