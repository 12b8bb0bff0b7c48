"""The model in Inspect's role `grader`: as the judge's server, and as the one that audits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from inspect_ai.model import GenerateConfig, Model, ResponseSchema, get_model
from inspect_ai.util import LimitExceededError, json_schema

from pipeline.evaluate.benchmarks.prompts import JudgeVerdict
from pipeline.evaluate.tasks.samples import chat, generation_of
from pipeline.evaluate.tasks.served import ServedModel
from reward.config import SamplingSettings
from reward.samplers import Message, Sampler, SamplerError
from reward.types import Sample, SampleGroup

ROLE = "grader"


def grader() -> Model:
    """The judge: `--model-role grader=...`.

    Raises:
        PrerequisiteError: there is none; the model under test never judges itself unasked.
    """
    return get_model(role=ROLE, required=True)


def generate_config(settings: SamplingSettings, verdict: type[JudgeVerdict] | None = None) -> GenerateConfig:
    """How the grader is sampled, bound to the schema of a verdict where its provider can."""
    schema = None
    if verdict is not None:
        schema = ResponseSchema(name="verdict", json_schema=json_schema(verdict), strict=True)
    return GenerateConfig(
        temperature=settings.temperature,
        top_p=settings.top_p if settings.top_p < 1 else None,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        response_schema=schema,
    )


async def grader_sampler() -> Sampler:
    """The grader as `reward.auditor` samples its roles: one of our own servers keeps what it can do."""
    api = grader().api
    return await api.sampler() if isinstance(api, ServedModel) else GraderSampler()


class GraderSampler:
    """A grader of any provider of Inspect's."""

    @property
    def model(self) -> str:
        """Its name, for the provenance of a verdict."""
        return str(grader())

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        """Asks `n` times, each with its own seed: not every provider gives several completions at once.

        Raises:
            SamplerError: any of them failed, after Inspect's own retries.
        """
        seeds = [(settings.seed or 0) + index for index in range(n)]
        asked = [settings.model_copy(update={"seed": seed}) for seed in seeds]
        return SampleGroup(samples=tuple(await asyncio.gather(*(self._one(messages, one) for one in asked))))

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """As the provider counts, or Inspect's estimate."""
        return await grader().count_tokens(chat(messages))

    async def ready(self) -> None:
        """Inspect tells what does not answer."""

    async def close(self) -> None:
        """Inspect closes its models."""

    async def _one(self, messages: Sequence[Message], settings: SamplingSettings) -> Sample:
        try:
            output = await grader().generate(chat(messages), config=generate_config(settings))
        except LimitExceededError:
            raise
        except Exception as error:  # each provider has its own
            raise SamplerError("engine", f"{type(error).__name__}: {error}") from error
        found = generation_of(output)
        if found.failure:
            reason = "prompt_too_long" if found.failure == "model_length" else "bad_response"
            raise SamplerError(reason, f"the grader gave no answer: {found.failure}")
        return Sample(text=found.text, finish_reason="length" if found.is_cut else "stop")
