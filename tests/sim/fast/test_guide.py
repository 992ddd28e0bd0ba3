"""Runs the code of the guide."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "fast-engine-debugging.md"


def test_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    code = tmp_path / "guide.py"  # Amaranth takes names of signals from the source
    code.write_text("\n".join(blocks))
    exec(compile(code.read_text(), str(code), "exec"), {"__name__": "guide"})
    text = capsys.readouterr().out
    assert text.startswith("3 1000 100\n1\n16\n")
    assert re.search(r"Assertion violated: the sum is 20.*; the last \d+ cycles are in failure\.vcd\n", text)
    assert {path.name for path in tmp_path.glob("*.vcd")} == {"all.vcd", "some.vcd", "failure.vcd"}
