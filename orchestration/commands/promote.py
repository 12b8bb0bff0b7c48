"""`march register`, `promote`, `approve`, `reject`, `rollback`, `registered` and `serve-model`.

Exit codes of `promote`: 0 promoted, or waiting for approval; 2 for what a user can fix; 3 refused by a gate;
4 inconclusive; 5 another decision was first. In the last three nothing has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from orchestration.commands import promote_options as options
from orchestration.commands.artifacts import EndpointOption, StoreOption, byte_progress, open_named
from orchestration.registry.desk import HISTORY, approval_command, open_desk, open_version
from orchestration.terminal.messages import fail, warn_ignored

if TYPE_CHECKING:
    from orchestration.registry.log import Numbered

_REFUSED, _INCONCLUSIVE, _LOST = 3, 4, 5


def register(
    model: options.Model,
    uri: options.Uri,
    sha256: options.Sha256 = None,
    lineage: options.Lineage = None,
    tag: options.Tags = None,
    policy: options.Policy = None,
    registry: options.RegistryUri = None,
    store: StoreOption = None,
    endpoint: EndpointOption = None,
) -> None:
    """Register weights as the candidate; the same content is the same version.

    The reference of a lineage (march lineage RUN --publish) registers the weights that it made, and itself.
    """
    from orchestration.promotion.policy import read_policy
    from orchestration.registry.register import register_weights

    version, is_new = register_weights(
        open_desk(model, registry, HISTORY).registry,
        model,
        uri,
        sha256=sha256,
        lineage=lineage,
        assignments=tag or [],
        store=partial(open_named, store, endpoint),
        pickles_allowed=read_policy(policy).pickles_allowed,
    )
    print(f"{model} version {version}{', the candidate' if is_new else ', registered before'}")


def promote(
    model: options.Model,
    evaluation: options.Evaluation,
    candidate: options.Candidate = "@candidate",
    champion_evaluation: options.ChampionEvaluation = None,
    policy: options.Policy = None,
    dry_run: options.DryRun = False,
    registry: options.RegistryUri = None,
    history: options.History = HISTORY,
    by: options.By = None,
    store: StoreOption = None,
    endpoint: EndpointOption = None,
) -> None:
    """Make a candidate the champion if every gate passes; else say which does not.

    Who may: the MLflow server decides (MLFLOW_TRACKING_USERNAME, ...); MARCH_PROMOTION_KEY signs the history.
    """
    from rich.console import Console

    from orchestration.commands.promote_view import print_report
    from orchestration.promotion.policy import read_policy
    from orchestration.promotion.records import GateState
    from orchestration.registry.decisions import LostRaceError
    from orchestration.registry.notify import tell
    from orchestration.registry.stored import bring_evaluations
    from orchestration.registry.trial import try_candidate

    rules = read_policy(policy)
    desk = open_desk(model, registry, history, by=by)
    given = bring_evaluations(evaluation, champion_evaluation, partial(open_named, store, endpoint))
    trial = try_candidate(desk, candidate, given.candidate, given.champion, rules, is_dry=dry_run)
    print_report(trial.report, Console())
    if trial.is_first and champion_evaluation is not None:
        warn_ignored("where there is no champion", champion_evaluation=champion_evaluation)
    if not dry_run:
        try:
            made = desk.promote(trial.candidate, trial.report, rules, trial.seen, tags=given.tags)
        except LostRaceError as error:
            fail(str(error), code=_LOST)
        tell(desk, rules, made)
    state = trial.report.state
    name = f"{model} version {trial.candidate.version}"
    if state is not GateState.PASSED:
        code = _INCONCLUSIVE if state is GateState.INCONCLUSIVE else _REFUSED
        fail(f"{name} is not promoted: {'; '.join(trial.report.reasons)}", code=code)
    if dry_run:
        print(f"{name} would be promoted")
    elif rules.approval.required:
        print(f"{name} waits: {approval_command(model, trial.candidate.version, policy)}")
    else:
        print(f"{name} is the champion; it was {trial.seen.champion or 'nobody'}")


def approve(
    model: options.Model,
    version: options.Version,
    reason: options.Reason = "",
    policy: options.Policy = None,
    registry: options.RegistryUri = None,
    history: options.History = HISTORY,
    by: options.By = None,
) -> None:
    """Promote a version that waits for a person."""
    from orchestration.promotion.policy import read_policy
    from orchestration.registry.notify import tell

    rules, desk = read_policy(policy), open_desk(model, registry, history, by=by)
    made = _first(lambda: desk.approve(version, reason=reason, by_another=rules.approval.by_another))
    tell(desk, rules, made)
    print(f"{model} version {version} is the champion; it was {made.entry.champion or 'nobody'}")


def reject(
    model: options.Model,
    version: options.Version,
    reason: options.Reason = "",
    policy: options.Policy = None,
    registry: options.RegistryUri = None,
    history: options.History = HISTORY,
    by: options.By = None,
) -> None:
    """Turn down a version that waits for a person."""
    from orchestration.promotion.policy import read_policy
    from orchestration.registry.notify import tell

    rules, desk = read_policy(policy), open_desk(model, registry, history, by=by)
    made = _first(lambda: desk.reject(version, reason=reason))
    tell(desk, rules, made)
    print(f"{model} version {version} is rejected")


def rollback(
    model: options.Model,
    reason: options.Reason = "",
    policy: options.Policy = None,
    registry: options.RegistryUri = None,
    history: options.History = HISTORY,
    by: options.By = None,
) -> None:
    """Make the previous champion the champion again; a second time, the other way round."""
    from orchestration.promotion.policy import read_policy
    from orchestration.registry.notify import tell

    rules, desk = read_policy(policy), open_desk(model, registry, history, by=by)
    made = _first(lambda: desk.rollback(reason=reason))
    tell(desk, rules, made)
    print(f"{model} version {made.entry.version} is the champion again; it was {made.entry.champion}")


def registered(
    names: options.Models = None,
    registry: options.RegistryUri = None,
    history: options.History = HISTORY,
) -> None:
    """List registered models: versions, who is champion, what waits for approval, the last decision."""
    from rich.console import Console

    from orchestration.commands.promote_view import print_models

    store = open_desk("any", registry, history).registry
    desks = [open_desk(name, registry, history) for name in names or store.models()]
    print_models([(desk.model, store.versions(desk.model), desk.fix()) for desk in desks], Console())


def serve_model(
    reference: options.Reference,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    show: options.ShowCommand = False,
    policy: options.Policy = None,
    registry: options.RegistryUri = None,
    history: options.History = HISTORY,
) -> None:
    """Serve a registered version with vLLM, verified against its digest: march serve-model MODEL@champion."""
    import shlex

    from orchestration.promotion.policy import read_policy
    from orchestration.registry.weights import local_weights, vllm_command
    from reward.samplers.start import demand_libraries

    desk, version = open_version(reference, registry, history)
    desk.fix()
    if not show:
        demand_libraries()
    with byte_progress("fetching", None) as advance:
        allowed = read_policy(policy).pickles_allowed
        folder = local_weights(version, pickles_allowed=allowed, advance=advance)
    command = vllm_command(folder, name=desk.model, host=host, port=port, more=())
    if show:
        print(shlex.join(command))
    else:
        os.execv(command[0], command)


def _first(decide: Callable[[], Numbered]) -> Numbered:
    """Decides; a decision that lost the race ends the command."""
    from orchestration.registry.decisions import LostRaceError

    try:
        return decide()
    except LostRaceError as error:
        fail(str(error), code=_LOST)
