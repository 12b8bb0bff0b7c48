"""The held-out rows of a run: made when it starts, and held against the rows that it trains on."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.data.duplicates import digest, words_of
from pipeline.data.plain import PlainRow
from pipeline.data.prepare import ROWS_FILE
from pipeline.data.rows import parse_row
from pipeline.rows import write_queries
from pipeline.settings.recipe import Recipe
from pipeline.training.held_out import HELD_OUT_FOLDER, write_answers
from pipeline.worlds.world import NUM_MEASURED, WorldRow
from reward.types import RagQuery

_SEED = 25  # of the tiny world's draw: another one than measurements before and after a training have
Key = tuple[bytes, bytes]  # digests of a question and of one of its documents


def held_out_file(recipe: Recipe, folder: Path) -> Path | None:
    """The JSONL that OpenRLHF reads; None without a held-out set."""
    return folder / HELD_OUT_FOLDER / ROWS_FILE if recipe.held_out else None


def write_held_out(recipe: Recipe, folder: Path, training_rows: Path) -> None:
    """Writes the held-out rows of a run, if any, and known answers; ValueError where it trains on one."""
    if recipe.held_out is None:
        return
    queries, answers = _rows_of(recipe)
    write_queries(recipe, queries, folder / HELD_OUT_FOLDER, source="held out")
    write_answers(folder, answers)
    refuse_trained(queries, training_rows)


def refuse_trained(held_out: Iterable[RagQuery], training_rows: Path) -> None:
    """Raises `ValueError` when a held-out question is asked of one of its documents in the training, too."""
    trained: set[Key] = set()
    with training_rows.open(encoding="utf-8") as lines:
        for line in lines:
            trained |= _keys(RagQuery.model_validate_json(json.loads(line)["label"]))
    if shared := [query.id for query in held_out if _keys(query) & trained]:
        raise ValueError(
            f"held_out: {len(shared)} rows are among those that are trained on ({', '.join(shared[:3])}"
            f"{', ...' if len(shared) > 3 else ''}); take them out of held_out.path or of the training"
        )


def _rows_of(recipe: Recipe) -> tuple[list[RagQuery], dict[str, tuple[str, ...]]]:
    assert recipe.held_out is not None
    num, path = recipe.held_out.num_rows, recipe.held_out.path
    if path is not None:
        raws = PlainRow.raw_rows(path)
        rows = [(parse_row(raw, PlainRow), raw.place) for raw, _ in zip(raws, range(num), strict=False)]
        answers = {row.id: row.answers for row, _ in rows if row.answers}
        return [row.query(place) for row, place in rows], answers
    if recipe.data.source == "tiny":
        from pipeline.tiny.world import sample_worlds

        return [one.query for one in sample_worlds(num, _SEED, "held_out", recipe.data.world)], {}
    from pipeline.worlds.wiki.world import WikiWorld

    left = apart(WikiWorld(recipe.data.wiki).rows("held_out"), num_measured=NUM_MEASURED)
    if not left:
        problem = f"the {NUM_MEASURED} that measurements take ask for the subjects of all held-out rows"
        raise ValueError(f"held_out: {problem}; give held_out.path, or a larger data.wiki.held_out_file")
    return [row.query for row in left[-num:]], {}


def apart(rows: Sequence[WorldRow], *, num_measured: int) -> list[WorldRow]:
    """The rows about other subjects than the first ones, which measurements before and after take.

    A model that was chosen on the facts of a measurement would be selected on it.
    """
    measured = {one.subject for row in rows[:num_measured] for one in row.asked}
    return [row for row in rows if not any(one.subject in measured for one in row.asked)]


def _keys(query: RagQuery) -> set[Key]:
    """Questions and documents by their words: one that is written otherwise is the same."""
    asked = digest(words_of(query.query))
    return {(asked, digest(words_of(document.text))) for document in query.documents}
