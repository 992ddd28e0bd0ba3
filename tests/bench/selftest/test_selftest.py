"""The whole self-test on the gateware, its report, and faults of a chip that it must find."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_memory import DeadLine, Ram
from typer.testing import CliRunner

from sley.abi.config import preset
from sley.abi.instructions import Op
from sley.abi.vector.operations import OPERATIONS, Reduction
from sley.bench.selftest import commands, timing
from sley.bench.selftest.checks import Check, Outcome
from sley.bench.selftest.report import Report
from sley.bench.selftest.run import selftest
from sley.bench.selftest.units.case import contents
from sley.bench.selftest.units.cases import Golden, check_case, unit_cases
from sley.driver import Driver
from sley.driver.hardware.engines import open_transport
from sley.runtime import Device
from sley.runtime.cli import app
from sley.sim.engines.model import ModelTransport
from sley.sim.engines.options import default_engine
from sley.sim.golden import operations

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
BASE = preset("base")


@needs_compiler
def test_the_gateware_passes(tmp_path: Path) -> None:
    """Memory answers late: what the counters of loops say does not depend on it."""
    output = tmp_path / "report.json"
    command = ["fpga", "selftest", "fast:nano?memory=256K&latency=45", "--march-seconds", "0", "-o", str(output)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    report = json.loads(output.read_text())
    assert report["passed"]
    assert report["chip"]["hash"] == f"{preset('nano').hash:#010x}"
    assert report["memory_bytes"] == 1 << 18
    groups = {check["group"] for check in report["checks"]}
    assert groups >= {"chip", "memory", "link", "commands", "scalar", "semaphores", "load", "store", "matrix", "vector"}
    assert [check["outcome"] for check in report["checks"]] == ["passed"] * len(report["checks"])
    assert sum(check["group"] == "timing" for check in report["checks"]) == 3
    assert "0 of " in result.output


@needs_compiler
@pytest.mark.parametrize("engine", ["model:base", "fast:base", pytest.param("fast:edge", marks=pytest.mark.slow)])
def test_every_case_of_wider_chips(engine: str, tmp_path: Path) -> None:
    """Pairs of int8 in a lane, chains and functions, which ``nano`` does not have."""
    command = ["fpga", "selftest", f"{engine}?memory=2M", "--march-seconds", "0", "-o", str(tmp_path / "report.json")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output


def test_every_operation_has_a_case() -> None:
    names = {(case.unit, case.name) for case in unit_cases(BASE)}
    assert len(names) == len([*unit_cases(BASE)])
    for kind in ("int32", "fp32"):
        for op in OPERATIONS:
            assert ("chain", f"{kind} {op.name.lower()}") in names
        for reduction in Reduction:
            assert reduction is Reduction.NONE or ("chain", f"{kind} {reduction.name.lower()} over rows") in names
    for function in BASE.vector_functions:
        assert ("chain", f"function {function.name.lower()}") in names
    for operand in BASE.operand_types:
        assert ("matrix", f"{operand.info.name}, accumulates") in names
    scalar = {name for unit, name in names if unit == "scalar"}
    assert {op.name.lower() for op in Op if 0x10 <= op < 0x28} <= {name.rstrip("_") for name in scalar}
    for flag in ("transpose", "interleave", "interleave and transpose", "list, scratchpad"):
        assert ("load", flag) in names
    assert {name for unit, name in ((c.unit, c.name) for c in unit_cases(preset("quad"))) if "shared" in name} == {
        "shared by row",
        "shared by column",
        "shared by all",
    }


def test_every_case_does_something() -> None:
    """The result of a case is not what the rows held before, and few leave the same: what two ways can say."""
    with Golden(BASE) as golden:
        untouched = contents(BASE)
        left: dict[bytes, str] = {}
        for case in unit_cases(BASE):
            result = golden.expected(case).reshape(-1)
            assert (result != untouched).any(), case.name
            left[result.tobytes()] = case.name
        assert len(left) > 0.77 * len([*unit_cases(BASE)])


@pytest.mark.parametrize(("fault", "case"), [("MAX", "int32 max"), ("XOR", "fp32 xor")])
def test_a_wrong_operation_is_named(fault: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chip in numpy, one of whose operations differs in one bit of one lane."""
    op = next(op for op in OPERATIONS if op.name == fault)
    right = operations.GOLDEN[op]

    def wrong(x: Any, y: Any, is_float: bool) -> Any:
        result = right(x, y, is_float).copy()
        result[..., 2] ^= np.uint32(1 << 7)
        return result

    (chosen,) = [c for c in unit_cases(BASE) if c.unit == "chain" and c.name == case]
    check = Check(chosen.unit, chosen.name)
    with Golden(BASE) as golden, Device(Driver(ModelTransport(BASE, 4 << 20, compiled=False))) as device:
        expected = golden.expected(chosen)
        monkeypatch.setitem(operations.GOLDEN, op, wrong)
        monkeypatch.setattr(Golden, "expected", lambda self, case: expected)
        check_case(device, device.array(contents(BASE)), golden, chosen, check)
    assert check.outcome is Outcome.FAILED
    first = check.differences[0]
    assert first.where.startswith(f"chain {case}, core 0, accumulator row ")
    assert first.where.endswith(", byte 8")
    assert int(first.expected, 16) ^ int(first.found, 16) == 1 << 7


