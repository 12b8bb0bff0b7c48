"""What is damaged in a store, and what nothing needs any more.

Kept are the manifests that pointers and given references name, what those name and refer to, and everything
younger than the grace: a publisher at work writes its objects first. The kept ones are looked up again before
anything is removed, and manifests are removed before objects. A publisher makes young what it reuses, and
looks once more after its manifest is written.

The lineage of a kept model refers to that of its parent, and so on. Of such ancestors the records stay; their
weights, rows and evaluations stay unless the caller says otherwise, and may be gone already.
"""

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from pipeline.artifacts.backend import Advance, CorruptError, Entry, StoreError, no_progress
from pipeline.artifacts.layout import (
    MANIFESTS,
    MODELS,
    OBJECTS,
    POINTERS,
    UPLOADS,
    digest_of,
    manifest_key,
    pointer_key,
)
from pipeline.artifacts.manifest import File, Manifest
from pipeline.artifacts.store import ArtifactStore

DEFAULT_GRACE = timedelta(days=7)
_LINEAGE = "lineage"  # the kind of `pipeline.lineage.publish`
_DECISION = "decision"  # the kind of `orchestration.registry.chain`
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@dataclass(frozen=True)
class Garbage:
    """What can go, in the order in which it is removed."""

    pointers: tuple[Entry, ...]
    manifests: tuple[Entry, ...]
    objects: tuple[Entry, ...]  # files of models, too
    uploads: tuple[Entry, ...]
    num_kept: int
    with_ancestors: bool = True

    @property
    def size(self) -> int:
        """Bytes of manifests and objects; what unfinished uploads hold is not known."""
        return sum(entry.size for entry in (*self.manifests, *self.objects))


@dataclass(frozen=True)
class Damage:
    key: str
    problem: str


def find_garbage(
    store: ArtifactStore,
    *,
    references: Iterable[str] = (),
    grace: timedelta = DEFAULT_GRACE,
    stale: Collection[str] = (),
    with_ancestors: bool = True,
) -> Garbage:
    """Finds what can go; removes nothing.

    Args:
        references: Digests of manifests that others refer to: registered versions, runs.
        grace: What is younger stays.
        stale: Names of pointers that keep nothing, and go, too.
        with_ancestors: Whether weights, rows and evaluations stay that only a descendant's lineage names.

    Raises:
        ValueError: a manifest that must be kept cannot be read; then nothing is said to be garbage.
    """
    before, there = datetime.now(UTC) - grace, _Contents(store)
    pointers = [entry for entry in there.old(POINTERS, before) if entry.key.removeprefix(POINTERS) in stale]
    roots = {*references, *there.roots(without={entry.key for entry in pointers})}
    kept = there.needed(roots | there.young(before), with_ancestors=with_ancestors)
    digests = {*kept, *(file.sha256 for manifest in kept.values() for file in manifest.files)}
    loose = {
        prefix: tuple(entry for entry in there.old(prefix, before) if digest_of(entry.key) not in digests)
        for prefix in (MANIFESTS, OBJECTS, MODELS)
    }
    return Garbage(
        pointers=tuple(pointers),
        manifests=loose[MANIFESTS],
        objects=loose[OBJECTS] + loose[MODELS],
        uploads=tuple(there.old(UPLOADS, before)),
        num_kept=len(digests),
        with_ancestors=with_ancestors,
    )


def remove(store: ArtifactStore, garbage: Garbage, *, grace: timedelta = DEFAULT_GRACE) -> int:
    """Removes what was found, unless it has been used since; returns how many things went."""
    num_removed = sum(_remove(store, entry, grace) for entry in garbage.pointers)
    again = find_garbage(store, grace=grace, with_ancestors=garbage.with_ancestors)
    loose = {entry.key for entry in (*again.manifests, *again.objects)}
    found = [entry for entry in (*garbage.manifests, *garbage.objects) if entry.key in loose]
    num_removed += sum(_remove(store, entry, grace) for entry in found)
    for upload in garbage.uploads:
        store.backend.delete(upload.key)
    return num_removed + len(garbage.uploads)


