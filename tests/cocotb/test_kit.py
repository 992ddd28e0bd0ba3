"""The kit for benches: pauses, errors, the scoreboard, names in waveforms; and its bench on a chip."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from kit_chip import KIT

from sley.abi.instructions import Op
from sley.hw.ip.export import ip_files, write_export
from sley.sim.cocotb.axi_memory import BusFault
from sley.sim.cocotb.gaps import random_gaps
from sley.sim.cocotb.runner import installed_simulators, run_bench
from sley.sim.cocotb.scoreboard import Found, ScoreboardError, check
from sley.sim.cocotb.waveform import labelled_signals, write_views
from sley.sim.engines.design_text import cached_verilog


@pytest.mark.slow
@pytest.mark.skipif("icarus" not in installed_simulators(), reason="no icarus (Debian, Ubuntu: apt install iverilog)")
def test_operators_gaps_and_errors(tmp_path: Path) -> None:
    """``nn`` and recorded work against the exact model, in every bit and cycle; see ``kit_bench.py``."""
    files = ip_files(KIT, cached_verilog(KIT))
    write_export(files, tmp_path / "ip")
    run_bench(sorted((tmp_path / "ip" / "rtl").glob("*.v")), "kit_bench", tmp_path / "build", "icarus")


def test_gaps() -> None:
    pauses = [*islice(random_gaps(1, 0.3, 5), 10_000)]
    assert pauses == [*islice(random_gaps(1, 0.3, 5), 10_000)]
    assert pauses != [*islice(random_gaps(2, 0.3, 5), 10_000)]
    runs = [len(run) for run in "".join("x" if pause else " " for pause in pauses).split()]
    assert {*runs} == {1, 2, 3, 4, 5}
    # Of cycles that do not continue a pause, 0.3 begin one, of 3 cycles on average.
    assert 0.45 < sum(pauses) / len(pauses) < 0.52
    assert not any(islice(random_gaps(1, 0.0), 100))
    for wrong, message in (((1, 1.0, 1), "chance is 1.0"), ((1, -0.1, 1), "chance is -0.1"), ((1, 0.5, 0), "longest")):
        with pytest.raises(ValueError, match=message):
            next(random_gaps(*wrong))


def test_where_a_fault_is() -> None:
    fault = BusFault(100, 8, None)
    met = [start for start in range(90, 115) if fault.meets(start, 4)]
    assert met == [*range(97, 108)]


def found(values: object, name: str = "y", cycle: int | None = 7) -> Found:
    return Found(name, np.asarray(values), cycle)


def test_scoreboard() -> None:
    nan = np.array([np.nan, 0.0], np.float32)
    check(found(nan), found(nan.copy()), True)
    check(found(nan, cycle=8), found(nan), False)
    check(found(np.zeros((0, 3))), found(np.zeros((0, 3))), True)
    check(found(np.int8(3)), found(np.int8(3)), True)
    wrong = [
        (
            found(nan),
            found(np.array([np.nan, -0.0], np.float32)),
            r"1 of 2 elements differ: \(1,\): -0.0 expected, 0.0 found",
        ),
        (found(nan, cycle=8), found(nan), "known in cycle 8, on the model in cycle 7"),
        (found([1, 2]), found([[1, 2]]), "the model found"),
        (found([1, 2]), found([1.0, 2.0]), "the model found"),
        (found([1], "a"), found([1], "b"), "the model found"),
    ]
    for got, wanted, message in wrong:
        with pytest.raises(ScoreboardError, match=message):
            check(got, wanted, True)


VERILOG = """
module inner (input wire clk, input wire [1:0] what);  // what is not explained
  reg [1:0] state = 2'h0;  // 0 IDLE, 1 RUN, 3 DONE
  wire [3:0] plain;
endmodule
module sley_core_sequencer_execute_alu (
    input wire [7:0] op,
    output wire [31:0] result
);
endmodule
module top (
    input wire clk,
    output wire [2:0] mode  // 0 OFF, 5 ON
);
  inner #(.WIDTH(3)) first (
    .clk(clk)
  );
  inner second (
    .clk(clk)
  );
  sley_core_sequencer_execute_alu alu (
    .op(op)
  );
endmodule
"""


def test_names_in_waveforms(tmp_path: Path) -> None:
    source = tmp_path / "top.v"
    source.write_text(VERILOG)
    signals = labelled_signals([source, tmp_path / "rules.vlt"], "top")
    states = {0: "IDLE", 1: "RUN", 3: "DONE"}
    assert [(signal.path, signal.bits, signal.names) for signal in signals] == [
        ("top.mode", 3, {0: "OFF", 5: "ON"}),
        ("top.first.state", 2, states),
        ("top.second.state", 2, states),
        ("top.alu.op", 8, {op.value: op.name for op in Op}),
    ]
    view = write_views([source], "top", tmp_path / "top.fst")
    text = view.read_text()
    assert "top.first.state[1:0]" in text
    assert str(tmp_path / "filters" / "top_second_state.txt") in text
    assert (tmp_path / "filters" / "top_mode.txt").read_text() == "0 OFF\n5 ON\n"
    assert (tmp_path / "filters" / "top_alu_op.txt").read_text().splitlines()[0] == "01 END"
    mapping = (tmp_path / ".surfer" / "mappings" / "top_first_state.txt").read_text()
    assert mapping == "Name = top_first_state\nBits = 2\n0 IDLE\n1 RUN\n3 DONE\n"
