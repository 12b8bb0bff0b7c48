"""`march artifacts`: what is in the artifact store, into it and out of it, whether it is whole, what can go.

The store is --store, else MARCH_ARTIFACTS, else the folder runs/artifacts. Credentials are boto3's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands import options
from orchestration.terminal.messages import error_console, fail, table_console

if TYPE_CHECKING:
    from orchestration.terminal.progress import ByteProgress
    from pipeline.artifacts.store import ArtifactStore
    from pipeline.artifacts.upkeep import Damage

artifacts = typer.Typer(
    name="artifacts", no_args_is_help=True, help="The artifact store: files by content, in S3 or a folder."
)

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="s3://BUCKET/PREFIX or a folder; else MARCH_ARTIFACTS.",
        show_default="runs/artifacts",
    ),
]

GraceOption = Annotated[float, typer.Option(min=0, help="What is younger stays.")]
KeepOption = Annotated[
    list[str] | None, typer.Option(metavar="REF", help="Keep this too, beside what pointers point to.")
]
NoRegistryOption = Annotated[
    bool, typer.Option("--no-registry", help="Ask none: no version or run refers to this store.")
]


def open_named(store: str | None) -> ArtifactStore:
    """The store that the options or the environment name."""
    from pipeline.artifacts.settings import settings_from_environment
    from pipeline.artifacts.store import open_store

    return open_store(settings_from_environment(store))


def open_used(store: str | None) -> ArtifactStore:
    """The same, to read what it holds; ValueError for a folder that is not there, which may be mistyped."""
    opened = open_named(store)
    address = opened.backend.address
    if not (address.startswith("s3://") or Path(address).is_dir()):
        raise ValueError(f"--store: {address}: no such folder; give a store that is used")
    return opened


@artifacts.command("ls")
def list_manifests(store: StoreOption = None) -> None:
    """List what is published, newest last, and which pointers point to it."""
    from pipeline.artifacts.terminal import print_manifests

    print_manifests(open_used(store), table_console())


@artifacts.command()
def put(
    source: Annotated[Path, typer.Argument(help="A file or a folder.")],
    kind: Annotated[str, typer.Option(help="What it is: model, data, ...")] = "files",
    pointer: Annotated[str | None, typer.Option(metavar="NAME", help="Point this to it.")] = None,
    store: StoreOption = None,
) -> None:
    """Publish a file or folder; prints its digest. Killed, the same command goes on."""
    from pipeline.artifacts.layout import pointer_key
    from pipeline.artifacts.store import files_of

    opened = open_named(store)
    if pointer:
        pointer_key(pointer)  # a wrong name is said before gigabytes are sent
    with byte_progress("storing", sum(path.stat().st_size for path in files_of(source).values())) as bar:
        published = opened.publish(source, kind=kind, advance=bar.advance)
    if pointer:
        opened.move(pointer, published.digest, expected=opened.pointed(pointer))
    print(published.digest)
    error_console().print(
        f"{len(published.manifest.files):,} files, {published.manifest.size / 1e6:,.1f} MB; "
        f"{published.num_sent / 1e6:,.1f} MB sent"
    )


@artifacts.command()
def get(
    ref: Annotated[str, typer.Argument(metavar="REF", help="A digest, its first digits, or a pointer.")],
    out: Annotated[Path, typer.Argument(help="The folder to write to.")],
    store: StoreOption = None,
) -> None:
    """Bring files to this machine, verified, to a folder without others. Killed, the same command goes on."""
    from pipeline.artifacts.address import named_artifact
    from reward.offline.files import only_writer

    found = named_artifact(ref, partial(open_named, store))
    alone = only_writer(out / ".lock", what="command")
    with alone, byte_progress("fetching", found.manifest().size) as bar:
        manifest = found.store.get(found.digest, out, replaces=False, advance=bar.advance)
    print(f"{out}: {len(manifest.files):,} files, {manifest.size / 1e6:,.1f} MB, verified")


@artifacts.command()
def verify(
    refs: Annotated[list[str] | None, typer.Argument(metavar="[REF]...", help="All when left out.")] = None,
    read: Annotated[
        bool, typer.Option("--read", help="Read every object; else its presence and size.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Hold manifests, pointers and objects against digests; exit code 1 if any is damaged or missing."""
    from pipeline.artifacts.upkeep import find_damage, find_lost
    from reward.offline.excerpt import printable

    opened = open_named(store)
    digests = [opened.resolve(ref) for ref in refs] if refs else list(opened.manifests())
    if not digests:
        raise ValueError(
            f"--store: {opened.backend.address} holds nothing to verify; give a store that is used"
        )
    found = 0
    with byte_progress("verifying") as bar:
        lost = find_lost(opened) if not refs else ()
        damaged = find_damage(opened, digests, read=read, advance=bar.advance)
        for damage in chain(lost, damaged, _find_foreign(opened, digests)):
            print(printable(f"{damage.key}: {damage.problem}"))
            found += 1
    if found:
        fix = "remove what is there of another content; then publish it again"
        fail(f"{found} of what {len(digests)} manifests name is damaged; {fix}", code=1)
    print(f"{len(digests):,} manifests: {'every object was read' if read else 'all present, sizes right'}")