class Deaf:
    """A device whose interrupt line does not reach the host, or is always high."""

    def __init__(self, inner: Any, line: bool) -> None:
        self._inner, self._line = inner, line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def wait_irq(self, cycles: int) -> bool:
        self._inner.advance(min(cycles, 2000))
        return self._line


@pytest.mark.parametrize("line", [False, True])
def test_a_dead_interrupt_line(line: bool) -> None:
    with Device(Driver(Deaf(open_transport("model:nano?memory=1M"), line))) as device:
        check = Check("commands", "interrupts")
        commands.interrupts(device, check)
    assert check.outcome is Outcome.FAILED
    expected = "line before a fence of queue 0" if line else "line behind a fence of queue 0"
    assert check.differences[0].where == expected


@needs_compiler
def test_a_chip_with_other_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is one that has a bank less, so rows meet that do not on the chip."""
    with Device.open("model:nano?memory=1M&cycles=on") as device:
        name, work = "matrix int8", timing.works(device.config)["matrix int8"]
        right = Check("timing", name)
        timing.timing(device, right, name, work)
        assert right.outcome is Outcome.PASSED
        monkeypatch.setattr(timing, "ROUNDS", (4, 25))
        counted = timing.counted

        def shorter(device: Device, program: Any, rounds: int) -> Any:
            return counted(device, program, rounds - (rounds == 25 and device.driver.transport is not real))

        real = device.driver.transport
        monkeypatch.setattr(timing, "counted", shorter)
        wrong = Check("timing", name)
        timing.timing(device, wrong, name, work)
        assert wrong.outcome is Outcome.FAILED
        assert "MATRIX ROW_INT8 of 21 rounds" in " ".join(d.where for d in wrong.differences)


def test_without_a_chip_or_with_bad_memory() -> None:
    """What is left out says why; the exit code is that of a failure."""
    report = selftest(Ram(1 << 14), "ram", 0)
    left = [check for check in report.checks if check.outcome is Outcome.LEFT_OUT]
    assert [check.about for check in left] == ["no chip answered"]
    assert [check.group for check in report.failures] == ["chip"]
    broken = selftest(DeadLine(1 << 14), "dead line", 0)
    assert {check.group for check in broken.failures} >= {"chip", "memory"}


def test_a_report_is_complete() -> None:
    check = Check("memory", "march")
    for number in range(20):
        check.differs(f"address {number}", 1, 0)
    report = Report("fpga:x", {"clock_hz": "1"}, preset("edge"), 64, [check])
    known = json.loads(report.to_json())
    assert known["checks"][0]["count"] == 20
    assert len(known["checks"][0]["differences"]) == 8
    assert not known["passed"]
    assert known["chip"]["parameters"]["array"] == 8
    assert known["board"] == {"clock_hz": "1"}
