"""Shared by the tests of the registry: a model with three sets of weights and an evaluation of each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from orchestration.registry.decisions import Decisions
from orchestration.registry.open import open_decisions
from orchestration.registry.register import register_weights
from orchestration.registry.store import Registry
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from reward.offline.files import weights_sha256
from tests.march_cli import march
from tests.promotion_evidence import better, evidence, worse, write_evidence

POLICY = "{smoke: {required: false}, first: {min_primary: 0.4}%s}"


@dataclass
class Place:
    """A model on a server, its files, and the options of every command about it."""

    uri: str
    model: str
    folder: Path

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(LocalBackend(self.folder / "store"))

    @property
    def decisions(self) -> Decisions:
        return open_decisions(self.model, self.uri, self.store, by="tester")

    @property
    def common(self) -> list[object]:
        return ["--mlflow", self.uri, "--store", self.folder / "store", "--policy", self.policy]

    @property
    def policy(self) -> Path:
        return self.folder / "policy.yaml"

    def weights(self, number: int) -> str:
        return str(self.folder / f"weights{number}")

    def register(self, number: int) -> tuple[str, bool]:
        registry = Registry(self.uri)
        return register_weights(registry, self.model, self.weights(number), store=lambda: self.store)

    def promote(self, version: int, champion: int | None, *more: object) -> int:
        given = ["model", "promote", self.model, "--candidate", version]
        given += ["--evaluation", self.folder / f"eval{version}"]
        if champion is not None:
            given += ["--champion-evaluation", self.folder / f"eval{champion}"]
        return march(*given, *self.common, *more)

    def aliases(self) -> dict[str, str]:
        return self.decisions.registry.aliases(self.model)


def make_place(uri: str, model: str, folder: Path) -> Place:
    """Files of three sets of weights, the last two better than the first; nothing is registered."""
    place = Place(uri, model, folder)
    place.policy.write_text(POLICY % "")
    for number, passed in ((1, worse), (2, better), (3, better)):
        weights = Path(place.weights(number))
        weights.mkdir()
        (weights / "config.json").write_text(json.dumps({"number": number}))
        found = evidence(passed, num_items=80, weights=weights_sha256(weights))
        write_evidence(folder / f"eval{number}", found)
    return place
