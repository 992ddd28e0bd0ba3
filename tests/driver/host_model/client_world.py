"""The driver and the model of its promises side by side: one driver, several clients, and how they are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from host_chip import HostChip, HostClient
from host_memory import FormerPages, HostBuffer, Place
from host_queue import HostFence, HostQueue, Loss, Packet
from hypothesis.stateful import RuleBasedStateMachine

from sley.abi.config import preset
from sley.abi.errors import SleyError
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import QueueFault
from sley.driver.memory.buffer import Rights
from sley.driver.memory.space import Mapping
from sley.driver.queue.fence import Fence, FenceHandle
from sley.driver.queue.queue import Queue
from sley.driver.queue.recording import Recording
from sley.hw.testing.coverage import Coverage
from sley.sim.engines.model import ModelTransport
from sley.sim.engines.posted import PostedWrites

MEMORY = 1 << 20
HANG_CYCLES = 20_000
REST_CYCLES = 4_096
NOWHERE = 0x7000_0000
"""An address where nobody ever has anything."""
CHIP = preset("nano").replace(name="crowd", contexts=3, queues=4)


def name_of(error: SleyError) -> str:
    return f"QueueFault {error.code.name}" if isinstance(error, QueueFault) else type(error).__name__


def event_of(error: SleyError) -> tuple[str, int | None]:
    return name_of(error), error.position if isinstance(error, QueueFault) else None


@dataclass(eq=False)
class Work:
    """A queue, and what is promised of it."""

    real: Queue
    host: HostQueue


@dataclass(eq=False)
class Taped:
    """A recording, and what it holds. ``writes``: for each packet that is a launch, what it writes. ``placed``: it was
    submitted, so it is in memory."""

    real: Recording
    parts: list[Packet]
    writes: dict[int, int] = field(default_factory=dict)
    placed: bool = False
    closed: bool = False


@dataclass(eq=False)
class Fenced:
    """A fence of a client, and what is promised of it."""

    party: Party
    real: Fence
    host: HostFence


@dataclass(eq=False)
class Party:
    """A client, and what is promised of it."""

    real: Context
    host: HostClient
    program: tuple[int, int, int] = (0, 0, 0)
    works: list[Work] = field(default_factory=list)
    mappings: dict[Place, Mapping] = field(default_factory=dict)
    pieces: list[Place] = field(default_factory=list)
    heard: list[SleyError] = field(default_factory=list)
    fences: list[Fenced] = field(default_factory=list)
    tapes: list[Taped] = field(default_factory=list)
    gates: list[Place] = field(default_factory=list)


@dataclass(eq=False)
class Handle:
    """A handle of a buffer, and the rights that it grants."""

    number: int
    buffer: HostBuffer
    rights: Rights
    revoked: bool = False


class ClientWorld(RuleBasedStateMachine):
    """Rules of the classes below this one act on the driver and on the model; after each, both are at rest and show the
    same.

    Attributes: ``coverage``: how often each rule did something, and each error was promised. ``posted``: seed of a bus
    that posts writes.
    """

    coverage: ClassVar[Coverage]
    posted: ClassVar[int | None] = None

    def __init__(self) -> None:
        super().__init__()
        transport: Any = ModelTransport(CHIP, MEMORY)
        if self.posted is not None:
            transport = PostedWrites(transport, self.posted)
        self.driver = Driver(transport, log2_ring=2, hang_cycles=HANG_CYCLES)
        self.chip, self.former = HostChip(), FormerPages()
        self.parties: list[Party] = []
        self.gone: list[Party] = []
        self.buffers: list[HostBuffer] = []
        self.handles: list[Handle] = []
        self.shown: list[tuple[FenceHandle, HostFence]] = []
        self.fired: list[int] = []
        self.promised: list[int] = []
        self.owners = self.tags = 0

    # What rules are made of

    def did(self, what: str) -> None:
        """Counts a rule that came to something."""
        self.coverage.hit("rule", what)

    def attempt(self, refused: str | None, call: Callable[[], Any]) -> Any:
        """What a call returns; it raises what it should, and nothing else."""
        try:
            result = call()
        except SleyError as error:
            if name_of(error) != refused:
                raise AssertionError(f"{name_of(error)} instead of {refused}") from error
            self.coverage.hit("error", refused)
            return None
        assert refused is None, f"{refused} was promised"
        return result

    def admit(self, work: Work, count: int = 1) -> str | None:
        """Why a queue takes no more packets, if it does not; what it raises once is then raised."""
        queue = work.host
        for _ in range(2):
            if queue.unseen is not None:
                name, queue.unseen = queue.unseen.name, None
                return name
            if len(queue.pending) + count <= queue.length:
                return None
            queue.ring()
            self.chip.rest()
        return "QueueFull"

    def submit(self, work: Work, call: Callable[[], Any], *packets: Packet, refused: str | None = None) -> Any:
        """A call that puts packets into a queue, if it is not refused."""
        refused = refused or (self.admit(work, len(packets)) if packets else None)
        result = self.attempt(refused, call)
        if refused is None:
            work.host.put(*packets)
        return result

    def tag(self, *, raises: bool = False) -> tuple[Callable[[], None], Callable[[], None]]:
        """A function for the driver and one for the model, which must be called in the same order."""
        self.tags += 1
        number = self.tags

        def real() -> None:
            self.fired.append(number)
            if raises:
                raise ValueError("on purpose")

        return real, partial(self.promised.append, number)

    @staticmethod
    def seen(party: Party, loss: Loss) -> None:
        """Somebody has got the error: the next call on the queue does not raise it."""
        for work in party.works:
            if work.host.unseen is loss:
                work.host.unseen = None

    @staticmethod
    def pick(things: Sequence[Any], number: int) -> Any:
        """One of the things, or ``None`` if there is none."""
        return things[number % len(things)] if things else None

    def in_flight(self) -> bool:
        return any(queue.pending for client in self.chip.clients for queue in client.queues)

    # Comparing

    def rest(self) -> None:
        """Lets the device run until nothing can move, and the model too."""
        self.driver.transport.barrier()
        self.driver.wait(lambda: False, timeout=REST_CYCLES, step=REST_CYCLES // 2)
        self.chip.rest()

    def compare(self) -> None:
        """Both are the same in everything that is promised."""
        statistics = self.driver.statistics
        assert statistics.errors == self.chip.errors
        assert (statistics.context_resets, statistics.device_resets) == (
            self.chip.context_resets,
            self.chip.device_resets,
        )
        assert sorted(self.fired) == sorted(self.promised)
        self.fired.clear()
        self.promised.clear()
        for party in self.parties:
            self._compare_client(party)
        for buffer in self.buffers:
            assert buffer.real is not None
            assert buffer.real.references == buffer.references
            assert (buffer.real.number in self.driver.buffers) == bool(buffer.references)
            if buffer.references:
                assert buffer.real.read(0, len(buffer.data)) == buffer.data
        self.buffers = [buffer for buffer in self.buffers if buffer.references]
        live = {handle.number for handle in self.handles if not handle.revoked}
        live |= {party.host.fences_shown for party in self.parties if party.host.fences_shown is not None}
        assert set(self.driver.handles) == live

    def _compare_client(self, party: Party) -> None:
        context, host = party.real, party.host
        events = [event_of(error) for error in context.events]
        assert sorted(events, key=repr) == sorted(host.events, key=repr)
        assert party.heard == list(context.events)
        assert context.deferred == len(host.deferred)
        for work in party.works:
            assert (work.real.head, work.real.pending) == (work.host.head, len(work.host.pending)), work.real
        mapped = {mapping.address: mapping.rights for mapping in context.space.mappings}
        for place, mapping in party.mappings.items():
            assert (mapping.address in mapped) == (place in host.places)
            assert place not in host.places or mapped[mapping.address] == place.rights
        party.mappings = {place: mapping for place, mapping in party.mappings.items() if place in host.places}
        for piece in party.pieces:
            assert context.space.read(piece.address, piece.length) == piece.buffer.data
        for fence in party.fences:
            assert fence.real.over == fence.host.over
            assert fence.real.queue.lost(fence.real.position) is None or fence.host.loss is not None
        del party.fences[:-6]

    def teardown(self) -> None:
        """Closes everything: all memory comes back."""
        self.driver.transport.barrier()
        for party in self.parties:
            party.real.close()
        for number in list(self.driver.handles):
            self.driver.revoke(number)
        assert self.driver.pages.statistics().used == 0
        assert not self.driver.buffers
        self.driver.close()
