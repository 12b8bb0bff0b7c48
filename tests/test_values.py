"""A file of any size is read through a window, with the same rows and places whatever the window's size."""

import json
from pathlib import Path

import pytest

from pipeline.data import values
from pipeline.data.values import raw_rows

ROWS = [{"id": str(i), "text": 'é]}{,\\" ' * i + "\n"} for i in range(12)]


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("list_key", [None, "questions"])
def test_rows_do_not_depend_on_the_window(
    size: int, indent: int | None, list_key: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "_READ_CHARS", max(size, 24 if list_key else 1))
    path = tmp_path / "rows.json"
    text = json.dumps({list_key: ROWS} if list_key else ROWS, indent=indent, ensure_ascii=False)
    path.write_text(text)
    found = list(raw_rows(path, list_key))
    assert [json.loads(row.text) for row in found] == ROWS
    for row in found:
        line = int(row.place.partition(" ")[0].rpartition(":")[2])
        assert row.text.splitlines()[0] in text.splitlines()[line - 1]


def test_a_list_is_read_as_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_READ_CHARS", 16)
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS[:2]) + "broken")
    rows = raw_rows(path)
    assert json.loads(next(rows).text) == ROWS[0]


def test_what_has_no_end_is_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_READ_CHARS", 16)
    monkeypatch.setattr(values, "_MAX_ROW_CHARS", 100)
    path = tmp_path / "rows.json"
    path.write_text("[" + '{"id": "' + "x" * 100_000)
    with pytest.raises(ValueError, match=r"rows.json:1 \(row 1\): not JSON"):
        list(raw_rows(path))
