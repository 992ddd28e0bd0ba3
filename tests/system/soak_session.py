"""One run of a soak: clients, what became of their packets, and what is checked."""

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
from soak_client import Client, Line
from soak_mirror import Entry, Place, Slot

from sley.abi.errors import SleyError
from sley.abi.faults import FaultCode
from sley.driver.device import Driver
from sley.driver.errors import ContextReset, DeviceReset, QueueFault
from sley.driver.memory.buffer import READ_WRITE
from sley.driver.queue.fence import Fence

SPANS = ([1] * 8, [2, 2, 1, 1, 1, 1, 0, 0], [1, 3, 0, 1, 1, 1, 1, 0], [4, 4, 0, 0, 0, 0, 0, 0])
"""Queues of each client."""
SLOT = 256
SLOTS = 12


class Session:
    """From opening contexts to the last check. ``count``: of packets to submit, at least."""

    def __init__(self, driver: Driver, seed: int, count: int) -> None:
        self.driver, self.dice, self.numbers = driver, random.Random(seed), np.random.default_rng(seed)
        self.count, self.submitted = count, 0
        self.tally: Counter[str] = Counter()
        self.matched: set[int] = set()
        self.in_flight: set[tuple[int, int]] = set()
        self.interrupts = Counter(driver.statistics.interrupts)
        spans = self.dice.choice(SPANS)
        self.clients = [Client(self, number, queues) for number, queues in enumerate(spans)]
        self.lines = [line for client in self.clients for line in client.lines]
        owner = self.dice.choice(self.clients)
        owner.shared, self.shared = owner.map(SLOTS * (SLOT + 64), READ_WRITE)
        handle = self.shared.buffer.export(READ_WRITE)
        for client in self.clients:
            if client is not owner:
                client.shared = client.context.import_buffer(handle)
        driver.revoke(handle)
        for slot in range(SLOTS):
            Place(self.shared, SLOTS * SLOT + 64 * slot, 8).set(0, True)
        self.shared.buffer.write(0, self.shared.data.tobytes())
        self.slots = [Slot(Place(self.shared, SLOT * k, SLOT), SLOTS * SLOT + 64 * k) for k in range(SLOTS)]

    def settle(self, line: Line, through: int | None = None) -> None:
        """The mirror follows the queue; or up to the packet at ``through``, which is known to be over."""
        queue = line.queue
        while line.journal:
            entry = line.journal[0]
            if through is not None and entry.position > through:
                break
            error = queue.lost(entry.position)
            if error is not None:
                line.journal.popleft()
                self._lose(line, entry, error)
            elif through is not None or queue.finished(entry.position):
                line.journal.popleft()
                assert entry.expected is None, f"{entry.name} of client {line.client.number} was no fault"
                self.tally[f"done {entry.name}"] += 1
                if entry.done:
                    entry.done()
            else:
                break

    def _lose(self, line: Line, entry: Entry, error: SleyError) -> None:
        in_flight = False
        if isinstance(error, QueueFault):
            assert (error.context, error.queue) == (line.client.context.number, line.queue.index)
            if error.code is not FaultCode.BAD_DOORBELL:
                assert error.position <= entry.position
                if error.position == entry.position:
                    assert entry.expected is not None, f"{entry.name} of client {line.client.number} failed: {error}"
                    entry.expected.check(error)
                    self.tally[f"fault {error.code.name} {error.unit.name}"] += 1
                    self.matched.add(id(error))
        else:
            assert isinstance(error, ContextReset | DeviceReset), error
            in_flight = (id(error), line.queue.index) not in self.in_flight
            self.in_flight.add((id(error), line.queue.index))
        line.client.expect(error)
        self.tally[f"lost {entry.name}"] += 1
        if in_flight:
            for place in entry.writes:
                place.forget()
        if entry.lost:
            entry.lost(in_flight)

    def submit(self, line: Line, call: Callable[[], object]) -> int:
        """Submits one packet; errors of earlier ones that come up are those that were heard."""
        while True:
            try:
                call()
            except SleyError as error:
                line.client.expect(error)
                continue
            self.submitted += 1
            return line.queue.head - 1

    def enter(self, line: Line, name: str, call: Callable[[], object], **more: object) -> Entry:
        position = self.submit(line, call)
        entry = Entry(position, name, **more)  # type: ignore[arg-type]
        line.journal.append(entry)
        return entry

    def drain(self, client: Client) -> None:
        """Everything that the client submitted is over, and the mirror knows how it ended."""
        while any(line.journal or line.queue.pending for line in client.lines):
            for line in client.lines:
                made: list[Fence] = []
                line.interrupts += 1
                self.submit(line, lambda line=line, made=made: made.append(line.queue.fence()))
                try:
                    made[0].wait()
                except SleyError as error:
                    client.expect(error)
                queue = line.queue
                self.driver.wait(lambda queue=queue: not queue.pending, timeout=50_000, step=100)
                self.settle(line)

    def verify(self, line: Line) -> None:
        client = line.client
        self.drain(client)
        for area in client.areas:
            area.check(f"client {client.number}")
        client.area.renew(self.numbers, 0, client.area.data.size)

    def finish(self) -> None:
        """The last checks; then all contexts go, and nothing of them is left."""
        for client in self.clients:
            self.drain(client)
        for line in self.lines:
            self.settle(line)
            assert not line.journal
            cause = f"fence of queue {line.queue.index}"
            assert self.driver.statistics.interrupts[cause] - self.interrupts[cause] <= line.interrupts
        self.shared.check("shared memory")
        for client in self.clients:
            for area in client.areas:
                area.check(f"client {client.number}")
            reported = [error for error in client.errors if isinstance(error, QueueFault)]
            assert all(id(error) in self.matched for error in reported), "a fault of nobody"
            assert len({id(error) for error in reported}) == len(reported), "a fault reported twice"
            assert not client.context.deferred
        order = list(self.clients)
        self.dice.shuffle(order)
        for client in order:
            client.context.close()
