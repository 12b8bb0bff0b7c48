"""`march model register`, `promote`, `approve`, `reject`, `rollback` and `list`.

Exit codes of `promote`: 0 promoted, or waiting for approval; 2 for what a user can fix; 3 refused by a gate;
4 inconclusive; 5 another decision was first. In the last three nothing has changed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands import options
from orchestration.commands.artifacts import StoreOption, open_named
from orchestration.registry.open import approval_command, open_decisions
from orchestration.terminal.messages import fail, table_console, warn, warn_ignored

if TYPE_CHECKING:
    from orchestration.commands.promote_view import ModelReport
    from orchestration.registry.chain import Decision, Made
    from orchestration.registry.decisions import Decisions

_UNREADABLE, _LOST = 2, 5
_CODES = {"refused": 3, "inconclusive": 4}  # of `promote`


def register(
    model: options.Model,
    weights: Annotated[
        str,
        typer.Argument(
            metavar="WEIGHTS",
            help="Their folder, which is put into the store, or REF of a model or a lineage.",
        ),
    ],
    registry: options.RegistryUri = None,
    store: StoreOption = None,
) -> None:
    """Register weights as the candidate; the same content is the same version.

    The reference of a lineage (march model lineage RUN --publish) registers the weights that it made, and
    itself.
    """
    from orchestration.registry.register import register_weights
    from orchestration.registry.store import Registry
    from pipeline.record.tracking import RUN_FILE

    opened = Registry(registry, creates=True)
    version, is_new = register_weights(opened, model, weights, store=partial(open_named, store))
    print(f"{model} version {version}{', the candidate' if is_new else ', registered before'}")
    if (run := Path(weights).absolute().parent).joinpath(RUN_FILE).is_file():
        publish = shlex.join(["march", "model", "lineage", str(run), "--publish"])
        warn(f"registered without its lineage; {publish} prints what registers both")


def promote(
    model: options.Model,
    evaluation: Annotated[str, typer.Option(metavar="DIR|REF", help="The candidate's, or artifact:REF.")],
    candidate: Annotated[str, typer.Option(metavar="REF", help="Version number or @ALIAS.")] = "@candidate",
    champion_evaluation: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|REF", help="The champion's, the same way; none only for the first champion."
        ),
    ] = None,
    policy: options.Policy = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the gates say; change nothing.")
    ] = False,
    registry: options.RegistryUri = None,
    by: options.By = None,
    store: StoreOption = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a candidate the champion if every gate passes; else say which does not.

    Decisions are in the artifact store: who may write there may decide.
    """
    from orchestration.commands.promote_view import print_report
    from orchestration.promotion.policy import read_policy
    from orchestration.promotion.records import GateState
    from orchestration.registry.stored import bring_evidence
    from orchestration.registry.trial import try_candidate

    rules = read_policy(policy)
    opened = open_named(store)
    decisions = open_decisions(model, registry, opened, by=by)
    given = bring_evidence(evaluation, opened, is_dry=dry_run)
    theirs = bring_evidence(champion_evaluation, opened, is_dry=dry_run) if champion_evaluation else None
    trial = try_candidate(decisions, candidate, given, theirs, rules, is_dry=dry_run)
    if not as_json:
        print_report(trial.report, table_console())
    if trial.seen.champion is None and champion_evaluation is not None:
        warn_ignored("where there is no champion", champion_evaluation=champion_evaluation)
    if not dry_run:
        made = _decide(lambda: decisions.promote(trial, rules))
    state, number = trial.report.state, trial.candidate.version
    name = f"{model} version {number}"
    if state is not GateState.PASSED:
        ending = "inconclusive" if state is GateState.INCONCLUSIVE else "refused"
        line = f"{name} is not promoted: {'; '.join(trial.report.reasons)}"
    elif dry_run:
        ending, line = "would_promote", f"{name} would be promoted"
    elif rules.approval.required:
        command = approval_command(model, number, registry=registry, store=store)
        ending, line = "waits", f"{name} waits: {command}"
    else:
        ending, line = "promoted", f"{name} is the champion; it was {made.was or 'nobody'}"
    if as_json:
        found = {"model": model, "version": number, "ending": ending, "line": line}
        print(json.dumps({**found, "report": trial.report.model_dump(mode="json")}, indent=1))
    if ending in _CODES:
        fail(line, code=_CODES[ending])
    if not as_json:
        print(line)


