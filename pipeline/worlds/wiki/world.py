"""The world of real text: its rows, in splits and parts, and how many there are."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Literal

from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.wiki.facts import bare
from pipeline.worlds.wiki.paragraphs import WikiRow, read, shipped
from pipeline.worlds.wiki.relations import RELATIONS
from pipeline.worlds.wiki.rows import all_rows, digest_of, unique
from pipeline.worlds.world import ALL_KINDS, SPLITS, Asked, Split, WorldRow
from reward.claims import kinds_for

Part = Literal["warmup", "training"]
_HELD_OUT_EVERY = 5  # of the rows of a file that is not split


class WikiWorld:
    """The rows of files of 2WikiMultihopQA, or of the part that comes with the package."""

    def __init__(self, settings: WikiSettings | None = None) -> None:
        """Reads the files; rows are made when they are asked for."""
        self.settings = settings or WikiSettings()
        train, held_out = self.settings.train_file, self.settings.held_out_file
        most = self.settings.max_file_rows
        rows = list(islice(read(train), most)) if train else shipped()
        own = list(filter(_is_held_out, rows))
        self._held_out = list(islice(read(held_out), most)) if held_out else own
        # The package's own held-out rows stay out of any training of the package's rows.
        self._apart = [*self._held_out, *own] if held_out and not train else self._held_out
        apart = {row.id for row in self._apart}
        self._train = [row for row in rows if row.id not in apart]

    @cached_property
    def _rows(self) -> dict[Split, list[WorldRow]]:
        taken = {bare(title).casefold() for row in self._apart for title in row.paragraphs}
        return {
            "train": unique(all_rows(self._train, "train", self.settings, without=taken)),
            "held_out": unique(all_rows(self._held_out, "held_out", self.settings, without=set())),
        }

    @cached_property
    def by_id(self) -> dict[str, WorldRow]:
        """All rows by the ids of their queries."""
        return {row.query.id: row for split in SPLITS for row in self.rows(split)}

    def rows(self, split: Split) -> Sequence[WorldRow]:
        """The rows of a split, ordered by their ids, which are digests."""
        return self._rows[split]

    def part(self, part: Part) -> Sequence[WorldRow]:
        """The training rows that a warm-up shows, or those that a training is rewarded on.

        A subject asked for first is in one part alone; it may be asked for second in the other.
        """

        def is_shown(row: WorldRow) -> bool:
            return digest_of(row.asked[0].subject) % 1000 < self.settings.warmup_share * 1000

        return [row for row in self.rows("train") if is_shown(row) == (part == "warmup")]


def count_rows(rows: Sequence[WorldRow]) -> Counter[str]:
    """How many rows there are, by what they ask for."""
    counter: Counter[str] = Counter()
    for row in rows:
        kinds = " and a ".join(sorted({one.kind for one in row.asked}))
        number = "one fact" if len(row.asked) == 1 else "two facts"
        counter[f"{number}: {kinds}" if row.is_answerable else "no document says it"] += 1
    return counter


def is_right_consensus(row: WorldRow, question: str, consensus: str | None) -> bool | None:
    """Whether the voters answer a question rightly; None for a question that the row does not ask.

    Args:
        row: With the truth.
        question: In any of the wordings of a relation.
        consensus: What most voters say; None for "cannot answer".
    """
    asked = next((one for one in row.asked if question in _wordings(one)), None)
    if asked is None or asked.value is None or consensus is None:
        return None if asked is None else asked.value is consensus
    kind = kinds_for(ALL_KINDS, row.query)[asked.kind]
    truth, found = kind.read(asked.value), kind.read(consensus)
    return truth is not None and found is not None and bool(kind.equal(kind.taken_as(truth, found), found))


def _wordings(asked: Asked) -> set[str]:
    return {wording.format(s=asked.subject) for wording in RELATIONS[asked.relation].questions}


def _is_held_out(row: WikiRow) -> bool:
    return row.split == "held_out" if row.split else digest_of(row.id) % _HELD_OUT_EVERY == 0
