"""Files that cannot be written, before any work is done for them."""

import os
from pathlib import Path

import pytest

from sley.abi.outputs import OutputError, check_output


def test_what_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    monkeypatch.chdir(tmp_path)
    check_output(None, tmp_path / "new", there, Path("here"))
    assert there.read_text() == "mine"
    assert not (tmp_path / "new").exists()


def test_what_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (tmp_path / "none" / "x", file / "x"):
        with pytest.raises(OutputError, match=f"{path} cannot be written: there is no folder {path.parent}; make it"):
            check_output(None, path)
    with pytest.raises(OutputError, match="it is a folder; name another file"):
        check_output(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    check_output(file)
    with pytest.raises(OutputError, match="you may not write there"):
        check_output(tmp_path / "new")
