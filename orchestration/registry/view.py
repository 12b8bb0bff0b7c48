"""What MLflow shows of decisions: aliases and tags, written after them and never read to decide anything."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from orchestration.registry.chain import Chain, Chosen, Made, State
from orchestration.registry.mlflow_model import MLMODEL, foreign_code
from orchestration.registry.store import (
    CANDIDATE,
    CHAMPION,
    DECISION_TAG,
    LINEAGE_TAG,
    MOST_TAG_CHARS,
    PREVIOUS,
    REPORT_TAG,
    ModelVersion,
    Registry,
)
from pipeline.artifacts.address import Artifact, located

logger = logging.getLogger(__name__)

_REPORTED = set[str]()  # what MLflow has lost; a command that looks again and again says it once


@dataclass(frozen=True)
class Difference:
    """Something that MLflow shows otherwise than it was decided, and what writes it again."""

    text: str
    write: Callable[[], object] = lambda: None


def differences(registry: Registry, chain: Chain, *, whole: bool) -> Iterator[Difference]:
    """Where MLflow's aliases, tags and versions are not what was decided.

    `whole` is for the tags of all versions, not only of the one that was decided about last.
    """
    last = chain.last()
    if last is not None:  # without a decision the aliases are nobody's
        versions = registry.versions(chain.model)
        yield from _aliases(registry, chain.model, last.decision.after, versions)
        yield from _tags(registry, chain, list(chain.history()) if whole else [last], versions)
        if whole:
            yield from _weights(chain, last.decision.after, versions)


def chosen_version(chosen: Chosen, versions: Sequence[ModelVersion]) -> ModelVersion:
    """A version that was decided about; as the decision knows it where MLflow does not."""
    found, lost = _registered(chosen, versions), _lost(chosen)
    if found is None:
        if lost not in _REPORTED:
            _REPORTED.add(lost)
            logger.warning("%s", lost)
        tags = {LINEAGE_TAG: chosen.lineage} if chosen.lineage else {}
        return ModelVersion(chosen.version, chosen.uri, chosen.sha256, (), tags, 0)
    _REPORTED.discard(lost)
    return found


def _registered(chosen: Chosen, versions: Sequence[ModelVersion]) -> ModelVersion | None:
    """MLflow's entry of a version: by its weights, which may have been registered again."""
    found = [one for one in versions if one.sha256 == chosen.sha256]
    return next((one for one in found if one.version == chosen.version), found[0] if found else None)


def _lost(chosen: Chosen) -> str:
    return (
        f"MLflow has no version {chosen.version} with the weights {chosen.sha256[:12]} any more; they are at "
        f"{chosen.uri}, register them again"
    )


def _aliases(
    registry: Registry, model: str, state: State, versions: Sequence[ModelVersion]
) -> Iterator[Difference]:
    """Previous first: a kill in between leaves the old champion in both, never an unknown one."""
    there = {alias: one.version for one in versions for alias in one.aliases}
    wanted: dict[str, str | None] = {}
    for alias, chosen in ((PREVIOUS, state.previous), (CHAMPION, state.champion)):
        found = _registered(chosen, versions) if chosen else None
        wanted[alias] = found.version if found else None
        if chosen and found is None:
            yield Difference(_lost(chosen))
    if CANDIDATE in there and there[CANDIDATE] == wanted[CHAMPION]:
        wanted[CANDIDATE] = None
    for alias, version in wanted.items():
        if there.get(alias) != version:
            now, by_decision = there.get(alias) or "none", version or "none"
            text = f"MLflow's alias {alias} is version {now}, by the decisions it is {by_decision}"
            yield Difference(text, partial(registry.set_alias, model, alias, version))


def _tags(
    registry: Registry, chain: Chain, decided: Sequence[Made], versions: Sequence[ModelVersion]
) -> Iterator[Difference]:
    """Of each version those of the last decision that has them; decisions come the last one first."""
    wanted: dict[tuple[str, str], str] = {}
    for made in decided:
        if found := _registered(made.decision.about, versions):
            wanted = {(found.version, tag): value for tag, value in _tags_of(chain, made).items()} | wanted
    there = {(one.version, tag): value for one in versions for tag, value in one.tags.items()}
    for (version, tag), value in wanted.items():
        if there.get((version, tag)) != value:
            text = f"MLflow's tag {tag} of version {version} is not that of the decision"
            yield Difference(text, partial(registry.set_tag, chain.model, version, tag, value))


def _weights(chain: Chain, state: State, versions: Sequence[ModelVersion]) -> Iterator[Difference]:
    """Where MLflow names another place of a champion's weights, or its clients would run other code."""
    for chosen in filter(None, (state.champion, state.previous)):
        found = _registered(chosen, versions)
        if found and found.uri != chosen.uri:
            text = f"version {found.version}: MLflow's weights are at {found.uri}, decided was {chosen.uri}"
            yield Difference(text)
        place = located(chosen.uri)
        if place and (problem := foreign_code(Artifact(chain.store, place[1]))):
            yield Difference(f"version {chosen.version}: its {MLMODEL} {problem}")


def _tags_of(chain: Chain, made: Made) -> dict[str, str]:
    report = made.decision.report.model_dump_json() if made.decision.report else ""
    tags = {DECISION_TAG: Artifact(chain.store, made.digest).address}
    return tags | ({REPORT_TAG: report} if 0 < len(report) <= MOST_TAG_CHARS else {})
