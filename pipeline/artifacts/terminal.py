"""The artifact store on a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from pipeline.artifacts.backend import CorruptError
from pipeline.artifacts.layout import MANIFESTS, digest_of
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import Garbage
from reward.offline.excerpt import printable, shortened

_FOLDED = ("key", "pointers")  # their long names take several lines; nothing else does


def print_manifests(store: ArtifactStore, console: Console) -> None:
    """All manifests, the newest last, with the pointers to each."""
    pointing, most = dict[str, list[str]](), console.width // 2
    for name, digest in store.pointers().items():
        pointing.setdefault(digest, []).append(shortened(name, most))
    table = _table("digest", "kind", "files", "MB", "written", "pointers")
    for entry in sorted(store.backend.entries(MANIFESTS), key=lambda entry: entry.modified):
        digest = digest_of(entry.key)
        try:
            manifest = store.manifest(digest)
            cells = (digest[:12], manifest.kind, f"{len(manifest.files):,}", f"{manifest.size / 1e6:,.1f}")
        except CorruptError:  # `verify` says more
            cells = (digest[:12], "damaged", "", "")
        _add(table, *cells, f"{entry.modified:%Y-%m-%d %H:%M}", ", ".join(pointing.get(digest, ())))
    console.print(Text(printable(store.backend.address), style="bold"), table, sep="\n")


def print_garbage(garbage: Garbage, console: Console) -> None:
    """What can go, and how much it is."""
    table = _table("what", "key", "MB", "since")
    found = {
        "pointer": garbage.pointers,
        "manifest": garbage.manifests,
        "object": garbage.objects,
        "unfinished upload": garbage.uploads,
    }
    for what, entries in found.items():
        for entry in entries:
            _add(table, what, entry.key, f"{entry.size / 1e6:,.1f}", f"{entry.modified:%Y-%m-%d %H:%M}")
    console.print(Text(f"{garbage.num_kept:,} kept, beside what is within the grace", style="bold"))
    if table.rows:
        console.print(table)
    counts = ", ".join(f"{len(entries):,} {what}s" for what, entries in found.items())
    console.print(Text(f"{counts}; {garbage.size / 1e6:,.1f} MB"))


def _add(table: Table, *cells: str) -> None:
    """A row of plain text: names come from whoever wrote the store."""
    table.add_row(*(Text(printable(cell)) for cell in cells))


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        justify: JustifyMethod = "right" if name in ("files", "MB") else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name not in _FOLDED)
    return table
