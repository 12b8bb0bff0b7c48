"""The artifact store on a terminal."""

from rich.table import Table
from rich.text import Text

from pipeline.artifacts.layout import MANIFESTS, digest_of
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import Garbage
from reward.offline.excerpt import printable


def manifests_table(store: ArtifactStore) -> Table:
    """All manifests, the newest last, with the pointers to each."""
    pointers = store.pointers()
    table = _table(store.backend.address, "digest", "kind", "files", "MB", "written", "pointers")
    for entry in sorted(store.backend.entries(MANIFESTS), key=lambda entry: entry.modified):
        digest = digest_of(entry.key)
        manifest = store.manifest(digest)
        names = [name for name, pointed in pointers.items() if pointed == digest]
        cells = (digest[:16], manifest.kind, f"{len(manifest.files):,}", f"{manifest.size / 1e6:,.1f}")
        _add(table, *cells, f"{entry.modified:%Y-%m-%d %H:%M}", ", ".join(names))
    return table


def garbage_table(garbage: Garbage) -> Table:
    table = _table(
        f"{garbage.num_kept:,} kept, beside what is within the grace", "what", "key", "MB", "since"
    )
    found = {
        "pointer": garbage.pointers,
        "manifest": garbage.manifests,
        "object": garbage.objects,
        "unfinished upload": garbage.uploads,
    }
    for what, entries in found.items():
        for entry in entries:
            _add(table, what, entry.key, f"{entry.size / 1e6:,.1f}", f"{entry.modified:%Y-%m-%d %H:%M}")
    counts = ", ".join(f"{len(entries):,} {what}s" for what, entries in found.items())
    table.caption = f"{counts}; {garbage.size / 1e6:,.1f} MB"
    return table


def _add(table: Table, *cells: str) -> None:
    """A row of plain text: names come from whoever wrote the store."""
    table.add_row(*(Text(printable(cell)) for cell in cells))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in ("files", "MB") else "left", overflow="fold")
    return table
