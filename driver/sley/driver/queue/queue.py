"""One hardware queue: packets go in, fences and callbacks say that they are over, and a fault does not end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sley.abi.errors import SleyError
from sley.abi.faults import QueueState
from sley.abi.packets import FENCE_BYTES, PacketOp
from sley.driver.errors import BadRequest, CallbackFailed
from sley.driver.memory.buffer import Rights
from sley.driver.queue.callbacks import CALLBACK_BYTES, Callbacks
from sley.driver.queue.client import AsyncWaiter, Client
from sley.driver.queue.fence import Fence, FenceLine, ImportedFence
from sley.driver.queue.packets import check_fields, encode
from sley.driver.queue.recording import Recording
from sley.driver.queue.recovery import Recovery
from sley.driver.queue.submission import Submission

STATUS_BYTES = 64
"""What a queue has in its context's page of states: the last fence, the read index, and how many callbacks ran."""
_READBACK = 32
_CALLBACKS = 40
assert FENCE_BYTES <= _READBACK
assert _CALLBACKS + CALLBACK_BYTES <= STATUS_BYTES


class Queue(Submission):
    """Packets go in by the methods named like them; each call rings the doorbell, or one does for a ``batch``.

    Several threads may submit; a packet goes in as a whole.

    Parameters
    ----------
    context: whose queue it is. waiter: lets the device run. index: number of the queue in the chip. log2_length: the
    ring holds 2 ** log2_length packets. priority, watchdog: see ``Context.queue``. status: address of its states.
    """

    def __init__(
        self,
        context: Client,
        waiter: AsyncWaiter,
        index: int,
        log2_length: int,
        priority: int,
        watchdog: int,
        status: int,
    ) -> None:
        self._status = status
        self._states = context.space.physical(status, STATUS_BYTES)
        super().__init__(context, waiter, index, log2_length, self._states + _READBACK)
        self.priority, self.watchdog = priority, watchdog
        self._fences = FenceLine()
        self._callbacks = Callbacks(self.hardware, self._states + _CALLBACKS)
        self._recovery = Recovery(self, self._fences, self._callbacks, priority, watchdog, status + _READBACK)

    # Set-up and recovery

    def enable(self) -> None:
        """Turns the queue, which is off, on with an empty ring."""
        self._recovery.enable()

    def stop(self) -> bool:
        """Turns the queue off, whatever it does; whether that succeeds within ``Driver.hang_cycles``."""
        return self.control.stop()

    def abandon(self, error: SleyError) -> int:
        """Declares every packet that has not finished lost to ``error``; how many there are.

        Queues that wait for one of the fences are let go on: they must not hang for somebody else's fault.
        """
        return self._recovery.abandon(error)

    @property
    def state(self) -> QueueState:
        return self.control.state

    def recover(self) -> None:
        """After a fault: reads the error record, gives up the packets in the ring and turns the queue on again."""
        self._recovery.recover()

    # Fences

    def fence(self, address: int | None = None, interrupt: bool = True) -> Fence:
        """A fence behind everything submitted so far; it is written to the queue's own place unless told another."""
        if address is None:
            address = self._status
        check_fields(self.hardware.config, PacketOp.FENCE, {"address": address})
        self._refuse_in_recording("a fence")
        self.space.check(address, FENCE_BYTES, Rights.WRITE, "fence")
        place = self.space.physical(address, FENCE_BYTES)
        while True:
            with self.hardware.lock:
                if self._ready():
                    return self._put_fence(address, place, interrupt)
            self._make_room(1)

    def _put_fence(self, address: int, place: int, interrupt: bool) -> Fence:
        fence = Fence(self, self.head, self._fences.last + 1, address, place)
        packet = encode(
            self.hardware.config, PacketOp.FENCE, interrupt=int(interrupt), address=address, sequence=fence.sequence
        )
        self._fences.add(fence)
        self._put(packet)
        return fence

    def wait_fence(self, fence: Fence | ImportedFence) -> int:
        """Holds the queue until a fence of any queue of this context, or an imported one, has passed or was lost."""
        if isinstance(fence, Fence) and fence.queue.context is not self.context:
            raise BadRequest("the fence is of another context; export it there and import it here")
        return self.wait(fence.address, fence.sequence)

    # Recordings

    @contextmanager
    def record(self) -> Iterator[Recording]:
        """Packets submitted inside are kept instead of executed; see ``submit``. Fences and callbacks, which happen
        once, cannot be."""
        self._refuse_in_recording("another recording")
        self._recording = recording = Recording(self.context)
        try:
            yield recording
        finally:
            self._recording = None

    def _refuse_in_recording(self, what: str) -> None:
        if self._recording is not None:
            raise BadRequest(f"{what} cannot be recorded; do it before the recording begins, or after it has ended")

    def submit(self, recording: Recording) -> int:
        """Executes all packets of a recording of this context, in order, as if they stood here."""
        self._refuse_in_recording("another recording")
        if recording.context is not self.context:
            raise BadRequest("the recording is of another context")
        if recording.closed:
            raise BadRequest("the recording was closed")
        with self.hardware.lock:
            place = recording.place()
            place.entering += 1
        try:
            position = self.indirect(place.address, len(recording))
            with self.hardware.lock:
                place.users[self] = max(position, place.users.get(self, position))
        finally:
            with self.hardware.lock:
                place.entering -= 1
        return position

    # Callbacks

    def callback(self, function: Callable[[], None]) -> Fence:
        """Calls ``function`` when everything before has finished, from a thread that waits for the device; what comes
        after waits until it has returned. Returns the fence before it. It is not called if the fence is lost."""
        self._refuse_in_recording("a callback")
        if self.length < 2:
            raise BadRequest("a callback needs two packets, and the ring holds one; open the device with a longer ring")
        while True:
            with self.hardware.lock:
                if self._ready(2):
                    number = self._callbacks.number()
                    with self.batch():
                        fence = self._put_fence(self._status, self._states, True)
                        self._put(
                            encode(self.hardware.config, PacketOp.WAIT, address=self._status + _CALLBACKS, value=number)
                        )
                    self._callbacks.add(fence, number, function)
                    return fence
            self._make_room(2)

    def take_callback(self) -> tuple[int, Callable[[], None]] | None:
        """The next callback that is due, for whoever runs it: its number, which ``ran`` wants, and the function."""
        return self._callbacks.take()

    def put_back(self) -> None:
        """The callback taken last has not begun: Ctrl-C came first."""
        with self.hardware.lock:
            self._callbacks.put_back()

    def ran(self, number: int, error: BaseException | None) -> None:
        """A callback has returned, or raised."""
        with self.hardware.lock:
            if error is not None:
                failure = CallbackFailed(f"callback {number} of queue {self.index} raised {error!r}")
                failure.__cause__ = error
                self.losses.unseen = failure
                self.context.report(failure)
            self._callbacks.release(number)
