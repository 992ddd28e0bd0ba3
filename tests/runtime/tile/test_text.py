"""The text of tile IR: what is printed is parsed to the same, and what means nothing is refused with its line."""

from typing import Any

import kernels
import numpy as np
import pytest
from tile_agreement import interpreted, kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.ir import Function
from sley.runtime.tile.lowering import DUMP, PASSES, lower
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


@tile.function
def squares(x: Any, out: Any, number: Any, turned: bool) -> None:
    for k in range(2):
        place = (k, number) if turned else (number, k)
        tile.store(out, (number * 2 + k, 0), tile.load(x, (*place, 0), (1, 16)))


@tile.kernel
def rows_of(x: Any, out: Any, turned: bool = False) -> None:
    """Two loops of one name, one of them in the other, and two more behind them."""
    for k in range(2):
        squares(x, out, k, turned)
    for _ in range(2):
        for k in range(2):
            tile.store(out, (k, 0), tile.load(out, (k, 0), (1, 16)) + 1.0)


def test_loops_of_one_name(base: Device) -> None:
    """Each has a name of its own in the text, by which programs are kept."""
    x = np.arange(64, dtype=np.float32).reshape(2, 2, 16)
    arrays = {"x": x, "out": np.zeros((4, 16), np.float32)}
    texts = [printed(rows_of.function(types_of(arrays), {"turned": turned}, (1, 1, 1))) for turned in (False, True)]
    assert texts[0] != texts[1]
    assert all(f"(%k{number}: index)" in texts[0] for number in ("", ".2", ".3"))
    assert [value.name for value in parse(texts[0]).body.ops[0].body.ops[0].body.parameters] == ["k"]
    for turned in (False, True):
        found = kernel_agrees(base, rows_of, arrays, turned=turned)["out"].view(np.float32)
        wanted = (x.transpose(1, 0, 2) if turned else x).reshape(4, 16).copy()
        wanted[:2] += 2
        assert (found == wanted).all()


def test_every_pass_has_a_text() -> None:
    arrays = types_of({"a": np.zeros((70, 96), np.float32), "b": np.zeros((4, 4), np.float32)})
    function = kernels.softmax.function({"x": arrays["a"], "out": arrays["a"]}, {"rows": 8}, (9, 1, 1))
    seen = []

    def watch(name: str, passed: Function) -> None:
        seen.append((name, printed(parse(printed(passed))) == printed(passed)))

    lower(function, 16, watch=watch)
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
