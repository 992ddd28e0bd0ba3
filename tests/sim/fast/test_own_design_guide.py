"""Runs the code of the guide about designs of one's own."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "fast-own-design.md"


def test_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    code = tmp_path / "guide.py"  # Amaranth takes names of signals from the source
    code.write_text("\n".join(blocks))
    exec(compile(code.read_text(), str(code), "exec"), {"__name__": "guide"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["5 131", "10 generations agree"]
    assert re.fullmatch(r"loops over (\d+, )*1024 elements", lines[2])
