"""The engine samplers: their token edge, and both on real engines (Ray actors; vLLM on the tiny policy)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reward.config import LocalSamplerConfig, RaySamplerConfig, SamplingSettings
from reward.prompts import load_prompts
from reward.samplers import Message, SamplerError, make_sampler
from reward.samplers.engine import LocalEngineSampler, RayEngineSampler
from reward.samplers.tokens import completion_budget, load_tokenizer, prompt_token_ids, sample_group
from reward.types import Document, RagQuery, SampleGroup

TINY_POLICY = Path(__file__).parents[1] / "pipeline" / "tiny" / "checkpoint"
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
WORDS = ["<pad>", "<end>", "<user>", "<assistant>", "how", "many", "466", "euros"]
PAD, END, USER, ASSISTANT, HOW, MANY, NUMBER, EUROS = range(len(WORDS))
MESSAGES = [Message(role="user", content="how many euros")]
PROMPT = (USER, HOW, MANY, EUROS, END, ASSISTANT)
SETTINGS = SamplingSettings(temperature=1.0, max_tokens=32)


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.add_special_tokens(WORDS[:4])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(folder)
    return folder


def completion(token_ids: list[int], finish_reason: str = "stop") -> Any:
    logprobs = [{token: SimpleNamespace(logprob=-0.5 * token)} for token in token_ids]
    return SimpleNamespace(token_ids=token_ids, finish_reason=finish_reason, logprobs=logprobs)


def group_of(folder: Path, completions: list[Any], *, n: int, num_asked: int) -> SampleGroup:
    output = SimpleNamespace(prompt_token_ids=list(PROMPT), outputs=completions)
    return sample_group(
        output,
        load_tokenizer(str(folder), field="x"),
        n=n,
        params=SimpleNamespace(n=num_asked),
        weights_version=7,
    )


def test_a_prompt_is_the_rendered_chat_and_nothing_more(tokenizer_folder: Path) -> None:
    tokenizer = load_tokenizer(str(tokenizer_folder), field="sampler.tokenizer")
    assert tuple(prompt_token_ids(tokenizer, MESSAGES)) == PROMPT


def test_token_ids_keep_the_end_token_and_the_text_does_not(tokenizer_folder: Path) -> None:
    completions = [completion([NUMBER, EUROS, END]), completion([NUMBER, EUROS], "length")]
    group = group_of(tokenizer_folder, completions, n=2, num_asked=2)
    stopped, cut = group.samples
    assert (stopped.token_ids, stopped.text, stopped.finish_reason) == (
        (NUMBER, EUROS, END),
        "466 euros",
        "stop",
    )
    assert (cut.token_ids, cut.text, cut.finish_reason) == ((NUMBER, EUROS), "466 euros", "length")
    assert stopped.logprobs == (-3.0, -3.5, -0.5)
    assert group.prompt_token_ids == PROMPT and group.weights_version == 7


def test_one_greedy_completion_stands_for_all(tokenizer_folder: Path) -> None:
    group = group_of(tokenizer_folder, [completion([NUMBER, END])], n=3, num_asked=1)
    assert [s.text for s in group.samples] == ["466"] * 3


@pytest.mark.parametrize(
    ("completions", "reason"),
    [
        ([], "bad_response"),
        ([completion([NUMBER, END])], "bad_response"),  # one of two is not repeated
        ([completion([NUMBER, END]), completion([])], "engine"),
        ([completion([NUMBER, END]), completion([NUMBER], "abort")], "engine"),
    ],
)
def test_a_bad_output_is_a_failure(tokenizer_folder: Path, completions: list[Any], reason: str) -> None:
    with pytest.raises(SamplerError) as caught:
        group_of(tokenizer_folder, completions, n=2, num_asked=2)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("num_prompt", "max_tokens", "expected"),
    [
        (10, 32, 32),
        (68, 32, 32),
        (69, 32, 31),
        (84, 32, 16),
        (85, 32, None),
        (96, 4, 4),
        (97, 4, None),
        (120, 4, None),
    ],
)
def test_a_completion_gets_what_the_prompt_leaves_or_the_prompt_is_refused(
    num_prompt: int, max_tokens: int, expected: int | None
) -> None:
    if expected is not None:
        assert completion_budget(num_prompt, max_tokens=max_tokens, max_model_len=100) == expected
        return
    with pytest.raises(SamplerError, match="max_model_len 100") as caught:
        completion_budget(num_prompt, max_tokens=max_tokens, max_model_len=100)
    assert caught.value.reason == "prompt_too_long"


def test_a_missing_model_or_template_is_one_clear_line(tokenizer_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sampler\.model: '/no/such' is not a folder"):
        make_sampler(LocalSamplerConfig(model="/no/such"))
    for file in tokenizer_folder.iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="has no chat template"):
        load_tokenizer(str(tmp_path), field="sampler.tokenizer")


CLUSTER = """
import ray, sys
ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    """A cluster of another process, so that the sampler is the second driver that it is in a training run."""
    environment = os.environ | {"RAY_raylet_start_wait_time_s": "240"}  # a busy machine is slow to start it
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as cluster:
        assert cluster.stdout is not None and cluster.stdin is not None
        address = cluster.stdout.readline().strip()
        assert address, "Ray did not start"
        yield address
        import ray

        ray.shutdown()
        cluster.stdin.close()
        cluster.wait(30)


