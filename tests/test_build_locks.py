"""Fixes a hang: a run killed while it loaded DeepSpeed's extensions left a lock that later runs awaited."""

from pathlib import Path

import pytest

from pipeline.launch.build_locks import drop_stale_locks, extensions_folder


def test_only_locks_that_nobody_holds_open_are_removed(tmp_path: Path) -> None:
    from torch.utils.file_baton import FileBaton

    dead, alive = (tmp_path / "py311_cpu" / name / "lock" for name in ("fused_adam", "shm_comm"))
    for lock in (dead, alive):
        lock.parent.mkdir(parents=True)
    dead.touch()
    baton = FileBaton(str(alive))
    assert baton.try_acquire()
    assert drop_stale_locks(tmp_path) == [dead]
    assert alive.exists() and not dead.exists()
    baton.release()
    assert drop_stale_locks(tmp_path) == drop_stale_locks(tmp_path / "missing") == []


def test_the_folder_is_torchs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch.utils.cpp_extension import get_default_build_root

    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    assert str(extensions_folder()) == get_default_build_root()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert extensions_folder() == tmp_path
