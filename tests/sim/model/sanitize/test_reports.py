"""What reports say, when they are raised, what a device can do afterwards; memory that the host gives and takes."""

from collections.abc import Iterator

import numpy as np
import pytest
from faulty_programs import CHIP, PROGRAMS, program

from sley.abi.transport import EngineError
from sley.driver import QueueFault
from sley.runtime import Device, blas
from sley.sim import SanitizerError
from sley.sim.model.sanitize.kinds import Finding
from sley.sim.model.sanitize.report import Report
from sley.sim.model.sanitize.reports import LIMIT

TILE = (16, 32)
URL = f"model:{CHIP}?memory=1M&sanitize="


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open(URL + "init,race,memory,sync", hang_cycles=2_000) as opened:
        yield opened


def copy(device: Device, *arguments: object) -> list[Report]:
    """Reports of the program that copies a tile."""
    device.stream.launch(program("copy_of_a_tile", PROGRAMS["copy"]), [*arguments, 0])
    try:
        device.synchronize()
    except SanitizerError as error:
        return list(error.reports)
    return []


def test_a_report_names_program_instructions_and_remedy(device: Device) -> None:
    text = PROGRAMS["copy"].replace("wait=0", "")
    a, b = (device.array(np.ones(TILE, np.int8)) for _ in range(2))
    device.stream.launch(program("hasty", text), [a, a, b, 0])
    with pytest.raises(SanitizerError) as caught:
        device.synchronize()
    message = str(caught.value)
    for words in (
        "race: STORE reads scratchpad row 0",
        "LOAD at pc 6: load    r8, r0, #16 signal=0 writes",
        "core 0, block (0, 0, 0), context 0, program hasty",
        "STORE at pc 7: store   r10, r0, #16",
        "let LOAD signal a semaphore",
        "semaphore 0 is above zero",
    ):
        assert words in message, message


def test_the_device_stays_usable(device: Device) -> None:
    a, b = (device.array(np.ones(TILE, np.int8)) for _ in range(2))
    for old, new in (("wait=0", ""), ("signal=0", "")):
        device.stream.launch(program("faulty", PROGRAMS["copy"].replace(old, new)), [a, a, b, 0])
        with pytest.raises(SanitizerError):
            device.synchronize()
        device.context.reset()
        c = blas.gemm(device.array(np.ones((5, 9), np.int8)), device.array(np.ones((9, 7), np.int8)))
        assert (c.numpy() == 9).all()
        assert not copy(device, a, a, b)


def test_what_was_found_is_raised_by_close_if_not_before() -> None:
    device = Device.open(URL + "race")
    a = device.array(np.ones(TILE, np.int8))
    device.stream.launch(program("hasty", PROGRAMS["copy"].replace("wait=0", "")), [a, a, a, 0])
    device.driver.transport.advance(10_000)
    with pytest.raises(SanitizerError):
        device.close()
    device.close()


def test_reports_are_limited() -> None:
    text = "\n".join(["add r12, r12, #1", "vrow r12 row=bias"] * (LIMIT + 5) + ["end"])
    with Device.open(URL + "init") as device:
        device.stream.launch(program("many", text), [0, 0, 0, 0])
        with pytest.raises(SanitizerError) as caught:
            device.synchronize()
    assert len(caught.value.reports) == LIMIT
    assert f"and {caught.value.more} more" in str(caught.value)


@pytest.mark.parametrize("which", ["init", "race", "memory", "sync"])
def test_each_alone(which: str) -> None:
    """A sanitizer that was not asked for finds nothing."""
    faults = {
        "init": ("load r8, r0, #16", "load r8, r0, #12"),
        "race": ("signal=0\n    store r10, r0, #16 wait=0", "\n    store r10, r0, #16"),
        "memory": ("load r8, r0, #16", "load r8, r0, #17"),
        "sync": ("store r10, r0, #16 wait=0", "store r10, r0, #16 wait=0\nsync signal=3"),
    }
    with Device.open(URL + which) as device:
        a, b = (device.array(np.ones(TILE, np.int8)) for _ in range(2))
        for name, (old, new) in faults.items():
            device.stream.launch(program(name, PROGRAMS["copy"].replace(old, new)), [a, a, b, 0])
            try:
                device.synchronize()
            except SanitizerError:
                assert name == which
                device.context.reset()
            except QueueFault:
                assert name == "sync"  # SEMAPHORE_LEFTOVER
            else:
                assert name != which


class TestMemory:
    """Bytes of device memory."""

    def test_use_after_free(self, device: Device) -> None:
        a, b = (device.array(np.ones(TILE, np.int8)) for _ in range(2))
        address = a.address
        a.free()
        (report,) = copy(device, address, 0, b)
        assert report.finding is Finding.OUTSIDE
        assert report.address == address
        assert "byte 0 of" in str(report)
        assert "that were freed" in str(report)

    def test_behind_the_end(self, device: Device) -> None:
        a, b = (device.array(np.ones(TILE, np.int8)) for _ in range(2))
        (report,) = copy(device, a.address + 1, 0, b)
        assert report.address == a.address + a.nbytes
        assert "0 bytes behind the end of an allocation of 512 bytes" in str(report)

    def test_memory_is_used_again(self, device: Device) -> None:
        b = device.empty(TILE, np.int8)
        for _ in range(3):
            a = device.array(np.ones(TILE, np.int8))
            assert not copy(device, a, 0, b)
            a.free()

    def test_copies_of_what_nobody_wrote_are_not_defined(self, device: Device) -> None:
        """They may be made, by LOAD and STORE or by a packet; a product with them is reported."""
        a, b, c = (device.empty(TILE, np.int8) for _ in range(3))
        assert not copy(device, a, 0, b)
        device.stream.copy(c, b)
        device.synchronize()
        blas.gemm(c, device.array(np.ones((32, 8), np.int8)))
        with pytest.raises(SanitizerError, match="that nobody has written"):
            device.synchronize()
        device.stream.fill(b, 1)
        device.stream.copy(c, b)
        assert (blas.gemm(c, device.array(np.ones((32, 8), np.int8))).numpy() == 32).all()

    def test_an_array_allocated_again_holds_nothing(self, device: Device) -> None:
        device.array(np.ones(TILE, np.int8)).free()
        blas.gemm(device.empty(TILE, np.int8), device.array(np.ones((32, 8), np.int8)))
        with pytest.raises(SanitizerError, match="that nobody has written"):
            device.synchronize()

    def test_packets(self, device: Device) -> None:
        a, b = (device.array(np.ones(TILE, np.int8)) for _ in range(2))
        device.stream.queue.copy(a.address, b.address, a.nbytes + 1)
        with pytest.raises(SanitizerError, match="packet COPY"):
            device.synchronize()
        device.stream.queue.fill(b.address + b.nbytes, 0, 8)
        with pytest.raises(SanitizerError, match="packet FILL"):
            device.synchronize()


def test_numpy_has_no_sanitizers() -> None:
    with pytest.raises(EngineError, match="sanitizers watch compiled cores"):
        Device.open("model:nano?values=numpy&sanitize=race")


def test_unknown_names() -> None:
    with pytest.raises(EngineError, match="no sanitizer 'speed'; there are init, race, memory, sync"):
        Device.open("model:nano?sanitize=race,speed")