@pytest.fixture
def start_training(ray_address: str) -> Iterator[Callable[[int], Any]]:
    """Gives a function that starts engines and their registry, as a trainer does; all end with the test."""
    started: list[Any] = []
    import ray

    class Engine:
        def __init__(self, registry: Any) -> None:
            self.registry, self.mode, self.calls, self.cancelled = registry, "answer", 0, 0

        async def behave(self, mode: str) -> None:
            self.mode = mode

        async def counts(self) -> tuple[int, int]:
            return self.calls, self.cancelled

        async def generate(self, prompt_token_ids: list[int], sampling_params: Any) -> Any:
            import asyncio
            from types import SimpleNamespace

            self.calls += 1
            try:
                await asyncio.sleep({"sleep": 60, "pause": 0.3}.get(self.mode, 0))
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            if self.mode == "raise":
                raise ValueError("the engine is ill")
            if self.mode == "sync":
                await self.registry.sync.remote()
            token_ids = [6, 7, 1]
            logprobs = [{token: SimpleNamespace(logprob=-1.0)} for token in token_ids]
            one = SimpleNamespace(token_ids=token_ids, logprobs=logprobs, finish_reason="stop")
            return SimpleNamespace(prompt_token_ids=prompt_token_ids, outputs=[one] * sampling_params.n)

    class Registry:
        def __init__(self) -> None:
            self.engines: list[Any] = []
            self.weights_version = 3

        def set_engines(self, engines: list[Any]) -> None:
            self.engines = engines

        def sync(self) -> None:
            self.weights_version += 1

        def snapshot(self) -> tuple[list[Any], int]:
            return self.engines, self.weights_version

    def start(num_engines: int) -> Any:
        ray.init(address=ray_address, namespace="march", ignore_reinit_error=True, log_to_driver=False)
        registry = ray.remote(Registry).options(name="march-engines", num_cpus=0).remote()
        engines = [ray.remote(Engine).options(num_cpus=0).remote(registry) for _ in range(num_engines)]
        ray.get(registry.set_engines.remote(engines))
        started.extend([registry, *engines])
        return SimpleNamespace(registry=registry, engines=engines)

    yield start
    for actor in started:
        ray.kill(actor)


def ray_sampler(address: str, folder: Path, *, timeout_s: float = 60) -> RayEngineSampler:
    config = RaySamplerConfig(address=address, tokenizer=str(folder), max_model_len=64, timeout_s=timeout_s)
    sampler = make_sampler(config)
    assert isinstance(sampler, RayEngineSampler)
    return sampler


@pytest.mark.slow
def test_a_sampler_finds_the_engines_when_they_come_and_when_they_come_again(
    ray_address: str, start_training: Callable[[int], Any], tokenizer_folder: Path
) -> None:
    import ray

    async def run() -> None:
        sampler = ray_sampler(ray_address, tokenizer_folder)
        with pytest.raises(SamplerError) as early:
            await sampler.ready()
        assert early.value.reason == "engine"
        for _ in range(2):
            training = start_training(1)
            await sampler.ready()
            group = await sampler.sample(MESSAGES, n=3, settings=SETTINGS)
            assert [s.token_ids for s in group.samples] == [(NUMBER, EUROS, END)] * 3
            assert group.samples[0].text == "466 euros"
            assert group.prompt_token_ids == PROMPT and group.weights_version == 3
            for actor in [training.registry, *training.engines]:
                ray.kill(actor)
            with pytest.raises(SamplerError) as died:
                await sampler.sample(MESSAGES, n=3, settings=SETTINGS)
            assert died.value.reason == "engine"

    asyncio.run(run())


