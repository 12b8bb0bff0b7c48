"""What an evaluation has paid for: generations, judgements and audits, one record a line, kept at once.

    OUT/BENCHMARK/records.jsonl    appended while the evaluation runs, in the order in which things end;
                                   written again in the order of the items when it is whole

A kill loses the requests that were under way and at most one torn line. A record stands for what its digest
says: the file is refused where the same place has another one, since then settings or data have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from reward.offline.files import replace_file
from reward.offline.resume import FINAL_REASONS
from reward.types import Outcome, Record, TokenUse, Verdict

RECORDS_FILE = "records.jsonl"
_MEND = "use another --out, or --overwrite to start again"


class Place(NamedTuple):
    """What a record is of."""

    kind: str
    item: str
    prompt: str
    generation: int = 0  # 0 for all generations together


class Kept(Record):
    """What every record says."""

    item: str
    prompt: str
    digest: str = Field(description="Of everything that decided it.")

    @property
    def is_final(self) -> bool:
        """Whether another try is of no use."""
        return True


class Generations(Kept):
    """The answers of the model under test to one prompt."""

    kind: Literal["generations"] = "generations"
    texts: tuple[str, ...]
    finish_reasons: tuple[str, ...]
    use: TokenUse | None = None
    failure: str = Field(default="", description="`prompt_too_long`: there are no texts, and never will be.")

    @property
    def place(self) -> Place:
        return Place(self.kind, self.item, self.prompt)


class JudgeReplies(Kept):
    """What the judge said of one generation."""

    kind: Literal["judgement"] = "judgement"
    index: int
    replies: tuple[str, ...] = Field(description="The last one was read, if any could be.")
    read: bool
    use: TokenUse | None = Field(default=None, description="Of all replies, whoever asked for them.")

    @property
    def place(self) -> Place:
        return Place(self.kind, self.item, self.prompt, self.index)

    @property
    def is_final(self) -> bool:
        """A judge that could not be understood may be mended."""
        return self.read


class NumberAudit(Kept):
    """The MARCH audit of one generation."""

    kind: Literal["audit"] = "audit"
    index: int
    verdict: Verdict

    @property
    def place(self) -> Place:
        return Place(self.kind, self.item, self.prompt, self.index)

    @property
    def is_final(self) -> bool:
        return self.verdict.outcome is not Outcome.UNSCORED or self.verdict.reason in FINAL_REASONS


AnyRecord = Annotated[Generations | JudgeReplies | NumberAudit, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[Generations | JudgeReplies | NumberAudit] = TypeAdapter(AnyRecord)


def total_use(uses: Sequence[TokenUse | None]) -> TokenUse | None:
    """The sum, or None when one of them is not known or there is none."""
    known = [use for use in uses if use is not None]
    if not known or len(known) < len(uses):
        return None
    return TokenUse(
        num_prompt=sum(use.num_prompt for use in known),
        num_completion=sum(use.num_completion for use in known),
    )


class Store:
    """The records of one benchmark.

    Args:
        path: The file; need not exist.

    Raises:
        ValueError: the file holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before_first: Callable[[], None] = lambda: None  # called before anything is written
        self._records: dict[Place, Generations | JudgeReplies | NumberAudit] = {}
        self._file: BinaryIO | None = None
        self._size = 0
        for record, end in _read(path):
            self._records[record.place] = record
            self._size = end

    def __len__(self) -> int:
        return len(self._records)

    @property
    def places(self) -> Iterator[Place]:
        """Everything that is kept."""
        return iter(self._records)

    def generations(self, item: str, prompt: str) -> Generations | None:
        """The answers to a prompt, if they are kept."""
        found = self._records.get(Place("generations", item, prompt))
        return found if isinstance(found, Generations) else None

    def judgement(self, item: str, prompt: str, index: int) -> JudgeReplies | None:
        """What the judge said of a generation, if it is kept."""
        found = self._records.get(Place("judgement", item, prompt, index))
        return found if isinstance(found, JudgeReplies) else None

    def audit(self, item: str, prompt: str, index: int) -> NumberAudit | None:
        """The audit of a generation, if it is kept."""
        found = self._records.get(Place("audit", item, prompt, index))
        return found if isinstance(found, NumberAudit) else None

    def written(self, kind: str) -> tuple[TokenUse | None, int]:
        """Tokens of all generations, or of all replies of the judge, and how many texts they are."""
        found = [record for place, record in self._records.items() if place.kind == kind]
        paid = [record for record in found if not isinstance(record, NumberAudit)]
        texts = [record.texts if isinstance(record, Generations) else record.replies for record in paid]
        uses = [record.use for record, said in zip(paid, texts, strict=True) if said]
        return total_use(uses), sum(len(said) for said in texts)

    def require(self, place: Place, digest: str) -> bool:
        """Whether a place has a record that needs no other try.

        Raises:
            ValueError: its record was made otherwise.
        """
        found = self._records.get(place)
        if found is None:
            return False
        if found.digest != digest:
            what = f"{place.kind} of item {place.item!r}"
            raise ValueError(f"{self.path}: {what} were made with other settings or data; {_MEND}")
        return found.is_final

    def refuse_others(self, asked: Set[tuple[str, str]]) -> None:
        """Raises `ValueError` for a record of none of these items and prompts: it was paid for."""
        for place in self._records:
            if (place.item, place.prompt) not in asked:
                where = f"{self.path}: item {place.item!r}"
                raise ValueError(f"{where} is not among the items (or beyond --limit); {_MEND}")

    def add(self, record: Generations | JudgeReplies | NumberAudit) -> None:
        """Keeps a record; it is in the file when this returns."""
        if self._file is None:
            self.before_first()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab")
            self._file.truncate(self._size)  # a kill may have torn the last line
        self._file.write(f"{record.model_dump_json()}\n".encode())
        self._file.flush()
        self._records[record.place] = record

    def finish(self, order: Iterable[Place]) -> None:
        """Writes the records again, in this order: what was killed and resumed has the same bytes."""
        self.close()
        found = (self._records.get(place) for place in order)
        lines = (f"{record.model_dump_json()}\n" for record in found if record is not None)
        replace_file(self.path, lines)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._size = self.path.stat().st_size
            self._file = None


def _read(path: Path) -> Iterator[tuple[Generations | JudgeReplies | NumberAudit, int]]:
    """Yields the records of a file, and where each ends; a torn last line is left out."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            end += len(line)
            try:
                yield _ADAPTER.validate_json(line), end
            except ValidationError as error:
                raise ValueError(f"{path}:{number}: is no record of an evaluation; {_MEND}") from error
