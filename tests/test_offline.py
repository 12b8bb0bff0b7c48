"""The offline audit keeps order, loses nothing to a kill, and never mixes verdicts of different audits."""

import asyncio
import json
import os
import random
import re
import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reward.config import AuditConfig, OpenAISamplerConfig, SamplingSettings
from reward.judging.vote import Reason
from reward.offline.files import only_writer, replace_file
from reward.offline.run import Summary, run_audit
from reward.samplers import Message, SamplerError
from reward.types import Outcome, Sample, SampleGroup, Verdict
from tests.audit_jobs import (
    RAGTRUTH,
    Watch,
    files,
    ragtruth_job,
    run,
    shop_file,
    shop_job,
    shop_row,
    shop_rows,
    verdicts,
)

MODEL = OpenAISamplerConfig(base_url="http://127.0.0.1:9/v1", model="m")


class ShopSampler:
    """Knows what things cost: proposes the response's number, and answers with the documents' number.

    Args:
        failing: Prices whose audit fails.
        delay_s: Longest time that a request takes; the time is random.
    """

    def __init__(self, failing: Sequence[int] = (), delay_s: float = 0.0) -> None:
        self.failing = {str(price) for price in failing}
        self.in_flight = self.most_in_flight = 0
        self.closed = False
        self._delay_s = delay_s
        self._random = random.Random(0)

    model = "shop"

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self._random.random() * self._delay_s)
        self.in_flight -= 1
        found = re.search(r"(\d+) euros", messages[-1]["content"])
        assert found is not None
        if found[1] in self.failing:
            raise SamplerError("connection", "the server went away")
        proposes = messages[0]["content"] == "proposer"
        text = f"- Question: How much is it? [Answer: {found[1]}]" if proposes else f"1. [Answer: {found[1]}]"
        return SampleGroup(samples=(Sample(text=text, finish_reason="stop"),) * n)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"]) for message in messages)

    async def ready(self) -> None:
        pass

    async def close(self) -> None:
        self.closed = True


