"""Shared by the tests of Inspect's tasks: models that follow a script, in this process or over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score

from tests.evaluations import ChatServer

Says = Callable[[list[ChatMessage], GenerateConfig], str | ModelOutput]


class Script:
    """A model that says what a function of the chat and the settings returns, and keeps what was asked."""

    def __init__(self, says: Says) -> None:
        self._says = says
        self.asked: list[tuple[list[ChatMessage], GenerateConfig]] = []

    @property
    def model(self) -> Model:
        return get_model("mockllm/model", custom_outputs=self._answer)

    def _answer(self, chat: list[ChatMessage], _: Any, __: Any, config: GenerateConfig) -> ModelOutput:
        self.asked.append((chat, config))
        said = self._says(chat, config)
        output = said if isinstance(said, ModelOutput) else ModelOutput.from_content("mockllm", said)
        output.usage = ModelUsage()  # else its tokenizer would be fetched
        return output


def consistent(*_: Any) -> str:
    """A judge that is content."""
    return json.dumps({"reasoning": "so", "classification": "Consistent"})


Asked = Script | ChatServer


def run_task(
    folder: Path,
    name: str,
    model: Asked,
    grader: Asked | None = None,
    epochs: int | None = 1,
    **settings: Any,
) -> EvalLog:
    """A task by its registered name, as `inspect eval` runs it; None: as many epochs as it has itself."""
    (log,) = inspect_eval(
        f"march/{name}",
        model=_of_inspect(model),
        model_roles={"grader": _of_inspect(grader)} if grader else None,
        task_args=settings,
        epochs=epochs,
        log_dir=str(folder / "logs"),
        display="none",
        retry_on_error=0,
        max_retries=0,
    )
    return log


def _of_inspect(asked: Asked) -> Model:
    if isinstance(asked, Script):
        return asked.model
    return get_model(f"openai-api/local/{asked.model}", base_url=asked.url, api_key="none", memoize=False)


def figures(log: EvalLog) -> dict[str, tuple[float, int, int]]:
    """Of each score its mean over items, and how many items have it and have not."""
    assert log.results is not None
    return {
        one.name: (one.metrics["average"].value, one.scored_samples or 0, one.unscored_samples or 0)
        for one in log.results.scores
    }


def samples(log: EvalLog) -> list[EvalSample]:
    """Of every epoch."""
    assert log.samples
    return log.samples


def score(log: EvalLog, scorer: str) -> Score:
    """What a scorer said of the first item's first epoch."""
    found = samples(log)[0].scores
    assert found is not None
    return found[scorer]
