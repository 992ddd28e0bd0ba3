"""The text of tile IR: what is printed is parsed to the same, and what means nothing is refused with its line."""

import kernels
import numpy as np
import pytest
from tile_agreement import interpreted, types_of

from sley.runtime import tile
from sley.runtime.tile.compiler import DUMP, PASSES, lower
from sley.runtime.tile.text import parse, printed

TEXT = """sley.tile 1
kernel double(%x: fp32[4, 64; 64, 1], %y: fp32[4, 64; 64, 1]) grid 1, 1, 1 {
  %0: index = const() {value=0} @3
  %1: fp32[4, 64] = load(%x, %0, %0) {axes=(0, 1), fill=0.0, shape=(4, 64)} @3
  %2: fp32[4, 64] = binary(%1, %1) {kind='add'} @4
  store(%y, %0, %0, %2) {axes=(0, 1)} @4
}
"""


def test_round_trip() -> None:
    assert printed(parse(TEXT)) == TEXT
    x = np.arange(256, dtype=np.float32).reshape(4, 64)
    found = interpreted(parse(TEXT), {"x": x, "y": np.zeros_like(x)}, 16)
    assert (found["y"].view(np.float32) == 2 * x).all()


def test_every_pass_has_a_text() -> None:
    arrays = types_of({"a": np.zeros((70, 96), np.float32), "b": np.zeros((4, 4), np.float32)})
    function = kernels.softmax.function({"x": arrays["a"], "out": arrays["a"]}, {"rows": 8}, (9, 1, 1))
    seen = []
    lower(function, 16, lambda name, passed: seen.append((name, printed(parse(printed(passed))) == printed(passed))))
    assert seen == [(name, True) for name in ("source", *PASSES)]


def test_dump(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(DUMP, "chains")
    lower(parse(TEXT), 16)
    error = capsys.readouterr().err
    assert error.startswith("# behind chains\nsley.tile 1\nkernel double")
    assert error.count("# behind") == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sley.tile 1", "sley.tile 2", "line 1: a program begins with 'sley.tile 1'"),
        ("kernel double", "double", "line 2: expected kernel"),
        ("(%1, %1)", "(%1, %7)", "line 5: %7 has no value yet"),
        ("kind='add'", "kind='plus'", "line 5: binary: no operation 'plus'; there are add, max"),
        ("%2: fp32[4, 64] =", "%2: fp32[4, 63] =", r"line 5: results of binary are fp32\[4, 64\]"),
        ("binary(", "sum(", "line 5: no operation 'sum'; there are const, block"),
        ("%2: fp32", "%1: fp32", "line 5: %1 has a value already"),
        ("fill=0.0, ", "", "line 4: load: without fill"),
        ("  store(%y, %0, %0, %2) {axes=(0, 1)} @4\n}\n", "", "a block has no end"),
    ],
)
def test_mistakes(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(tile.TileError, match=message):
        parse(TEXT.replace(old, new, 1))