def test_one_verdict_a_row_in_order(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    summary, changed, watch = run(job)
    ids = [json.loads(line)["id"] for line in (RAGTRUTH / "response.jsonl").read_text().splitlines()]
    assert [row["id"] for row in map(json.loads, job.output.read_text().splitlines())] == ids
    assert (changed, watch.started, watch.audited) == (True, (54, 0), ids)
    assert summary == Summary.model_validate_json((tmp_path / "out.summary.json").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.summary.json"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"audit": AuditConfig(prompts="compact", reward_refuted=-0.5)}, "was audited with other settings"),
        ({"sampler": MODEL}, "was audited with other settings"),
        ({"num_rows": 5}, "is not among the input's rows"),
    ],
)
def test_another_audits_verdicts_are_never_mixed_in(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    run(shop_job(tmp_path))
    before = files(tmp_path)["out.jsonl"]
    with pytest.raises(ValueError, match=r"use another --out, or --overwrite") as caught:
        run(shop_job(tmp_path, **changes), ShopSampler())
    assert says in str(caught.value)
    assert files(tmp_path)["out.jsonl"] == before
    run(shop_job(tmp_path, overwrite=True, **changes), ShopSampler())


def test_a_row_that_changed_is_never_kept(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    run(job)
    shop_file(tmp_path, [shop_row(100), shop_row(101, said=5)])
    with pytest.raises(ValueError, match=r"out\.jsonl:2: row 'r101' has changed in the input"):
        run(job)


def test_a_file_that_is_no_output_is_left_alone(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    job.output.write_text('{"my": "notes"}\n')
    with pytest.raises(ValueError, match=r"out\.jsonl:1: is not a verdict of this version"):
        run(job)
    assert job.output.read_text() == '{"my": "notes"}\n'


def test_the_input_is_never_written_over(tmp_path: Path) -> None:
    job = shop_job(tmp_path, output=tmp_path / "in.jsonl", overwrite=True)
    summary = shop_file(tmp_path, [shop_row(1)]).rename(tmp_path / "out.summary.json")
    shop_file(tmp_path, [shop_row(2)])
    beside = shop_job(tmp_path, input=summary, row_format="jsonl")
    before = files(tmp_path)
    for one in (job, beside):
        with pytest.raises(ValueError, match="is an input"):
            run(one)
    assert files(tmp_path) == before


def test_two_writers_of_one_output_are_refused(tmp_path: Path) -> None:
    import fcntl

    job = shop_job(tmp_path)
    with job.output.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="another audit writes it"):
            run(job)


def test_an_id_that_is_used_twice_is_named_with_both_places(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    shop_file(tmp_path, [shop_row(1), shop_row(2), shop_row(1)])
    with pytest.raises(ValueError, match=r"in\.jsonl:3: id: 'r1' is used at .*in\.jsonl:1 already"):
        run(job)


def test_documents_over_the_budget_are_unscored_and_the_others_audited(tmp_path: Path) -> None:
    job = shop_job(tmp_path, audit=AuditConfig(max_documents_chars=30))
    shop_file(tmp_path, [shop_row(1), shop_row(2) | {"documents": ["It costs 2 euros. " * 9]}])
    run(job)
    first, second = verdicts(job)
    assert first.outcome is Outcome.SUPPORTED
    assert (second.outcome, second.reason) == (Outcome.UNSCORED, Reason.DOCUMENTS_TOO_LONG)


def test_a_bad_row_loses_nothing_that_was_written(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    run(job)
    before = files(tmp_path)
    with job.input.open("a") as file:
        file.write('{"id": "torn", \n')
    with pytest.raises(ValueError, match=r"in\.jsonl:13: not JSON"):
        run(job)
    del before["in.jsonl"]
    assert before.items() <= files(tmp_path).items()


def test_an_empty_input_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no row"):
        run(shop_job(tmp_path, num_rows=0))


def test_a_model_audits_many_rows_at_once_and_in_order(tmp_path: Path) -> None:
    job = shop_job(tmp_path, num_rows=60, sampler=MODEL, concurrency=5)
    sampler = ShopSampler(delay_s=0.01)
    summary, _, watch = run(job, sampler)
    assert [row.id for row in verdicts(job)] == sorted(watch.audited) == [f"r{100 + i}" for i in range(60)]
    assert 1 < sampler.most_in_flight <= 5
    assert sampler.closed
    assert summary.figures.outcomes == {"SUPPORTED": 45, "REFUTED": 15, "NO_CLAIMS": 0, "UNSCORED": 0}


def test_rows_that_could_not_be_scored_are_tried_again_and_only_they(tmp_path: Path) -> None:
    expected = shop_job(tmp_path, sampler=MODEL, output=tmp_path / "expected.jsonl")
    run(expected, ShopSampler())
    job = shop_job(tmp_path, sampler=MODEL)
    summary, _, _ = run(job, ShopSampler(failing=[102, 105, 106]))
    assert [row.id for row in verdicts(job) if row.outcome is Outcome.UNSCORED] == ["r102", "r105", "r106"]
    assert all((row.reward is None) == (row.outcome is Outcome.UNSCORED) for row in verdicts(job))
    assert summary.figures.unscored_reasons == {"connection": 3}
    _, changed, watch = run(job, ShopSampler(failing=[105]))
    assert (changed, watch.started) == (True, (12, 9))
    assert sorted(watch.audited) == ["r102", "r105", "r106"]
    run(job, ShopSampler())
    assert job.output.read_bytes() == expected.output.read_bytes()
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.jsonl", "out.summary.json"]
    assert run(job, ShopSampler())[1] is False


@pytest.mark.parametrize("kill_after", range(0, 10))
def test_a_kill_while_rows_are_tried_again_loses_no_verdict(kill_after: int, tmp_path: Path) -> None:
    job = shop_job(tmp_path, sampler=MODEL, concurrency=1)
    run(job, ShopSampler(failing=[102, 105]))

    class Killed(Watch):
        def advance(self, verdict: Verdict) -> None:
            super().advance(verdict)
            raise InterruptedError

    for _ in range(kill_after):
        try:
            run_audit(job, Killed(), sampler=ShopSampler(failing=[105]))
        except InterruptedError:
            continue
    _, _, watch = run(job, ShopSampler())
    assert set(watch.audited) <= {"r102", "r105"}
    assert [row.outcome for row in verdicts(job)].count(Outcome.UNSCORED) == 0
    assert [row.id for row in verdicts(job)] == [f"r{100 + i}" for i in range(12)]


def test_a_slow_row_holds_up_no_other_and_the_file_is_put_in_order(tmp_path: Path) -> None:
    job = shop_job(tmp_path, sampler=MODEL, concurrency=2)
    written: list[list[str]] = []

    class Slow(ShopSampler):
        async def sample(self, messages: Sequence[Message], **rest: Any) -> SampleGroup:
            if "100 euros" in messages[-1]["content"]:
                await asyncio.sleep(0.5)
            return await super().sample(messages, **rest)

    class Reading(Watch):
        def advance(self, verdict: Verdict) -> None:
            written.append([row.id for row in verdicts(job)])

    run_audit(job, Reading(), sampler=Slow())
    assert [len(ids) for ids in written] == list(range(1, 13))
    assert written[-1] == [f"r{100 + i}" for i in range(1, 12)] + ["r100"]
    assert [row.id for row in verdicts(job)] == [f"r{100 + i}" for i in range(12)]


@pytest.mark.parametrize("change", ["edited", "cut"])
def test_an_input_that_changes_while_it_is_audited_is_no_success(tmp_path: Path, change: str) -> None:
    job = shop_job(tmp_path)
    lines = job.input.read_text().splitlines(keepends=True)

    class Exporter(Watch):
        def start(self, total: int, kept: int) -> None:
            super().start(total, kept)
            last = lines[-1].replace("euros", "dollars") if change == "edited" else ""
            job.input.write_text("".join([*lines[:-1], last]))

    with pytest.raises(ValueError, match=r"has changed while it was read|1 rows are gone"):
        run_audit(job, Exporter())
    assert not job.summary_path.exists()


def test_a_device_or_a_pipe_is_no_output_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="pipe: is a device, a pipe or a folder; give the name of a file"):
        replace_file(pipe, "text")
    with pytest.raises(ValueError, match="pipe: is a device"), only_writer(pipe):
        pass
    job = shop_job(tmp_path).model_copy(update={"output": pipe})
    with pytest.raises(ValueError, match="pipe: is a device"):
        run_audit(job, Watch())
    assert pipe.is_fifo()


@contextmanager
def no_file_over(num_bytes: int) -> Iterator[None]:
    """As on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_named_by_its_file_and_keeps_what_was_written(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    with no_file_over(3000), pytest.raises(OSError, match="File too large") as caught:
        run(job)
    assert caught.value.filename == str(job.output)
    assert 0 < job.output.stat().st_size <= 3000
    assert run(job)[0].num_audited < 12


def test_a_full_disk_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with no_file_over(3000), pytest.raises(OSError, match="File too large") as caught:
        replace_file(path, ["x" * 2000] * 4)
    assert caught.value.filename == str(path)
    job = shop_job(tmp_path, sampler=MODEL)
    run(job, ShopSampler(failing=[102]))
    with no_file_over(job.output.stat().st_size - 100), pytest.raises(OSError, match="File too large"):
        run(job, ShopSampler())
    assert not list(tmp_path.glob("*.tmp"))


def test_two_that_write_one_file_leave_one_of_both(tmp_path: Path) -> None:
    file, texts = tmp_path / "page.html", ["a" * 200_000, "b" * 300_000]

    def write(text: str) -> None:
        for _ in range(40):
            replace_file(file, text)
            assert file.read_text() in texts

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, texts))
    assert list(tmp_path.iterdir()) == [file]


def test_a_model_that_is_not_there_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    sampler = MODEL.model_copy(update={"max_retries": 0})
    job = shop_job(tmp_path, sampler=sampler)
    with pytest.raises(ValueError, match=r"model: http://127\.0\.0\.1:9/v1 cannot be reached") as caught:
        run(job)
    assert "\n" not in str(caught.value)
    assert not job.output.exists()


def test_an_earlier_audit_stays_until_the_model_of_the_next_one_answers(tmp_path: Path) -> None:
    run(shop_job(tmp_path))
    before = files(tmp_path)
    sampler = MODEL.model_copy(update={"max_retries": 0})
    job = shop_job(tmp_path, input=tmp_path / "in.jsonl", sampler=sampler, overwrite=True)
    with pytest.raises(ValueError, match="cannot be reached"):
        run(job)
    assert files(tmp_path) == before
    assert len(run(job, ShopSampler())[2].audited) == 12


def test_labels_that_come_later_are_counted_and_nothing_is_audited_again(tmp_path: Path) -> None:
    assert run(shop_job(tmp_path))[0].figures.human == {}
    labelled = [row | {"human_spans": []} for row in shop_rows(12)]
    job = shop_job(tmp_path, input=shop_file(tmp_path, labelled))
    summary, changed, watch = run(job)
    assert changed and not watch.audited and summary.figures.human["overall"].false_alarms.n == 12
    assert run(job)[1] is False


@pytest.mark.parametrize("span", [{"start": 0, "end": 99}, {"start": 5, "end": 2}])
def test_a_mark_outside_the_response_is_named(span: dict[str, int], tmp_path: Path) -> None:
    path = shop_file(tmp_path, [shop_row(100) | {"human_spans": [span]}])
    with pytest.raises(ValueError, match=r"in\.jsonl:1: .*human_spans"):
        run(shop_job(tmp_path, input=path))


def test_another_address_of_the_same_model_goes_on(tmp_path: Path) -> None:
    run(shop_job(tmp_path, sampler=MODEL), ShopSampler(failing=[102]))
    moved = MODEL.model_copy(update={"base_urls": ("http://127.0.0.1:8/v1",), "timeout_s": 5.0})
    assert run(shop_job(tmp_path, sampler=moved), ShopSampler())[2].audited == ["r102"]


def test_the_output_is_flushed_row_by_row(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    sizes: list[int] = []

    class Sizes(Watch):
        def advance(self, verdict: Verdict) -> None:
            sizes.append(os.stat(job.output).st_size)

    run_audit(job, Sizes())
    assert sizes == sorted(set(sizes))
    assert len(sizes) == 12
