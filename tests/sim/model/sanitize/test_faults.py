"""Faults planted in small programs: sanitizers find all of them, and nothing in the programs without a fault."""

from collections.abc import Iterator

import numpy as np
import pytest
from faulty_programs import CHIP, FAULTS, PROGRAMS, Fault, program

from sley.runtime import Buffer, Device
from sley.runtime.device.program import Program
from sley.sim.errors import SanitizerError
from sley.sim.model.sanitize.report import Report

TILES = 5


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open(f"model:{CHIP}?memory=1M&sanitize=init,race,memory,sync", hang_cycles=2_000) as opened:
        yield opened


def arrays(device: Device, name: str) -> list[Buffer]:
    """Arrays of the size that a program takes."""
    width = {"product": 32, "copy": 32, "stream": 32 * TILES, "blocks": 32 * TILES}.get(name, 64)
    out = {"stream": 64 * TILES, "blocks": 32 * TILES}.get(name, width)
    values = np.random.default_rng(3).integers(1, 100, (16, width), np.int8)
    return [device.array(values), device.array(values), device.empty((16, out), np.int8)]


def reports(device: Device, run: Program, *buffers: object) -> list[Report]:
    """What the sanitizers say of a launch."""
    try:
        device.stream.launch(run, [*buffers, TILES], (TILES if run.name == "blocks" else 1,))
        device.synchronize()
    except SanitizerError as error:
        return [report for report in error.reports if isinstance(report, Report)]
    return []


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_without_a_fault(device: Device, name: str) -> None:
    assert not reports(device, program(name, PROGRAMS[name]), *arrays(device, name))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_faults_are_found(device: Device, fault: Fault) -> None:
    found = reports(device, program(fault.program, fault.text), *arrays(device, fault.program))
    matching = [report for report in found if report.finding is fault.finding]
    assert matching, [str(report) for report in found]
    assert any(fault.words in str(report) for report in matching), [str(report) for report in matching]
