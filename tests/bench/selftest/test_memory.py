"""The march and the test of address lines find each fault, and say where; of memory that is right they say nothing."""

import pytest
from faulty_memory import Coupled, DeadLine, Idempotent, Ram, SlowTransition, StuckBit

from sley.bench.selftest import link, memory
from sley.bench.selftest.checks import Check, Checks, Outcome

SIZE = 1 << 14


def marched(device: Ram, seconds: float = 0.0) -> Check:
    check = Check("memory", "march")
    memory.march(device, check, seconds)
    return check


def lines(device: Ram) -> Check:
    check = Check("memory", "lines of the address")
    memory.address_lines(device, check)
    return check


@pytest.mark.parametrize("size", [SIZE, 3000, 5 * 4096 + 4])
def test_memory_that_is_right(size: int) -> None:
    device = Ram(size)
    assert lines(device).outcome is Outcome.PASSED
    check = marched(device, seconds=60)
    assert check.outcome is Outcome.PASSED
    assert check.about == f"{size // 4096 * 4096 or size:,} of {size:,} bytes, March C-"


@pytest.mark.parametrize("value", [0, 1])
def test_a_stuck_bit(value: int) -> None:
    device = StuckBit(SIZE)
    device.value = value
    check = marched(device, seconds=60)
    assert check.outcome is Outcome.FAILED
    (first, *_) = check.differences
    assert first.where.startswith("address 0x1040, march element ")
    expected, found = int(first.expected, 16), int(first.found, 16)
    assert expected ^ found == 1 << 11
    assert found >> 11 & 1 == value


def test_a_dead_line_of_the_address() -> None:
    check = lines(DeadLine(SIZE))
    assert check.outcome is Outcome.FAILED
    differences = [(d.where, d.expected, d.found) for d in check.differences]
    assert ("address 0x0", "what was written there", "what was written to 0x2000") in differences


@pytest.mark.parametrize(("device", "place"), [(Coupled, 0x200), (SlowTransition, 0x300)])
def test_faults_that_a_march_alone_finds(device: type[Ram], place: int) -> None:
    assert lines(device(SIZE)).outcome is Outcome.PASSED
    check = marched(device(SIZE))
    assert check.outcome is Outcome.FAILED
    assert all(difference.where.startswith(f"address {place:#x}, ") for difference in check.differences)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("above", [True, False])
def test_couplings_each_of_which_one_element_finds(above: bool, rising: bool, value: int) -> None:
    """An edge of one cell sets another one, below or above it. Without an element one of these goes unnoticed."""
    low, high = (
        next(a for a in range(start, start + 99) if not memory.pattern(a & ~3, 4)[a & 3] & 1) for start in (256, 512)
    )
    device = Idempotent(SIZE)
    device.aggressor, device.victim = (high, low) if above else (low, high)
    device.rising, device.value = rising, value
    check = marched(device)
    assert check.outcome is Outcome.FAILED
    assert all(d.where.startswith(f"address {device.victim & ~3:#x}, ") for d in check.differences)


def test_a_march_ends_in_time() -> None:
    """Two windows in any case: the first and the last one."""
    device, shares = Ram(1 << 20), []
    check = Check("memory", "march")
    memory.march(device, check, 0.0, shares.append)
    assert check.about == "8,192 of 1,048,576 bytes, March C-"
    assert shares == [1.0, 1.0]
    assert any(device.memory[-4096:])
    assert [*memory.windows(1 << 14)][:2] == [0, 3 * 4096]
    assert sorted(memory.windows(1 << 16)) == [*range(0, 1 << 16, 4096)]


def test_patterns_differ_everywhere() -> None:
    whole = memory.pattern(0, 1 << 20)
    words = {whole[i : i + 4] for i in range(0, 1 << 20, 4)}
    assert len(words) == 1 << 18
    assert memory.pattern(4096, 64) == whole[4096:4160]
    assert bytes(a ^ b for a, b in zip(memory.pattern(8, 7), memory.pattern(8, 7, True), strict=True)) == b"\xff" * 7


class Lossy(Ram):
    """Drops the last byte of long writes of an odd length."""

    def write_memory(self, address: int, data: bytes) -> None:
        super().write_memory(address, data[:-1] if len(data) % 2 and len(data) > 100 else data)


def test_bursts_of_random_lengths() -> None:
    for device, outcome in ((Ram(SIZE), Outcome.PASSED), (Lossy(SIZE), Outcome.FAILED)):
        check = Check("link", "lengths")
        link.random_lengths(device, check)
        assert check.outcome is outcome
    for test in (link.latency, link.throughput):
        check = Check("link", "rate")
        test(Ram(SIZE), check)
        assert check.outcome is Outcome.PASSED
        assert check.about


def test_losses_are_a_failure() -> None:
    device = Ram(SIZE)
    for recoveries, outcome in ((0, Outcome.PASSED), (3, Outcome.FAILED)):
        device.recoveries = recoveries
        check = Check("link", "losses")
        link.losses(device, check)
        assert check.outcome is outcome


def test_an_error_ends_a_check_and_not_the_test() -> None:
    checks, names = Checks(), []
    checks = Checks(names.append)
    with checks.check("group", "broken") as check:
        Ram(64).read_memory(60, 8)
    assert check.outcome is Outcome.FAILED
    assert "TransportError: bytes 0x3c..0x44 are outside" in check.differences[0].found
    with pytest.raises(ZeroDivisionError), checks.check("group", "a fault of the test"):
        _ = 1 / 0
    assert names == ["group: broken", "group: a fault of the test"]
