"""`march artifacts gc` and `prune`: what can go from the artifact store, and its removal."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Annotated

import typer

from orchestration.commands import options
from orchestration.commands.artifacts import StoreOption, artifacts, open_named
from orchestration.terminal.messages import output_console

GraceOption = Annotated[float, typer.Option(min=0, help="What is younger stays.")]
KeepOption = Annotated[
    list[str] | None, typer.Option(metavar="REF", help="Keep this too, beside what pointers point to.")
]
NoRegistryOption = Annotated[
    bool, typer.Option("--no-registry", help="Ask none: no version or run refers to this store.")
]


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
    from orchestration.retrain.retention import results_of_version, stale_results, why_needed
    from pipeline.artifacts.terminal import garbage_table
    from pipeline.artifacts.upkeep import find_garbage, remove

    opened, grace = open_named(store), timedelta(hours=grace_hours)
    asked = None if no_registry else registry
    if not (dry_run or asked or no_registry or keep):
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
    stale |= {name for _, one in gone for name in results_of_version(opened, one)}
    kept = {opened.resolve(ref) for ref in keep or ()}
    if asked is None:
        print("march: no registry was asked; only pointers, champions and --keep protect", file=sys.stderr)
    else:
        kept |= references(Registry(asked), opened, without=[one for _, one in gone])
    garbage = find_garbage(opened, references=kept, grace=grace, stale=stale, with_ancestors=ancestors)
    output_console().print(garbage_table(garbage))
    if dry_run:
        return print("nothing was removed")
    for decisions, one in gone:
        decisions.registry.delete(decisions.model, one.version)
        print(f"deleted: {decisions.model}@{one.version}")
    print(f"removed: {remove(opened, garbage, grace=grace):,}")
