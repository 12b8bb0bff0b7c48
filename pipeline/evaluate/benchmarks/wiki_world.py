"""Held-out rows of the world of real text: does an answer state what was asked, and nothing wrong?

The rows come with the package, or from 2WikiMultihopQA's official files. The file says which are asked:

    {"num_rows": 400, "wiki": {"kinds": ["number", "date"], "unanswerable_share": 0.2}}

Licence: Apache-2.0, as 2WikiMultihopQA's. `pipeline.worlds.judge` scores by the audit's own kinds of claims,
so no judge is needed; the policy is asked by the compact prompt that it was trained on. A slice is how many
facts are asked for; rows about one paragraph are a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, Prompt, PromptStyle
from pipeline.evaluate.majority import Judgement
from pipeline.worlds.judge import judge
from pipeline.worlds.wiki.settings import WikiSettings
from pipeline.worlds.world import Asked, WorldRow
from reward.config import Settings
from reward.offline.rows import explain
from reward.roles.prompts import load_prompts

_PROMPTS = load_prompts("compact")


class RowsFile(Settings):
    """Which rows are asked."""

    num_rows: int = Field(default=400, ge=1, le=100_000, description="The first of the held-out rows.")
    wiki: WikiSettings = WikiSettings()


class WikiWorldRows(Benchmark):
    """The benchmark `wiki`."""

    card = BenchmarkCard(
        name="wiki",
        title="Wikipedia facts",
        url="https://github.com/Alab-NII/2wikimultihop",
        licence="Apache-2.0",
        primary="right",
        scored_by="rule: every asked fact is stated and nothing wrong beside it; or a right abstention",
        styles=(PromptStyle.PLAIN,),
        prompt_digest=_PROMPTS.digest,
    )

    def items(self, source: Path) -> Iterator[Item]:
        """The rows, in their order; see `Benchmark.items`."""
        from pipeline.worlds.wiki.world import WikiWorld

        if not source.is_file():
            raise FileNotFoundError(f'{source}: no such file; write {{"num_rows": 400}} into it')
        try:
            asked = RowsFile.model_validate_json(source.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{source}: {explain(error)}; see {__name__}") from None
        for row in WikiWorld(asked.wiki).rows("held_out")[: asked.num_rows]:
            yield _item(row)

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The Solver's chat, as in training."""
        name = self.require_style(style).value
        return (Prompt(name=name, messages=tuple(_PROMPTS.solver(item.query))),)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        """What the truth says of an answer."""
        found = judge(_row(item), reply)
        return Judgement(passed=found.right, label="right" if found.right else "wrong")

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """Whether nothing in an answer is wrong, and the share of the asked facts that it states."""
        found = judge(_row(item), generation)
        coverage = found.coverage if found.answerable else None
        return {"faithful": float(found.faithful), "coverage": coverage}


def _item(row: WorldRow) -> Item:
    first, num = row.asked[0], len(row.asked)
    return Item(
        id=row.query.id,
        slice=f"{num} asked" if row.is_answerable else "no document answers",
        cluster=first.subject,
        query=row.query,
        references=tuple(asked.model_dump_json() for asked in row.asked),
    )


def _row(item: Item) -> WorldRow:
    return WorldRow(query=item.query, asked=tuple(Asked.model_validate_json(one) for one in item.references))