@pytest.mark.slow
def test_live_engines_share_the_load_and_fail_by_name(
    ray_address: str, start_training: Callable[[int], Any], tokenizer_folder: Path
) -> None:
    async def run() -> None:
        training = start_training(2)
        sampler = ray_sampler(ray_address, tokenizer_folder)
        sleepless = ray_sampler(ray_address, tokenizer_folder, timeout_s=1)
        await asyncio.gather(*(engine.behave.remote("pause") for engine in training.engines))
        await asyncio.gather(*(sampler.sample(MESSAGES, n=2, settings=SETTINGS) for _ in range(6)))
        assert [(await engine.counts.remote())[0] for engine in training.engines] == [3, 3]

        await training.engines[0].behave.remote("sync")
        group = await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        assert group.weights_version == 3
        assert (await training.registry.snapshot.remote())[1] == 4

        await training.engines[0].behave.remote("raise")
        with pytest.raises(SamplerError, match="the engine is ill") as ill:
            await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        assert ill.value.reason == "engine"

        await training.engines[0].behave.remote("sleep")
        with pytest.raises(SamplerError) as asleep:
            await sleepless.sample(MESSAGES, n=1, settings=SETTINGS)
        assert asleep.value.reason == "timeout"
        await asyncio.sleep(0.5)
        assert (await training.engines[0].counts.remote())[1] == 1, "the request was not taken back"

        long = [Message(role="user", content="how " * 60)]
        with pytest.raises(SamplerError) as refused:
            await sampler.sample(long, n=1, settings=SETTINGS)
        assert refused.value.reason == "prompt_too_long"

    asyncio.run(run())


@pytest.mark.slow
def test_vllm_in_this_process_gives_exact_ids() -> None:
    query = RagQuery(
        id="q",
        query="How many euros did the July picnic in Kabul raise?",
        documents=(Document(id="d", text="The July picnic in Kabul raised 466 euros."),),
    )
    messages = load_prompts("compact").checker(query.documents, [query.query])

    async def run() -> None:
        sampler = make_sampler(LocalSamplerConfig(model=str(TINY_POLICY)))
        assert isinstance(sampler, LocalEngineSampler)
        try:
            groups = await asyncio.gather(*(_sampled(sampler, messages, t) for t in (0.0, 1.0, 1.9)))
            await sampler.ready()
        finally:
            await sampler.close()
        greedy, warm, hot = groups
        for group in groups:
            _assert_exact(sampler._tokenizer, messages, group)
        assert len({s.token_ids for s in greedy.samples}) == 1
        assert len({s.token_ids for s in hot.samples}) > 1
        # Of the tempered distribution: the likeliest first token is less likely when it is hot.
        first = greedy.samples[0].token_ids[0]
        assert _first_logprob(hot, first) < _first_logprob(warm, first)

    asyncio.run(run())


async def _sampled(sampler: LocalEngineSampler, messages: list[Message], temperature: float) -> SampleGroup:
    return await sampler.sample(
        messages, n=16, settings=SamplingSettings(temperature=temperature, max_tokens=48)
    )


def _first_logprob(group: SampleGroup, token: int) -> float:
    return next(
        s.logprobs[0] for s in group.samples if s.token_ids and s.logprobs and s.token_ids[0] == token
    )


def _assert_exact(tokenizer: Any, messages: list[Message], group: SampleGroup) -> None:
    rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    for sample in group.samples:
        assert group.prompt_token_ids and sample.token_ids and sample.logprobs
        assert len(sample.logprobs) == len(sample.token_ids)
        end = tokenizer.eos_token if sample.finish_reason == "stop" else ""
        whole = tokenizer.decode([*group.prompt_token_ids, *sample.token_ids])
        assert whole == rendered + tokenizer.decode(sample.token_ids)
        if not set(sample.token_ids[:-1]) & special:  # which the text leaves out
            assert whole == rendered + sample.text + end
