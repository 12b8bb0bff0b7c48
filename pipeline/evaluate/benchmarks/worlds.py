"""Benchmarks whose truth is known: an answer is right or wrong by rule, and no judge is asked.

Two worlds, for which there is nothing to fetch: a file says what is asked, and the same file asks the same.
`tiny` draws held-out worlds, `wiki` are held-out rows of real text: does an answer state what was asked, and
nothing wrong (`pipeline.tiny.truth`, `pipeline.worlds.judge`)?

    tiny    {"num_worlds": 240, "seed": 20260301}
    wiki    {"num_rows": 400, "wiki": {"kinds": ["number", "date"], "unanswerable_share": 0.2}}

And rows of your own, those of `march prepare jsonl`; `answers` are several ways to write the one answer, and
where no document answers, an abstention is right (`pipeline.worlds.known`).

    {"id": "1", "query": "How many came?", "documents": ["50 people came."], "answers": ["50", "fifty"]}
    {"id": "2", "query": "Who sang?", "documents": ["50 people came."], "unanswerable": true}

Of rows whose answer nobody knows, the lookup in the documents is the rule: it can show that an answer is made
up, and not that it answers the question.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field, ValidationError

from pipeline.data.plain import PlainRow
from pipeline.data.rows import parse_row
from pipeline.evaluate.benchmark import Benchmark, Item, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.multihop import em_and_f1
from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.majority import Judgement, Scores
from pipeline.settings.worlds import PLAIN_WORLD, WikiSettings, WorldSettings
from pipeline.statistics import linked
from pipeline.tiny.truth import held_out_rows
from pipeline.tiny.truth import judge as judge_tiny
from pipeline.worlds.judge import judge
from pipeline.worlds.known import is_right
from pipeline.worlds.wiki.world import WikiWorld
from pipeline.worlds.world import NUM_MEASURED, Asked, WorldRow
from pipeline.worlds.world import Judgement as Truth
from reward.config import AuditConfig, Settings
from reward.lexical import lexical_audit
from reward.offline.rows import explain
from reward.types import Outcome, RagQuery

_UNANSWERED = "no document answers"  # a slice


class TinyFile(Settings):
    """Which worlds of `tiny` are drawn."""

    num_worlds: int = Field(ge=1, le=100_000)
    seed: int = Field(ge=0, description="Of no training's seed: the split is another one anyway.")
    world: WorldSettings = PLAIN_WORLD

    def rows(self) -> Sequence[WorldRow]:
        return held_out_rows(self.num_worlds, self.seed, self.world)


class WikiFile(Settings):
    """Which rows of `wiki` are asked."""

    num_rows: int = Field(
        default=NUM_MEASURED, ge=1, le=100_000, description="The first of the held-out rows."
    )
    wiki: WikiSettings = WikiSettings()

    def rows(self) -> Sequence[WorldRow]:
        return WikiWorld(self.wiki).rows("held_out")[: self.num_rows]


class KnownTruth(Benchmark):
    """What the benchmarks of this file share: one style, and a rule in place of a judge."""

    primary = "right"
    styles = (PromptStyle.PLAIN,)
    prompt_set = "compact"  # what the policies of the worlds were trained on


class WikiFacts(KnownTruth):
    """The benchmark `wiki`; rows that share a subject, directly or over others, are one cluster."""

    name, title, licence = "wiki", "Wikipedia facts", "Apache-2.0"
    url = "https://github.com/Alab-NII/2wikimultihop"
    scored_by = "rule: every asked fact is stated and nothing wrong beside it; or a right abstention"
    file: ClassVar[type[TinyFile | WikiFile]] = WikiFile
    example = '{"num_rows": 400}'
    by_subject = True

    def items(self, source: Path) -> Iterator[Item]:
        if not source.is_file():
            raise FileNotFoundError(f"{source}: no such file; write {self.example} into it")
        try:
            rows = self.file.model_validate_json(source.read_bytes()).rows()
        except ValidationError as error:
            raise ValueError(f"{source}: {explain(error)}; see {__name__}") from None
        groups = linked([[one.subject for one in row.asked] for row in rows])
        for row, group in zip(rows, groups, strict=True):
            yield Item(
                id=row.query.id,
                slice=f"{len(row.asked)} asked" if row.is_answerable else _UNANSWERED,
                cluster=rows[group].asked[0].subject if self.by_subject else row.query.id,
                query=_unmarked(row.query),
                references=tuple(asked.model_dump_json() for asked in row.asked),
            )

    def truth(self, item: Item, answer: str) -> Truth:
        asked = tuple(Asked.model_validate_json(one) for one in item.references)
        return judge(WorldRow(query=item.query, asked=asked), answer)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        return _judgement(self.truth(item, judged_text(prompt.name, reply)).right)

    def measured(self, item: Item, prompt: str, generation: str) -> Scores:
        """Whether nothing in an answer is wrong, and the share of the asked facts that it states."""
        found = self.truth(item, judged_text(prompt, generation))
        return {"faithful": float(found.faithful), "coverage": found.coverage if found.answerable else None}


class TinyWorlds(WikiFacts):
    """The benchmark `tiny`; no two worlds share a document, so each is a cluster."""

    name, title = "tiny", "Tiny worlds"
    url = "pipeline/tiny/world.py"
    file, example = TinyFile, '{"num_worlds": 240, "seed": 0}'
    by_subject = False

    def truth(self, item: Item, answer: str) -> Truth:
        return judge_tiny(item.query, answer)


class OwnRows(KnownTruth):
    """The benchmark `jsonl`; rows that share a document are one cluster."""

    name, title, licence = "jsonl", "Your rows", "yours"
    url = "docs/evaluation-benchmarks.md"
    scored_by = "rule: it states the known answer; or a right abstention"
    prompt_set = "full"
    is_known = True  # whether the rows name their answers
    answerable = "answerable"

    def items(self, source: Path) -> Iterator[Item]:
        found = []
        for raw in PlainRow.raw_rows(source):
            row = parse_row(raw, PlainRow)
            if self.is_known and not (row.answers or row.unanswerable):
                raise ValueError(
                    f"{raw.place}: answers: give at least one, or unanswerable: true; rows whose answer "
                    f"nobody knows are for {self.name.replace('jsonl', 'jsonl_audit')}"
                )
            found.append((row, row.query(raw.place)))
        clusters = linked([[one.text for one in query.documents] for _, query in found])
        for (row, query), cluster in zip(found, clusters, strict=True):
            yield Item(
                id=row.id,
                slice=_UNANSWERED if row.unanswerable else self.answerable,
                cluster=found[cluster][0].id,
                query=_unmarked(query),
                references=row.answers,
            )

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        query = item.query.model_copy(update={"unanswerable": not item.references})
        return _judgement(bool(is_right(query, judged_text(prompt.name, reply), item.references)))

    def measured(self, item: Item, prompt: str, generation: str) -> Scores:
        """EM and F1 as HotpotQA has them, where an answer is known."""
        return em_and_f1(judged_text(prompt, generation), item.references)


class CompactOwnRows(OwnRows):
    name, prompt_set = "jsonl_compact", "compact"


class UnknownAnswers(OwnRows):
    """The benchmark `jsonl_audit`: numbers, names and dates of the answers are looked up in the documents."""

    name, title, primary = "jsonl_audit", "Your rows, by lookup", "supported"
    scored_by = "rule: a lookup finds every number, name and date of the answer in its documents"
    is_known = False
    answerable = "all"

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        found = _looked_up(item, judged_text(prompt.name, reply))
        if found is Outcome.UNSCORED:
            return None
        return Judgement(passed=found is Outcome.SUPPORTED, label=found.value)

    def measured(self, item: Item, prompt: str, generation: str) -> Scores:
        """Which answers are refuted, and which have nothing to look up; the others are supported."""
        found = _looked_up(item, judged_text(prompt, generation))
        if found is Outcome.UNSCORED:
            return {"refuted": None, "no_claims": None}
        return {"refuted": float(found is Outcome.REFUTED), "no_claims": float(found is Outcome.NO_CLAIMS)}


class CompactUnknownAnswers(UnknownAnswers):
    name, prompt_set = "jsonl_audit_compact", "compact"


def _looked_up(item: Item, answer: str) -> Outcome:
    return lexical_audit(item.query, answer, AuditConfig()).outcome


def _judgement(passed: bool) -> Judgement:
    return Judgement(passed=passed, label="right" if passed else "wrong")


def _unmarked(query: RagQuery) -> RagQuery:
    """Without its mark, which would decide what an audit says of the answers."""
    return query.model_copy(update={"unanswerable": False})
