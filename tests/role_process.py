"""A sampler that plays the roles and can fail; as a script, a reward server on it in a process of its own:

    python tests/role_process.py CONFIG_JSON PAUSE_S

It imports nothing of the tests, since a package that OpenRLHF installs has their name.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from reward.config import SamplingSettings
from reward.samplers import Message, SamplerError
from reward.serving import server
from reward.serving.config import ServerConfig
from reward.types import Sample, SampleGroup, TokenUse


class RoleSampler:
    """Plays Proposer and Checker for `RESPONSE` by the compact prompts; `checked` is the Checker's number."""

    model = "role-player"
    version: int | None = None  # of every group

    def __init__(self) -> None:
        self.checked = "466"
        self.failures: list[Exception] = []  # risen one a call, before anything is answered
        self.pause_s = 0.0
        self.num_calls = 0
        self.num_cancelled = 0
        self.num_voters = 0  # of the last call
        self.is_ready = True
        self.num_cached: int | None = None  # tokens of the prompt's three
        self.num_looks = 0
        self.tells_ids = True  # or only their use
        self.differs = False  # each voter writes its own words

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        self.num_calls += 1
        self.num_voters = n
        version = self.version
        try:
            await asyncio.sleep(self.pause_s)
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
        if self.failures:
            raise self.failures.pop(0)
        text = f"1. Evidence: it raised {self.checked} euros. [Answer: {self.checked}]"
        if messages[0]["content"] == "proposer":
            text = "- Question: How many euros did the July picnic raise? [Answer: 466]"
        if not self.tells_ids:
            alone = Sample(text=text, finish_reason="stop")
            return SampleGroup(samples=(alone,) * n, use=TokenUse(num_prompt=7, num_completion=2 * n))
        sample = Sample(text=text, finish_reason="stop", token_ids=(5, 6), logprobs=(-0.1, -0.2))
        others = [sample.model_copy(update={"text": f"{text}{' ' * i}"}) for i in range(n)]
        return SampleGroup(
            samples=tuple(others) if self.differs else (sample,) * n,
            prompt_token_ids=(1, 2, 3),
            weights_version=version,
            use=TokenUse(num_prompt=3, num_completion=2, num_cached=self.num_cached),
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    async def ready(self) -> None:
        self.num_looks += 1
        if not self.is_ready:
            raise SamplerError("engine", "secret address")

    async def close(self) -> None: ...


def main() -> None:
    sampler = RoleSampler()
    sampler.pause_s = float(sys.argv[2])
    server.make_sampler = lambda _: sampler
    server.serve(ServerConfig.model_validate_json(sys.argv[1]))


if __name__ == "__main__":
    main()
