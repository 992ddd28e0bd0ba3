"""What is known of int32 arrays without reading them: what the host wrote, until the device may have written."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from writer_program import WORDS

from sley.runtime import Buffer, Device, Program
from sley.runtime.device.known import largest

WRITE = Program("writer", WORDS, ("to", "value"))
READ = Program("reader", WORDS, ("to", "value", "list"), bounds=(("list", 100),))
"""Says that it only reads its third argument."""


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("model:nano?memory=1M") as opened:
        yield opened


def test_the_smallest_int32_has_no_absolute_value_of_its_type() -> None:
    smallest = np.iinfo(np.int32).min
    assert largest(np.array([5, smallest], np.int32)) == 1 << 31
    assert largest(np.array([smallest + 1, 7], np.int32)) == (1 << 31) - 1
    assert largest(np.array([-3, 2], np.int32)) == 3
    assert largest(np.array([], np.int32)) == 0


def test_what_the_host_wrote_is_known(device: Device) -> None:
    array = device.array(np.array([1, -9, 3], np.int32))
    assert array.known.largest == 9
    array[1:].write(np.array([0, 0], np.int32))
    assert array.known.largest == 9, "elements that others may still hold"
    array[:1].write(np.array([-20], np.int32))
    assert array[2:].known.largest == 20
    array.write(np.array([2, 2, 2], np.int32))
    assert array.known.largest == 2
    assert device.empty(3, np.int32).known.largest is None
    assert device.array(np.array([1.5])).known.largest is None


WRITERS: dict[str, Callable[[Device, Buffer], None]] = {
    "launch": lambda device, array: device.stream.launch(WRITE, {"to": array, "value": 77}),
    "copy": lambda device, array: device.stream.copy(array, device.array(np.full(4, 77, np.int32))),
    "fill": lambda device, array: device.stream.fill(array, 77),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("part", [slice(None), slice(0, 4)])
def test_what_the_device_may_have_written_is_not_known(
    device: Device, writer: str, captured: bool, part: slice
) -> None:
    """A graph makes its arrays unknown whenever it is launched, through views too."""
    array = device.array(np.zeros(4 if part == slice(None) else 6, np.int32))
    if captured:
        with device.stream.capture() as graph:
            WRITERS[writer](device, array[part])
        array.write(np.zeros(array.shape, np.int32))
        assert array.known.largest == 0
        graph.launch()
    else:
        WRITERS[writer](device, array[part])
    assert array.known.largest is None
    array.check_bound(0x4D4D4D4D, "the test")
    assert array.known.largest == largest(array.numpy()) > 0


def test_what_a_program_only_reads_stays_known(device: Device) -> None:
    to, numbers = device.array(np.zeros(4, np.int32)), device.array(np.array([100, -100], np.int32))
    device.stream.launch(READ, [to, 1, numbers])
    with device.stream.capture() as graph:
        device.stream.launch(READ, {"to": to, "value": 2, "list": numbers})
    graph.launch()
    assert (numbers.known.largest, to.known.largest) == (100, None)
    numbers.write(np.array([101, 0], np.int32))
    for launch in (lambda: device.stream.launch(READ, [to, 1, numbers]), graph.launch):
        with pytest.raises(Exception, match="list of reader holds 101, beyond 100"):
            launch()