def approve(
    model: options.Model,
    version: options.Version,
    reason: options.Reason = "",
    registry: options.RegistryUri = None,
    by: options.By = None,
    store: StoreOption = None,
) -> None:
    """Promote a version that waits for a person."""
    decisions = open_decisions(model, registry, open_named(store), by=by)
    made = _decide(lambda: decisions.approve(version, reason=reason))
    print(f"{model} version {version} is the champion; it was {made.was or 'nobody'}")


def reject(
    model: options.Model,
    version: options.Version,
    reason: options.Reason = "",
    registry: options.RegistryUri = None,
    by: options.By = None,
    store: StoreOption = None,
) -> None:
    """Turn down a version that waits for a person."""
    decisions = open_decisions(model, registry, open_named(store), by=by)
    _decide(lambda: decisions.reject(version, reason=reason))
    print(f"{model} version {version} is rejected")


def rollback(
    model: options.Model,
    reason: options.Reason = "",
    registry: options.RegistryUri = None,
    by: options.By = None,
    store: StoreOption = None,
) -> None:
    """Make the previous champion the champion again; a second time, the other way round."""
    decisions = open_decisions(model, registry, open_named(store), by=by)
    made = _decide(lambda: decisions.rollback(reason=reason))
    print(f"{model} version {made.about.version} is the champion again; it was {made.was}")


def registered(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All, if none is named.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Write MLflow's aliases and tags again, as it was decided.")
    ] = False,
    registry: options.RegistryUri = None,
    by: options.By = None,
    store: StoreOption = None,
    as_json: options.AsJson = False,
) -> None:
    """List registered models: versions, who is champion, what waits for approval, the last decision.

    Where MLflow shows something else than was decided, that is reported; --rebuild writes it again.
    """
    from orchestration.commands.promote_view import models_json, print_models
    from orchestration.registry.store import Registry

    opened = open_named(store)
    named, others = list(names or ()), list[str]()
    if not named:
        opened_registry = Registry(registry)
        named, others = opened_registry.models(), opened_registry.other_models()
    models = [open_decisions(name, registry, opened, by=by) for name in named]
    if rebuild:
        for decisions in models:
            decisions.rebuild(whole=True)
    reports = [_report(decisions) for decisions in models]
    if as_json:
        print(models_json(reports))
    else:
        print_models(reports, table_console())
    lines = [f"{one.model}: {line}" for one in reports for line in one.problems]
    lines += [
        f"{name}: is left out; a model of ours has no quotes, / : @ and \\ in its name" for name in others
    ]
    for line in lines:
        warn(line)
    if any(one.last is None and one.problems for one in reports):
        raise SystemExit(_UNREADABLE)


def _report(decisions: Decisions) -> ModelReport:
    """What is decided about a model, and where MLflow shows something else; or why that cannot be said."""
    from orchestration.commands.promote_view import ModelReport
    from orchestration.registry.view import differences

    versions = decisions.registry.versions(decisions.model)
    try:
        decisions.state()
        last, waiting = decisions.chain.last(), decisions.waiting()
        problems = [one.text for one in differences(decisions.registry, decisions.chain, whole=True)]
        return ModelReport(decisions.model, versions, last.decision if last else None, waiting, problems)
    except ValueError as error:
        return ModelReport(decisions.model, versions, problems=[str(error)])


def _decide(decide: Callable[[], Made]) -> Decision:
    """Decides; a decision that lost the race ends the command."""
    from orchestration.registry.decisions import LostRaceError

    try:
        return decide().decision
    except LostRaceError as error:
        fail(str(error), code=_LOST)
