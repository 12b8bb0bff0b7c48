"""What an evaluation will take: requests, tokens, money.

Prompts are counted by the servers' tokenizers, on some prompts of each benchmark and scaled up; where a
server cannot be asked, four characters are a token. Lengths of answers and verdicts are assumptions until
some are kept; then they are their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.log import EvalLog

from pipeline.evaluate.logs import answered_samples, read_log
from pipeline.evaluate.plan import EvaluationJob, PlannedBenchmark, Stage, make_plan
from pipeline.evaluate.results import Counts
from pipeline.evaluate.run import newest_logs
from reward.config import Settings
from reward.samplers import Message, Sampler, SamplerError, make_sampler
from reward.types import TokenUse

ANSWER_TOKENS, VERDICT_TOKENS = 300, 200  # assumed
_CHARS_PER_TOKEN = 4  # of English
_MOST_COUNTED = 24  # prompts of a benchmark that are really counted


class Prices(Settings):
    """Money per million tokens, in whatever currency."""

    model_in: float = 0.0
    model_out: float = 0.0
    judge_in: float = 0.0
    judge_out: float = 0.0

    @property
    def are_given(self) -> bool:
        """Whether there is anything to multiply with."""
        return any((self.model_in, self.model_out, self.judge_in, self.judge_out))

    def of(self, model: TokenUse, judge: TokenUse) -> float:
        """What model and judge cost."""
        model_cost = model.num_prompt * self.model_in + model.num_completion * self.model_out
        judge_cost = judge.num_prompt * self.judge_in + judge.num_completion * self.judge_out
        return (model_cost + judge_cost) / 1_000_000


@dataclass(frozen=True)
class Expected:
    """What is still to be asked of one benchmark."""

    name: str
    num_items: int
    num_answers: int  # requests to the model that are not kept yet
    num_judgements: int  # questions to the judge that are not kept yet, without retries
    model: TokenUse
    judge: TokenUse
    are_counted: bool  # by tokenizers; else by characters


async def expect(job: EvaluationJob) -> list[Expected]:
    """What is still to be asked, by benchmark; nothing is asked of a model, and nothing written.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a row or a setting cannot be used.
    """
    planned = make_plan(job)
    made, judged = (newest_logs(job, stage) for stage in Stage)
    samplers = [make_sampler(one) if one else None for one in (job.model, job.judge)]
    try:
        model, judge = [await _answering(one) for one in samplers]
        return [
            await _expected(one, made.get(one.name), judged.get(one.name), model, judge) for one in planned
        ]
    finally:
        for sampler in samplers:
            if sampler is not None:
                await sampler.close()


async def _answering(sampler: Sampler | None) -> Sampler | None:
    """The sampler, if it can be asked."""
    if sampler is None:
        return None
    try:
        await sampler.ready()
    except SamplerError:
        return None
    return sampler


async def _expected(
    one: PlannedBenchmark,
    made: EvalLog | None,
    judged: EvalLog | None,
    model: Sampler | None,
    judge: Sampler | None,
) -> Expected:
    kept = read_log(one, judged, made)[1] if judged else Counts()
    num_kept = one.prompts_each * len(answered_samples(made)) if made else 0
    num_answers = 0 if one.is_given else one.num_answers - num_kept
    num_judgements = one.num_answers - kept.num_judgements - kept.num_too_long if one.is_judged else 0
    num_asked = kept.num_judgements + kept.num_unread + kept.num_retries
    answer = _mean_written(kept.model_use, kept.num_generations, assumed=ANSWER_TOKENS)
    verdict = _mean_written(kept.judge_use, num_asked, assumed=VERDICT_TOKENS)
    prompts = [(item, prompt) for item in one.asked for prompt in one.prompts(item)]
    asked = [one.benchmark.judge_request(item, prompt, prompt.given or "") for item, prompt in prompts]
    per_prompt = await _mean_tokens([prompt.messages for _, prompt in prompts], model)
    per_question = await _mean_tokens([request.messages for request in asked if request], judge)
    return Expected(
        name=one.name,
        num_items=len(one.asked),
        num_answers=num_answers,
        num_judgements=num_judgements,
        model=_use(num_answers, per_prompt, answer),
        judge=_use(num_judgements, per_question + answer, verdict),
        are_counted=model is not None and (judge is not None or not one.is_judged),
    )


def _mean_written(use: TokenUse | None, number: int, *, assumed: int) -> float:
    return use.num_completion / number if use and number else assumed


def _use(number: int, prompt: float, written: float) -> TokenUse:
    return TokenUse(num_prompt=round(number * prompt), num_completion=round(number * written))


async def _mean_tokens(chats: Sequence[Sequence[Message]], counting: Sampler | None) -> float:
    """Tokens of a chat, on average over some of them."""
    if not chats:
        return 0.0
    chosen = chats[:: max(1, len(chats) // _MOST_COUNTED)]
    if counting is None:
        lengths = [sum(len(message["content"]) for message in chat) / _CHARS_PER_TOKEN for chat in chosen]
    else:
        lengths = [float(await counting.count_tokens(chat)) for chat in chosen]
    return sum(lengths) / len(lengths)
