"""An engine that answers at once, and answers for it to audit: what is left of an audit's time is ours.

As a script it is a reward server on such an engine, in a process of its own: `python -m bench.instant PORT`.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from unittest import mock

from reward.config import AuditConfig, OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message
from reward.serving import server
from reward.serving.config import ServerConfig
from reward.types import Document, RagQuery, Sample, SampleGroup

TOKEN = "a-token-of-the-benchmark"
AUDIT = AuditConfig(prompts="compact")
Case = tuple[RagQuery, str]


class InstantSampler:
    """Answers every question rightly at once, out of the prompt itself."""

    model = "instant"

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        """Returns `n` completions in the roles' formats."""
        role, text = messages[0]["content"], messages[-1]["content"]
        number = text.partition("raised ")[2].partition(" ")[0]  # none in the warm-up's greeting
        claim = f"- Question: What did the picnic raise? [Answer: {number}]"
        answer = f"1. Evidence: The picnic raised {number} euros. [Answer: {number}]"
        sample = Sample(text=claim if role == "proposer" else answer, finish_reason="stop")
        return SampleGroup(samples=(sample,) * n)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Never asked: no prompt is too long."""
        return 0

    async def ready(self) -> None:
        """Always."""

    async def close(self) -> None:
        """Nothing to free."""


def cases(num: int, rng: random.Random) -> list[Case]:
    """True answers to made-up queries, each with a document of 90 words."""
    return [_case(i, rng.randint(100, 999)) for i in range(num)]


def request_body(case: Case) -> bytes:
    """The case as `/v1/audit` takes it."""
    query, response = case
    return json.dumps({"query": query.model_dump(), "response": response}).encode()


def server_config(port: int) -> ServerConfig:
    """A server that audits each request again."""
    sampler = OpenAISamplerConfig(base_urls=("http://127.0.0.1:9/v1",), model="unused")
    return ServerConfig(port=port, audit=AUDIT, sampler=sampler, max_kept=0)


def _case(index: int, number: int) -> Case:
    text = f"The picnic raised {number} euros. Stall {index} closed early. " + "The market was quiet. " * 20
    query = RagQuery(id=str(index), query="What was raised?", documents=(Document(id="d1", text=text),))
    return query, f"The picnic raised {number} euros."


def main() -> None:
    """Serves until it is stopped; the token is in the environment."""
    with mock.patch.object(server, "make_sampler", lambda _: InstantSampler()):
        server.serve(server_config(int(sys.argv[1])))


if __name__ == "__main__":
    main()