def _find_foreign(store: ArtifactStore, digests: Iterable[str]) -> Iterator[Damage]:
    """Models that MLflow's clients would not load as they were registered."""
    from orchestration.registry.mlflow_model import MLMODEL, foreign_code
    from pipeline.artifacts.address import Artifact
    from pipeline.artifacts.layout import model_key
    from pipeline.artifacts.upkeep import Damage

    for digest in digests:
        if problem := foreign_code(Artifact(store, digest)):
            yield Damage(model_key(digest, MLMODEL), problem)


@artifacts.command()
def gc(
    delete: Annotated[bool, typer.Option("--delete", help="Remove it; else only say what would go.")] = False,
    grace_hours: GraceOption = 168.0,
    keep: KeepOption = None,
    registry: options.RegistryUri = None,
    no_registry: NoRegistryOption = False,
    store: StoreOption = None,
) -> None:
    """Find what no pointer, registered version or MLflow run refers to, and unfinished uploads.

    Removes it only with --delete. A registry that cannot be read stops it.
    """
    prune(
        dry_run=not delete,
        grace_hours=grace_hours,
        keep=keep,
        registry=registry,
        no_registry=no_registry,
        store=store,
    )


@artifacts.command()
def prune(
    keep_last: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Results of each job's last N retrainings stay; else all."),
    ] = None,
    version: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL@NUMBER", help="Delete this version, with what only it needs."),
    ] = None,
    ancestors: Annotated[
        bool,
        typer.Option(
            "--ancestors/--no-ancestors",
            help="Keep weights, rows and evaluations that only the lineage of a descendant names.",
        ),
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    grace_hours: GraceOption = 168.0,
    keep: KeepOption = None,
    registry: options.RegistryUri = None,
    no_registry: NoRegistryOption = False,
    store: StoreOption = None,
) -> None:
    """Remove old results of retrainings, or a version, and then all that nothing needs any more.

    What another version, its lineage, an MLflow run, a decision or a pointer of yours needs stays.
    """
    from orchestration.registry.open import open_version
    from orchestration.registry.store import Registry
    from orchestration.registry.stored import references
    from orchestration.retrain.retention import results_of_versions, stale_results, why_needed
    from pipeline.artifacts.terminal import print_garbage
    from pipeline.artifacts.upkeep import find_garbage, remove
    from pipeline.record.tracking import LOCAL

    opened, grace = open_used(store), timedelta(hours=grace_hours)
    is_asked = not no_registry and (registry is not None or LOCAL.is_file())
    if not (dry_run or is_asked or no_registry or keep):
        raise ValueError(
            "--mlflow: no registry is set, and registered versions would count as garbage; give it (or "
            "MLFLOW_TRACKING_URI), --keep REF for each that must stay, or --no-registry"
        )
    gone = [open_version(reference, registry, opened) for reference in version or ()]
    for decisions, one in gone:
        if why := why_needed(decisions, one):
            named = f"{decisions.model}@{one.version}"
            raise ValueError(f"--version {named}: {why}; decide otherwise first (docs/promotion.md)")
    stale = stale_results(opened, keep_last) if keep_last else set[str]()
    stale |= results_of_versions(opened, [one for _, one in gone])
    kept = {opened.resolve(ref) for ref in keep or ()}
    if not is_asked:
        print("march: no registry was asked; only pointers, champions and --keep protect", file=sys.stderr)
    else:
        asked = Registry(registry)
        kept |= references(asked, opened, without=[one for _, one in gone])
        print(f"registry that protects its versions: {asked.uri}", file=sys.stderr)
    garbage = find_garbage(opened, references=kept, grace=grace, stale=stale, with_ancestors=ancestors)
    print_garbage(garbage, table_console())
    if dry_run:
        return print("nothing was removed")
    for decisions, one in gone:  # again: the looks above take minutes
        if why := why_needed(decisions, one):
            raise ValueError(f"--version {decisions.model}@{one.version}: {why}; nothing was removed")
    for decisions, one in gone:
        decisions.registry.delete(decisions.model, one.version)
        print(f"deleted: {decisions.model}@{one.version}")
    print(f"removed: {remove(opened, garbage, grace=grace):,}")


def byte_progress(label: str, total: int | None = None) -> ByteProgress:
    """A bar with rate and remaining time; lines where there is no terminal."""
    from orchestration.terminal.progress import ByteProgress

    return ByteProgress(error_console(), label, total=total)
