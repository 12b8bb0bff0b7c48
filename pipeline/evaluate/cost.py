"""What an evaluation will take and what it took: requests, tokens, money.

Prompts are counted by the servers' tokenizers, on some prompts of each benchmark and scaled up; where a
server cannot be asked, four characters are a token. Lengths of answers and verdicts are assumptions until
some are kept; then they are their mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.evaluate.benchmark import JudgeRequest
from pipeline.evaluate.generate import generation_tasks, texts_of
from pipeline.evaluate.plan import Plan, PlannedBenchmark
from pipeline.evaluate.store import Store
from reward.config import Settings
from reward.samplers import Message, Sampler, SamplerError
from reward.types import TokenUse

ANSWER_TOKENS, VERDICT_TOKENS = 300, 200  # assumed
_CHARS_PER_TOKEN = 4  # of English
_MOST_COUNTED = 24  # prompts of a benchmark that are really counted
_MILLION = 1_000_000


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

    def of_model(self, use: TokenUse | None) -> float | None:
        """What the model under test costs; None where tokens are not known."""
        return None if use is None else _price(use, self.model_in, self.model_out)

    def of_judge(self, use: TokenUse | None) -> float | None:
        """What the judge costs; None where tokens are not known."""
        return None if use is None else _price(use, self.judge_in, self.judge_out)


@dataclass(frozen=True)
class Expected:
    """What is still to be asked of one benchmark."""

    name: str
    num_items: int
    num_prompts: int  # requests to the model that are not kept yet
    num_judgements: int  # questions to the judge that are not kept yet, without retries
    model: TokenUse
    judge: TokenUse
    are_counted: bool  # by tokenizers; else by characters


async def expect(
    plan: Plan, stores: Mapping[str, Store], *, model: Sampler | None, judge: Sampler | None
) -> list[Expected]:
    """What is still to be asked, by benchmark.

    Args:
        plan: What shall be evaluated.
        stores: What is kept already.
        model: Counts its tokens; None, or one that does not answer, leaves it to characters.
        judge: The same.
    """
    counting = {"model": await _answering(model), "judge": await _answering(judge)}
    return [await _expected(plan, one, stores[one.name], counting) for one in plan.benchmarks]


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
    plan: Plan, one: PlannedBenchmark, store: Store, counting: Mapping[str, Sampler | None]
) -> Expected:
    job = plan.job
    tasks = [task for task in generation_tasks(job, one, store) if not store.require(task.place, task.digest)]
    judged = _questions(plan, one, store)
    answer, verdict = (
        _length(store, "generations", ANSWER_TOKENS),
        _length(store, "judgement", VERDICT_TOKENS),
    )
    per_prompt = await _mean_tokens([task.prompt.messages for task in tasks], counting["model"])
    per_question = await _mean_tokens([question.messages for question, _ in judged], counting["judge"])
    num_judgements = sum(number for _, number in judged)
    num_answers = len(tasks) * job.num_generations
    return Expected(
        name=one.name,
        num_items=len(one.items),
        num_prompts=len(tasks),
        num_judgements=num_judgements,
        model=TokenUse(num_prompt=round(per_prompt * len(tasks)), num_completion=round(answer * num_answers)),
        judge=TokenUse(
            num_prompt=round((per_question + answer) * num_judgements),
            num_completion=round(verdict * num_judgements),
        ),
        are_counted=all(counting.values()),
    )


def _questions(plan: Plan, one: PlannedBenchmark, store: Store) -> list[tuple[JudgeRequest, int]]:
    """A question to the judge for each prompt, about an empty answer, and how often it is still asked."""
    found = []
    for item in one.items:
        for prompt in one.prompts[item.id]:
            request = one.benchmark.judge_request(item, prompt, prompt.given or "")
            if request is None:
                continue
            texts = texts_of(store, item, prompt)
            total = len(texts) if texts else plan.job.num_generations
            kept = [store.judgement(item.id, prompt.name, index) for index in range(len(texts))]
            found.append((request, total - sum(each is not None and each.read for each in kept)))
    return [(request, number) for request, number in found if number]


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


def _length(store: Store, kind: str, assumed: int) -> float:
    """Tokens of an answer or a verdict: the mean of what is kept, or the assumption."""
    use, num_texts = store.written(kind)
    return use.num_completion / num_texts if use and num_texts else float(assumed)


def _price(use: TokenUse, price_in: float, price_out: float) -> float:
    return (use.num_prompt * price_in + use.num_completion * price_out) / _MILLION
