"""Hardware queues by the number of a device and of a queue: what streams and events of PyTorch call.

Which queue is current belongs to the device, not to the thread: autograd's threads work while the caller waits.
"""

from __future__ import annotations

from sley.driver import BadRequest
from sley.runtime.device.event import Event
from sley.runtime.device.stream import Stream
from sley.runtime.frameworks.torch_device.engine import device, opened

HERTZ = 1e9
"""A millisecond is a million cycles: simulated chips have no clock, and this is that of the energy estimate."""
_given: dict[int, int] = {}


def queue_of(index: int, number: int) -> Stream:
    """A queue. Raises ``BadRequest`` for a number that the device does not have."""
    streams = device(index).streams
    if not 0 <= number < len(streams):
        raise BadRequest(f"queue {number} of sley:{index}, which has {len(streams)}")
    return streams[number]


def current(index: int) -> int:
    """The number of the queue that work goes to."""
    return device(index).streams.index(device(index).stream) if opened(index) else 0


def new(index: int) -> int:
    """The number of a queue for a new stream: all but the first in turn, which is the default one."""
    count, given = len(device(index).streams), _given.get(index, 0)
    _given[index] = given + 1
    return 0 if count == 1 else 1 + given % (count - 1)


def exchange(index: int, number: int) -> int:
    """Sends work to a queue; the number of the one before."""
    before = current(index)
    if number != before:
        device(index).stream = queue_of(index, number)
    return before


def idle(index: int, number: int) -> bool:
    """Whether all work of a queue is done."""
    return not (opened(index) and queue_of(index, number).queue.pending)


def synchronize(index: int, number: int) -> int:
    """Returns when all work of a queue is done. Raises the error of whatever failed."""
    if opened(index):
        queue_of(index, number).synchronize()
    return 0


def synchronize_all(index: int) -> int:
    """Returns when all work of a device is done."""
    if opened(index):
        device(index).synchronize()
    return 0


def record(index: int, number: int) -> Event:
    """An event behind all work of a queue so far."""
    return queue_of(index, number).record()


def hold(index: int, number: int, event: Event) -> int:
    """Makes a queue wait for an event of the same device; the host waits for one of another device."""
    if event.device is device(index):
        queue_of(index, number).wait(event)
    else:
        event.wait()
    return 0


def happened(event: Event) -> bool:
    """Whether the work before an event is done."""
    return event.done


def wait(event: Event) -> int:
    """Returns when the work before an event is done."""
    event.wait()
    return 0


def milliseconds(start: Event, end: Event) -> float:
    """Time between two events of one device."""
    return end.since(start) / (HERTZ / 1e3)