class _Contents:
    """What lies in a store at one moment."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store, self._manifest = store, cache(store.manifest)
        self._entries = list(store.backend.entries(""))
        self._digests = {digest_of(entry.key) for entry in self.of(MANIFESTS)}

    def of(self, prefix: str) -> list[Entry]:
        return [entry for entry in self._entries if entry.key.startswith(prefix)]

    def old(self, prefix: str, before: datetime) -> Iterator[Entry]:
        """What is under a prefix and was not written or used since."""
        return (entry for entry in self.of(prefix) if entry.modified <= before)

    def young(self, before: datetime) -> set[str]:
        """Manifests that were written or used since."""
        return {digest_of(entry.key) for entry in self.of(MANIFESTS) if entry.modified > before}

    def roots(self, *, without: Collection[str] = ()) -> set[str]:
        """Manifests that pointers point to."""
        names = [entry.key.removeprefix(POINTERS) for entry in self.of(POINTERS) if entry.key not in without]
        return set(filter(None, map(self._store.pointed, names)))

    def needed(self, roots: Iterable[str], *, with_ancestors: bool = True) -> dict[str, Manifest]:
        """These manifests and all that they need.

        Raises:
            ValueError: one cannot be read, and is not only what an ancestor of a lineage needs.
        """
        found: dict[str, Manifest] = {}
        first = frozenset(roots)
        whole, past = list(first), list[str]()
        while whole or past:
            is_past, todo = not whole, whole or past
            digest = todo.pop()
            if digest in found or (is_past and digest not in self._digests):
                continue
            manifest = found[digest] = self._manifest(digest)
            if manifest.kind == _DECISION and digest not in first:
                # One of the past keeps its evidence. Which weights its state named is history.
                todo.extend(manifest.refers)
            elif manifest.kind != _LINEAGE:
                named = self._digests.intersection(_DIGEST.findall(manifest.text.decode()))
                todo.extend({*manifest.refers, *named})
            else:
                for one in manifest.refers:
                    if one in self._digests and self._manifest(one).kind == _LINEAGE:
                        past.append(one)
                    elif with_ancestors or not is_past:
                        todo.append(one)
        return found


def _remove(store: ArtifactStore, entry: Entry, grace: timedelta) -> bool:
    """Removes something, unless it is young by now."""
    there = store.backend.stat(entry.key)
    if there is None or there.modified > datetime.now(UTC) - grace:
        return False
    store.backend.delete(entry.key)
    return True


def find_damage(
    store: ArtifactStore, digests: Iterable[str], *, read: bool, advance: Advance = no_progress
) -> Iterator[Damage]:
    """Holds manifests and their objects against their names; what cannot be asked is no damage, and rises.

    `read`: objects are read whole, and not only their presence and size are looked at.
    """
    seen: set[str] = set()
    for digest in digests:
        try:
            manifest = store.manifest(digest)
        except StoreError:
            raise
        except ValueError as error:
            yield Damage(manifest_key(digest), str(error))
            continue
        for one in manifest.refers if manifest.kind != _LINEAGE else ():  # whose ancestors may be gone
            key = manifest_key(one)
            if key not in seen and store.backend.stat(key) is None:
                yield Damage(key, f"is missing: {digest[:12]} refers to it")
            seen.add(key)
        keys = manifest.keys()
        for file in manifest.files:
            key = keys[file.path]
            problem = None if key in seen else _problem(store, file, key, read=read)
            seen.add(key)
            if problem is not None:
                yield Damage(key, f"{problem}: {file.path} of {digest[:12]}")
            advance(file.size)


def find_lost(store: ArtifactStore) -> Iterator[Damage]:
    """Pointers to manifests that are not there."""
    there = set(store.manifests())
    for name, digest in store.pointers().items():
        if digest not in there:
            yield Damage(pointer_key(name), f"leads to {digest[:12]}, which is missing")


def _problem(store: ArtifactStore, file: File, key: str, *, read: bool) -> str | None:
    there = store.backend.stat(key)
    if there is None:
        return "is missing"
    if there.size != file.size:
        return f"has {there.size:,} bytes instead of {file.size:,}"
    if read:
        with tempfile.TemporaryDirectory() as folder:
            try:
                store.get_file(file, key, Path(folder) / "copy")
            except CorruptError:
                return "has another content than its name says"
    return None
