"""What is damaged in a store, and what nothing refers to any more.

Kept are the manifests that pointers and given references name, what those refer to, and everything younger
than the grace: a publisher at work writes its objects first. Manifests are removed before objects, so that
no manifest ever names an object that gc has removed. A reused object is made young by its publisher, and gc
looks at the age again before it removes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline.artifacts.backend import Advance, Entry, Unfinished, no_progress
from pipeline.artifacts.failures import CorruptError, StoreError
from pipeline.artifacts.layout import MANIFESTS, MODELS, OBJECTS, RECEIPTS, digest_of, manifest_key
from pipeline.artifacts.manifest import File, Manifest
from pipeline.artifacts.store import ArtifactStore

DEFAULT_GRACE = timedelta(days=7)


@dataclass(frozen=True)
class Garbage:
    """What gc found, in the order in which it is removed."""

    manifests: tuple[Entry, ...]
    objects: tuple[Entry, ...]  # files of models, and receipts of manifests that are gone too
    uploads: tuple[Unfinished, ...]
    num_kept: int
    num_young: int  # not referred to, within the grace

    @property
    def size(self) -> int:
        """Bytes of manifests and objects; what unfinished uploads hold is not known."""
        return sum(entry.size for entry in (*self.manifests, *self.objects))


@dataclass(frozen=True)
class Damage:
    """Something that a manifest or pointer names and that is not right."""

    what: str
    problem: str
    entry: Entry | None = None  # of another content, which publishing would take for the right one


def find_garbage(
    store: ArtifactStore, *, references: Iterable[str] = (), grace: timedelta = DEFAULT_GRACE
) -> Garbage:
    """Finds what can go; removes nothing.

    Args:
        store: Which.
        references: Digests of manifests that others refer to: registered versions, runs.
        grace: What is younger stays.

    Raises:
        ValueError: a manifest that must be kept cannot be read; then nothing is said to be garbage.
    """
    now = datetime.now(UTC)
    before = now - grace
    manifests = list(store.backend.entries(MANIFESTS))
    young = {digest_of(entry.key) for entry in manifests if entry.modified > before}
    roots = {*references, *store.pointers().values()}
    kept = store.closure(roots | young)
    # A model's files have its manifest's digest in their keys, which is among the kept ones.
    needed = {digest_of(key) for digest in kept for key in store.manifest(digest).keys().values()} - kept
    old_manifests, num_young = _old(manifests, kept, before)
    objects, num_young_objects = _old(store.backend.entries(OBJECTS), needed, before)
    models, num_young_files = _old(store.backend.entries(MODELS), kept, before)
    receipts, _ = _old(store.backend.entries(RECEIPTS), kept, before)
    uploads = tuple(one for one in store.backend.unfinished() if one.started <= before)
    return Garbage(
        manifests=old_manifests,
        objects=objects + models + receipts,
        uploads=uploads,
        num_kept=len(kept) + len(needed),
        num_young=len(young - store.closure(roots)) + num_young + num_young_objects + num_young_files,
    )


def remove(store: ArtifactStore, garbage: Garbage, *, grace: timedelta = DEFAULT_GRACE) -> int:
    """Removes what was found, unless it has been used since; returns how many things went."""
    num_removed = 0
    for entry in (*garbage.manifests, *garbage.objects):
        there = store.backend.stat(entry.key)
        if there and there.modified <= datetime.now(UTC) - grace:
            store.backend.delete(entry.key)
            num_removed += 1
    for upload in garbage.uploads:
        store.backend.give_up(upload)
    return num_removed + len(garbage.uploads)


def find_damage(
    store: ArtifactStore, digests: Iterable[str], *, read: bool, advance: Advance = no_progress
) -> Iterator[Damage]:
    """Holds manifests and their objects against their names; what cannot be asked is no damage, and rises.

    Args:
        store: Which.
        digests: Of the manifests.
        read: Whether objects are read whole, or only their presence and size are looked at.
        advance: Told of bytes that are looked at.
    """
    seen: set[str] = set()
    for digest in digests:
        manifest = _manifest_or_damage(store, digest)
        if isinstance(manifest, Damage):
            yield manifest
            continue
        keys = manifest.keys()
        for file in manifest.files:
            key = keys[file.path]
            if key not in seen:
                seen.add(key)
                damage = _damage(store, digest, file, key, read=read)
                if damage is not None:
                    yield damage
            advance(file.size)


def remove_damaged(store: ArtifactStore, damage: Damage) -> bool:
    """Removes what is of another content, unless it was written anew since; returns whether it did.

    Raises:
        StoreError: the store does not answer, or its role may not remove objects.
    """
    if damage.entry is None or store.backend.stat(damage.entry.key) != damage.entry:
        return False
    store.backend.delete(damage.entry.key)
    return True


def _old(entries: Iterable[Entry], kept: set[str], before: datetime) -> tuple[tuple[Entry, ...], int]:
    """Those that are old and not kept, and the number of those that are young and not kept."""
    loose = [entry for entry in entries if digest_of(entry.key) not in kept]
    old = tuple(entry for entry in loose if entry.modified <= before)
    return old, len(loose) - len(old)


def _manifest_or_damage(store: ArtifactStore, digest: str) -> Manifest | Damage:
    key = manifest_key(digest)
    try:
        return store.manifest(digest)
    except StoreError:
        raise
    except CorruptError:
        there = store.backend.stat(key)
    except ValueError as error:
        return Damage(key, str(error))
    try:
        return store.manifest(digest)  # what is removed is what was seen before it was read
    except CorruptError as error:
        return Damage(key, str(error), there)


def _damage(store: ArtifactStore, digest: str, file: File, key: str, *, read: bool) -> Damage | None:
    what, there = f"{digest[:12]} {file.path}", store.backend.stat(key)
    if there is None:
        return Damage(what, "is missing")
    if there.size != file.size:
        return Damage(what, f"has {there.size:,} bytes instead of {file.size:,}")
    if read:
        with tempfile.TemporaryDirectory() as folder:
            try:
                store.get_file(file, key, Path(folder) / "copy")
            except CorruptError:
                return Damage(what, "has another content than its name says", there)
    return None
