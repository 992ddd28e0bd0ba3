"""Soak: eight contexts at work beside each other, with faults and resets at random times.

Everything follows from a seed. The test keeps a mirror of what memory must hold, and a journal for each queue of what
every packet does to it; when the driver says how far a queue came, the mirror follows. A packet that a reset may have
caught half-way makes what it writes unknown, until the test writes it anew; nothing else may differ from the mirror.

Replay: a failure names the command that runs its seed again, such as
``SLEY_SOAK_SEED=17 SLEY_SOAK_COUNT=10000 pytest "tests/system/test_soak.py::test_short_soak[ordered]"``.
"""

import os
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import FENCE_BYTES, PacketOp, encode_packet
from sley.abi.pages import ENTRY_BYTES, LARGE_PAGE_BYTES, PAGE_BITS, PAGE_BYTES, PAGE_ENTRY, TABLE_ENTRIES
from sley.driver.buffer import READ_WRITE, BufferObject, Rights
from sley.driver.device import Driver
from sley.driver.errors import ContextReset, DeviceReset, QueueFault, SleyError
from sley.driver.fence import Fence
from sley.driver.queue import Queue
from sley.driver.space import Mapping
from sley.sim.engines.options import default_engine
from sley.sim.engines.posted import PostedWrites
from sley.sim.golden.vector import vector_op
from sley.sim.testing.watched_transport import SMALL, WatchedTransport

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

TEST = ["tests/system/test_soak.py::test_short_soak[ordered]", "tests/system/test_soak.py::test_short_soak[posted]"]
SEED, COUNT = int(os.environ.get("SLEY_SOAK_SEED", "1")), int(os.environ.get("SLEY_SOAK_COUNT", "800"))
GUARD_BYTES = 32 * PAGE_BYTES
"""Memory that belongs to nobody: the watch sees every access to it."""
CLIENTS = 8
SPANS = ([1] * 8, [2, 2, 1, 1, 1, 1, 0, 0], [1, 3, 0, 1, 1, 1, 1, 0], [4, 4, 0, 0, 0, 0, 0, 0])
"""Queues of each client."""
REGION = 1024
REGIONS = 12
SLOT = 256
SLOTS = 12
FENCES = 64
WATCHDOG = 3_000
UNTOUCHED = bytes(8) + b"no time."
NOWHERE = 0x3000_0000
"""An address that nobody has anything at."""
ABYSS = (TABLE_ENTRIES - 1) * LARGE_PAGE_BYTES
"""What a page table made by hand maps behind the end of memory."""

NOT_PROVOKED = {
    FaultCode.NONE,
    FaultCode.ABORTED,  # the driver's own doing
}

RUN = REGION // 4

COPY_PROGRAM = f"""
    mul r12, r1, #{RUN}
    add r8, r8, r12
    add r9, r9, r12
    set load.run_bytes, #{RUN}
    set load.chunks, #{RUN // SMALL.row_bytes}
    set store.run_bytes, #{RUN}
    add r11, r0, #1
    load r8, r0, r11 signal=0
    store r9, r0, r11 wait=0 signal=1
    sync wait=1
    end
"""
"""Block x copies its quarter of a region."""

LATE_COPY_PROGRAM = "add r8, r0, r14\nadd r9, r0, r15\n" + COPY_PROGRAM
"""The same with addresses that are in memory, not in the packet."""

PRODUCT_ROWS = REGION // SMALL.accumulator_row_bytes
PRODUCT_PROGRAM = f"""
    add r11, r0, #1
    set load.run_bytes, #{PRODUCT_ROWS * SMALL.row_bytes}
    set load.chunks, #{PRODUCT_ROWS}
    load r8, r0, r11 signal=0
    set load.run_bytes, #{SMALL.array * SMALL.row_bytes}
    set load.chunks, #{SMALL.array}
    add r12, r0, #{PRODUCT_ROWS}
    load r9, r12, r11 signal=1
    add r13, r0, #{SMALL.array}
    weights r12, r13 wait=1
    add r13, r0, #{PRODUCT_ROWS}
    matmul r0, r0, r13 wait=0 signal=2
    set store.run_bytes, #{REGION}
    store r10, r0, r11 wait=2 signal=3
    sync wait=3
    end
"""
"""int8 products of the first rows of a region by the first rows of another one, as int32."""

VECTOR_PROGRAM = f"""
    add r12, r0, #1
    set load.run_bytes, #{REGION}
    set load.chunks, #{PRODUCT_ROWS}
    load r8, r0, r12 space=accumulator signal=0
    vrow r10 row=bias splat=1 signal=1
    sync wait=1
    add r13, r0, #{PRODUCT_ROWS}
    vector r0, r0, r13 a_space=accumulator dtype=int32 bias=1 relu=1 out=word wait=0 signal=1
    set store.run_bytes, #{REGION}
    store r9, r0, r12 space=accumulator wait=1 signal=2
    sync wait=2
    end
"""
"""max(x + argument, 0) of the int32 words of a region."""

PROGRAMS = {
    "copy": COPY_PROGRAM,
    "late copy": LATE_COPY_PROGRAM,
    "product": PRODUCT_PROGRAM.replace("store r10, r0, r11", "store r10, r0, r11 space=accumulator"),
    "vector": VECTOR_PROGRAM,
    "late fault": "bne r1, r8, last\nadd r9, r0, #1\nset load.run_bytes, #4\nload r10, r0, r9\nlast: end",
    "load": "add r9, r0, #1\nset load.run_bytes, #4\nload r8, r0, r9 signal=0\nsync wait=0\nend",
    "store": "add r9, r0, #1\nset store.run_bytes, #4\nstore r8, r0, r9 signal=0\nsync wait=0\nend",
    "local": f"add r9, r0, #2\nadd r8, r0, #{SMALL.scratchpad_rows - 1}\nmatmul r8, r0, r9 signal=0\nsync wait=0\nend",
    "leftover": "sync signal=3\nsync signal=7\nend",
    "hang": "add r9, r0, #1\nsync wait=5\nend",
    "spin": "again: beq r0, r0, again\nend",
    "long run": "add r9, r0, #1\nset load.run_bytes, #8\nload r8, r0, r9 signal=0\nsync wait=0\nend",
    "five loops": "".join(f"loop #2, {10 - k}\n" for k in range(5)) + "add r9, r0, #1\n" * 6 + "end",
    "out of a loop": "loop #2, 3\nadd r9, r0, #1\nbeq r0, r0, 5\nadd r9, r0, #2\nadd r9, r0, #3\nend",
    "no end": "add r9, r0, #1\nadd r9, r0, #2",
    "illegal": "add r9, r0, #1\nadd r9, r0, #1\nend",
}


@dataclass(frozen=True)
class Expected:
    """What the error record of a deliberate fault must say; ``None`` for what cannot be known."""

    code: FaultCode
    unit: Unit = Unit.COMMAND
    pc: int = 0
    block: int = 0
    address: int | None = None

    def check(self, fault: QueueFault) -> None:
        seen = (fault.code, fault.unit, fault.pc, fault.block)
        assert seen == (self.code, self.unit, self.pc, self.block), f"{fault} instead of {self}"
        assert self.address in (None, fault.address), f"{fault} instead of {self}"
        assert fault.unit is not Unit.COMMAND or fault.core == 0


class Area:
    """Memory and what it must hold; ``known`` where that is sure. ``writers``: entries that will write a region."""

    def __init__(self, buffer: BufferObject, rng: np.random.Generator) -> None:
        self.buffer = buffer
        self.data: NDArray[np.uint8] = rng.integers(0, 256, buffer.length, np.uint8)
        self.known = np.ones(buffer.length, bool)
        buffer.write(0, self.data.tobytes())

    def check(self, what: str) -> None:
        held = np.frombuffer(self.buffer.read(0, self.buffer.length), np.uint8)
        bad = np.flatnonzero((held != self.data) & self.known)
        assert not bad.size, f"{what}: {bad.size} bytes differ, from {bad[0]:#x} on: {held[bad[:8]]}"

    def renew(self, rng: np.random.Generator, start: int, length: int) -> None:
        """Writes what is unknown anew; nobody else may be writing it."""
        piece = slice(start, start + length)
        lost = ~self.known[piece]
        if lost.any():
            fresh = np.frombuffer(self.buffer.read(start, length), np.uint8).copy()
            fresh[lost] = rng.integers(0, 256, int(lost.sum()), np.uint8)
            self.buffer.write(start, fresh.tobytes())
            self.data[piece], self.known[piece] = fresh, True


@dataclass(frozen=True)
class Place:
    """A range of an area."""

    area: Area
    start: int
    length: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.length)

    def set(self, data: NDArray[np.uint8] | int, known: NDArray[np.bool_] | bool) -> None:
        self.area.data[self.slice] = data
        self.area.known[self.slice] = known

    def forget(self) -> None:
        self.area.known[self.slice] = False

    @property
    def data(self) -> NDArray[np.uint8]:
        return self.area.data[self.slice]

    @property
    def known(self) -> NDArray[np.bool_]:
        return self.area.known[self.slice]


@dataclass
class Entry:
    """What one packet does. ``done``: to the mirror. ``lost``: when it did not happen, or perhaps in
    part. ``writes``: what it may have written then."""

    position: int
    name: str
    done: Callable[[], None] | None = None
    lost: Callable[[bool], None] | None = None
    writes: tuple[Place, ...] = ()
    expected: Expected | None = None


@dataclass(eq=False)
class Slot:
    """A place in shared memory with a semaphore; one client fills it for another one."""

    place: Place
    semaphore: int
    value: int = 0
    users: int = 0


@dataclass(eq=False)
class Line:
    """A queue and its journal."""

    client: "Client"
    queue: Queue
    journal: deque[Entry] = field(default_factory=deque)
    interrupts: int = 0
    sequence: int = 0
    doorbell: int | None = None
    regions: range = range(0)

    def region(self, index: int) -> tuple[int, Place]:
        return self.client.data.address + REGION * index, Place(self.client.area, REGION * index, REGION)


class Client:
    """A context and everything that the test knows of it."""

    def __init__(self, soak: "Soak", number: int, queues: int) -> None:
        self.soak, self.number = soak, number
        self.context = soak.driver.context()
        self.context.heap.chunk = 4 * PAGE_BYTES
        self.errors: list[SleyError] = []
        self.context.on_error = self._heard
        self.lines = [
            Line(self, self.context.queue(soak.dice.randrange(4), soak.dice.choice([2, 3, 5]), WATCHDOG))
            for _ in range(queues)
        ]
        for number, line in enumerate(self.lines):
            share = REGIONS // queues
            line.regions = range(share * number, share * (number + 1))
        self.data, self.area = self._map(REGION * REGIONS, READ_WRITE)
        self.constants, self.constant_area = self._map(PAGE_BYTES, Rights.READ)
        self.code, code = self._map(2 * PAGE_BYTES, Rights.EXECUTE)
        self.fences, self.fence_area = self._map(FENCES * FENCE_BYTES, READ_WRITE)
        self.free_fences = deque(range(FENCES))
        for place in range(FENCES):
            self.clear_fence(place)
        self.programs: dict[str, tuple[int, int, int]] = {}
        at = 0
        for name, text in PROGRAMS.items():
            program = words_to_bytes(assemble(text))
            if name == "illegal":
                program = program[:INSTRUCTION_BYTES] + bytes([0x77] * 16) + program[2 * INSTRUCTION_BYTES :]
            Place(code, at, len(program)).set(np.frombuffer(program, np.uint8), True)
            tag = soak.driver.program_tag() if soak.dice.random() < 0.5 else 0
            self.programs[name] = self.code.address + at, len(program) // INSTRUCTION_BYTES, tag
            at += len(program)
        code.buffer.write(0, code.data.tobytes())
        self.areas = (self.area, self.constant_area, code, self.fence_area)
        self.shared: Mapping | None = None
        self.never = self.context.heap.allocate(8)
        self.context.space.write(self.never, bytes(8))
        self.reach_behind_memory()

    def _map(self, length: int, rights: Rights) -> tuple[Mapping, Area]:
        buffer = self.context.allocate(length)
        mapping = self.context.map(buffer, rights)
        area = Area(buffer, self.soak.numbers)
        buffer.release()
        return mapping, area

    def clear_fence(self, index: int) -> None:
        offset = FENCE_BYTES * index
        Place(self.fence_area, offset, FENCE_BYTES).set(np.frombuffer(UNTOUCHED, np.uint8), True)
        self.fence_area.buffer.write(offset, UNTOUCHED)

    def reach_behind_memory(self) -> None:
        """A page table made by hand: a large page behind the end of memory."""
        driver = self.context.driver
        root = driver.registers.value(f"CONTEXT{self.context.number}.ROOT", "page") << PAGE_BITS
        entry = PAGE_ENTRY.pack(valid=1, read=1, write=1, execute=1, page=0x80000)
        index = ABYSS // LARGE_PAGE_BYTES
        driver.transport.write_memory(root + ENTRY_BYTES * index, entry.to_bytes(ENTRY_BYTES, "little"))
        self.context.space.invalidate()

    def expect(self, error: SleyError) -> None:
        """Whatever a call raises was reported before, to this context."""
        if not any(error is heard for heard in self.errors):
            raise error

    def _heard(self, error: SleyError) -> None:
        self.errors.append(error)
        if isinstance(error, QueueFault) and error.code is FaultCode.BAD_DOORBELL:
            (line,) = (line for line in self.lines if line.queue.index == error.queue)
            assert error.address == line.doorbell
            assert error.context == self.context.number
            self.soak.matched.add(id(error))
            self.soak.tally["fault BAD_DOORBELL"] += 1
        for line in self.lines:
            self.soak.settle(line)


class Soak:
    """One run, from opening contexts to the last check. ``count``: of packets that it submits, at least."""

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
        owner.shared, self.shared = owner._map(SLOTS * (SLOT + 64), READ_WRITE)
        handle = self.shared.buffer.export(READ_WRITE)
        for client in self.clients:
            if client is not owner:
                client.shared = client.context.import_buffer(handle)
        driver.revoke(handle)
        for slot in range(SLOTS):
            Place(self.shared, SLOTS * SLOT + 64 * slot, 8).set(0, True)
        self.shared.buffer.write(0, self.shared.data.tobytes())
        self.slots = [Slot(Place(self.shared, SLOT * k, SLOT), SLOTS * SLOT + 64 * k) for k in range(SLOTS)]

    # What became of packets

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

    # Valid work

    def copy(self, line: Line) -> None:
        client, dice = line.client, self.dice
        a, b = dice.sample(line.regions, 2)
        src, source = line.region(a)
        dst, target = line.region(b)
        offset, to, length = dice.randrange(64), dice.randrange(64), dice.choice([1, 5, 64, 300, REGION - 64])
        source = Place(source.area, source.start + offset, length)
        target = Place(target.area, target.start + to, length)
        if dice.random() < 0.2:
            src, source = client.constants.address, Place(client.constant_area, offset, length)
        self.enter(
            line,
            "copy",
            lambda: line.queue.copy(src + offset, dst + to, length),
            done=lambda: target.set(source.data.copy(), source.known.copy()),
            writes=(target,),
        )

    def fill(self, line: Line) -> None:
        address, place = line.region(self.dice.choice(line.regions))
        offset, length = self.dice.randrange(256), self.dice.randrange(1, REGION - 256)
        value = self.dice.randrange(256)
        target = Place(place.area, place.start + offset, length)
        self.enter(
            line,
            "fill",
            lambda: line.queue.fill(address + offset, value, length),
            done=lambda: target.set(value, True),
            writes=(target,),
        )

    def launch(self, line: Line) -> None:
        client, name = line.client, self.dice.choice(["copy", "late copy", "product", "vector"])
        (src, source), (other, weights), (dst, target) = (
            line.region(index) for index in self.dice.sample(line.regions, 3)
        )
        grid = (4, 1, 1) if "copy" in name else (1, 1, 1)
        bias = self.dice.getrandbits(32)
        args = {
            "copy": [src, dst],
            "late copy": [0] * 6 + [src, dst],
            "product": [src, other, dst],
            "vector": [src, dst, bias],
        }[name]

        def done() -> None:
            if "copy" in name:
                target.set(source.data.copy(), source.known.copy())
            elif name == "vector":
                words = source.data.view(np.int32).reshape(-1, SMALL.array)
                row = np.full(SMALL.array, bias, np.uint32)
                known = np.repeat(source.known.reshape(-1, 4).all(axis=1), 4)
                target.set(vector_op(words, bias=row, relu=True).reshape(-1).view(np.uint8), known)
            else:
                a = source.data[: PRODUCT_ROWS * SMALL.array].view(np.int8).reshape(-1, SMALL.array)
                w = weights.data[: SMALL.array**2].view(np.int8).reshape(SMALL.array, SMALL.array)
                known = source.known[: a.size].all() and weights.known[: w.size].all()
                target.set((a.astype(np.int32) @ w.astype(np.int32)).reshape(-1).view(np.uint8), bool(known))

        program, words, tag = client.programs[name]
        self.enter(
            line,
            f"launch {name}",
            lambda: line.queue.launch(program, words, args, grid, tag),
            done=done,
            writes=(target,),
        )

    def nop(self, line: Line) -> None:
        self.enter(line, "nop", line.queue.nop)

    def fence(self, line: Line) -> None:
        """A fence at a place of its own, which is written once or, if the fence is lost, let go by the driver."""
        client, made = line.client, []
        if not client.free_fences:
            return self.nop(line)
        index = client.free_fences.popleft()
        offset = FENCE_BYTES * index
        place = Place(client.fence_area, offset, FENCE_BYTES)
        place.forget()
        interrupt = self.dice.random() < 0.5
        begun, resets = self.driver.time, self.driver.statistics.device_resets

        def written() -> tuple[int, int]:
            data = client.fence_area.buffer.read(offset, FENCE_BYTES)
            client.clear_fence(index)
            client.free_fences.append(index)
            return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")

        def done() -> None:
            fence: Fence = made[0]
            assert fence.done
            assert fence.over
            sequence, time = written()
            assert sequence == fence.sequence > line.sequence
            assert resets < self.driver.statistics.device_resets or begun < time <= self.driver.time
            line.sequence = sequence

        def lost(in_flight: bool) -> None:
            fence: Fence = made[0]
            assert fence.over
            with pytest.raises(SleyError) as caught:
                fence.done  # noqa: B018
            assert caught.value is line.queue.lost(fence.position)
            sequence, time = written()
            assert sequence == fence.sequence, "who waits for it is let go"
            assert in_flight or time == int.from_bytes(UNTOUCHED[8:], "little")

        line.interrupts += interrupt
        address = client.fences.address + offset
        self.enter(
            line,
            "fence",
            lambda: made.append(line.queue.fence(address, interrupt)),
            done=done,
            lost=lost,
        )

    def hand_over(self, line: Line) -> None:
        """One client fills a slot and signals; another one, or the same in another queue, waits and takes it."""
        free = [slot for slot in self.slots if not slot.users]
        if not free:
            return self.nop(line)
        slot, taker = self.dice.choice(free), self.dice.choice(self.lines)
        if not slot.place.known.all():
            slot.place.area.renew(self.numbers, slot.place.start, slot.place.length)
        slot.users, slot.value = 4, slot.value + self.dice.randrange(1, 1 << 40)
        value, there, here = slot.value, line.client.shared, taker.client.shared
        assert there is not None
        assert here is not None
        word = Place(self.shared, slot.semaphore, 8)

        def leave(in_flight: bool = False) -> None:
            slot.users -= 1

        src, source = line.region(self.dice.choice(line.regions))

        def filled() -> None:
            slot.place.set(source.data[:SLOT].copy(), source.known[:SLOT].copy())
            leave()

        self.enter(
            line,
            "give",
            lambda: line.queue.copy(src, there.address + slot.place.start, SLOT),
            done=filled,
            lost=leave,
            writes=(slot.place,),
        )

        def signalled() -> None:
            word.set(np.frombuffer(value.to_bytes(8, "little"), np.uint8), True)
            leave()

        def let_go(in_flight: bool) -> None:
            self.shared.buffer.write(slot.semaphore, value.to_bytes(8, "little"))
            signalled()

        signal = self.enter(
            line,
            "signal",
            lambda: line.queue.signal(there.address + slot.semaphore, value),
            done=signalled,
            lost=let_go,
        )
        dst, target = taker.region(self.dice.choice(taker.regions))
        target = Place(target.area, target.start, SLOT)

        waited = []

        def arrived() -> None:
            self.settle(line, signal.position)
            waited.append(True)
            leave()

        def taken() -> None:
            if waited:
                target.set(slot.place.data.copy(), slot.place.known.copy())
            else:  # the wait was lost to a fault just before the copy was submitted
                target.forget()
            leave()

        self.enter(
            taker,
            "wait",
            lambda: taker.queue.wait(here.address + slot.semaphore, value),
            done=arrived,
            lost=leave,
        )
        self.enter(
            taker,
            "take",
            lambda: taker.queue.copy(here.address + slot.place.start, dst, SLOT),
            done=taken,
            lost=leave,
            writes=(target,),
        )

    # Faults

    def fault(self, line: Line) -> None:
        kind = self.dice.choice([self._bad_packet, self._bad_memory, self._bad_memory, self._bad_program])
        name, call, expected = kind(line)
        self.enter(line, name, call, expected=expected)

    def _bad_packet(self, line: Line) -> tuple[str, Callable[[], object], Expected]:
        dice = self.dice
        mine = line.client.data.address
        op, word, bit = dice.randrange(9, 256), dice.getrandbits(24), dice.randrange(32, 512)
        packet, expected = dice.choice(
            [
                (
                    (op | word << 8).to_bytes(4, "little") + bytes(60),
                    Expected(FaultCode.BAD_PACKET, address=op | word << 8),
                ),
                ((1 | 1 << bit).to_bytes(64, "little"), Expected(FaultCode.BAD_FIELD, address=bit // 32)),
                (
                    encode_packet(PacketOp.FENCE, address=mine + 8, sequence=1),
                    Expected(FaultCode.BAD_FIELD, address=2),
                ),
                (
                    encode_packet(PacketOp.FILL, dst=(1 << 32) - 8, bytes=9),
                    Expected(FaultCode.BAD_ADDRESS, address=(1 << 32) - 8),
                ),
                (
                    encode_packet(PacketOp.LAUNCH, program=mine, program_words=1, grid_x=0, grid_y=1, grid_z=1),
                    Expected(FaultCode.BAD_FIELD, address=2),
                ),
            ]
        )
        return "bad packet", lambda: line.queue.raw(packet), expected

    def _bad_memory(self, line: Line) -> tuple[str, Callable[[], object], Expected]:
        """Memory that is not there, does not allow it, or ends: reached by packets and by programs."""
        client, dice = line.client, self.dice
        offset, mine = 16 * dice.randrange(200), client.data.address
        code, places = dice.choice(
            [
                (FaultCode.PAGE_FAULT, {"read": NOWHERE, "write": NOWHERE, "execute": NOWHERE}),
                (
                    FaultCode.PERMISSION,
                    {"read": client.code.address, "write": client.constants.address, "execute": mine},
                ),
                (FaultCode.BUS_ERROR, {"read": ABYSS, "write": ABYSS, "execute": ABYSS}),
            ]
        )
        read, write, execute = (places[kind] + offset for kind in ("read", "write", "execute"))

        def launch(program: int, words: int, *args: int) -> bytes:
            values = {f"arg{k}": value for k, value in enumerate(args)}
            grid = {"grid_x": 1, "grid_y": 1, "grid_z": 1}
            return encode_packet(
                PacketOp.LAUNCH, program=program, program_words=words, arg_words=len(args), **grid, **values
            )

        load, store = client.programs["load"], client.programs["store"]
        packet, expected = dice.choice(
            [
                (encode_packet(PacketOp.FILL, dst=write, bytes=40), Expected(code, address=write)),
                (encode_packet(PacketOp.COPY, src=read, dst=mine, bytes=40), Expected(code, address=read)),
                (encode_packet(PacketOp.COPY, src=mine, dst=write, bytes=40), Expected(code, address=write)),
                (encode_packet(PacketOp.WAIT, address=read, value=0), Expected(code, address=read)),
                (encode_packet(PacketOp.SIGNAL, address=write, value=0), Expected(code, address=write)),
                (encode_packet(PacketOp.FENCE, address=write, sequence=1), Expected(code, address=write)),
                (launch(execute, 3), Expected(code, Unit.SEQUENCER, address=execute)),
                (launch(load[0], load[1], read), Expected(code, Unit.LOAD, 2, address=read)),
                (launch(store[0], store[1], write), Expected(code, Unit.STORE, 2, address=write)),
            ]
        )
        return f"bad memory {code.name}", lambda: line.queue.raw(packet), expected

    def _bad_program(self, line: Line) -> tuple[str, Callable[[], object], Expected]:
        block = self.dice.randrange(6)
        word = int.from_bytes(bytes([0x77] * 4), "little")
        name, args, grid, expected = self.dice.choice(
            [
                ("illegal", [], 1, Expected(FaultCode.ILLEGAL_INSTRUCTION, Unit.SEQUENCER, 1, 0, word)),
                ("long run", [0], 1, Expected(FaultCode.BAD_PARAMETER, Unit.LOAD, 2, 0, 8)),
                ("five loops", [], 1, Expected(FaultCode.LOOP_OVERFLOW, Unit.SEQUENCER, 4, 0, 6)),
                ("out of a loop", [], 1, Expected(FaultCode.BRANCH_OUT_OF_LOOP, Unit.SEQUENCER, 2, 0, 5)),
                ("no end", [], 1, Expected(FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER, 2, 0, 2)),
                ("leftover", [], 1, Expected(FaultCode.SEMAPHORE_LEFTOVER, Unit.SEQUENCER, 2, 0, 1 << 3 | 1 << 7)),
                ("local", [], 1, Expected(FaultCode.LOCAL_ADDRESS, Unit.MATRIX, 2, 0, SMALL.scratchpad_rows)),
                ("hang", [], 1, Expected(FaultCode.WATCHDOG, Unit.SEQUENCER, 1, 0, None)),
                ("spin", [], 1, Expected(FaultCode.WATCHDOG, Unit.SEQUENCER, 0, 0, None)),
                (
                    "late fault",
                    [block, 0, NOWHERE],
                    6,
                    Expected(FaultCode.PAGE_FAULT, Unit.LOAD, 3, block, NOWHERE),
                ),
            ]
        )
        program, words, tag = line.client.programs[name]
        return f"program {name}", lambda: line.queue.launch(program, words, args, (grid, 1, 1), tag), expected

    def bad_doorbell(self, line: Line) -> None:
        """Takes effect between two packets, whichever those are."""
        queue = line.queue
        self.driver.service(poll=True)
        if queue.state is QueueState.ERROR:
            return
        index = 2 * queue.length + self.dice.randrange((1 << 16) - 2 * queue.length)
        heard = len(line.client.errors)
        line.doorbell = index
        self.driver.registers.write(f"DOORBELL{queue.index}.WRITE_INDEX", index=index)

        def stopped() -> bool:
            new = line.client.errors[heard:]
            return any(isinstance(error, QueueFault) and error.queue == queue.index for error in new)

        assert self.driver.wait(stopped, timeout=50_000, step=500)
        line.doorbell = None

    # Resets

    def reset(self, line: Line) -> None:
        client = line.client
        if self.dice.random() < 0.5:  # with work that never ends by itself
            self.enter(line, "wait for ever", lambda: line.queue.wait(client.never, 1))
            if line.queue.pending < line.queue.length:
                self.fill(line)
        self.driver.transport.advance(self.dice.randrange(1, 3_000))
        resets = self.driver.statistics.device_resets
        client.context.reset()
        assert self.driver.statistics.device_resets == resets
        for other in client.lines:
            self.settle(other)
            assert not other.journal
            assert not other.queue.pending

    def reset_device(self, line: Line) -> None:
        self.driver.reset()
        for other in self.lines:
            self.settle(other)
            assert not other.journal

    def remap(self, line: Line) -> None:
        """Maps memory, uses it, unmaps it: what was there is a fault from then on."""
        context, queue = line.client.context, line.queue
        self.drain(line.client)
        buffer = context.allocate(PAGE_BYTES * self.dice.randrange(1, 4))
        mark = line.client.number + 1
        assert set(buffer.read(0, buffer.length)) <= {0, mark}, "memory is zeroed before another client gets it"
        mapping = context.map(buffer)
        buffer.release()
        address = mapping.end - 64
        self.enter(line, "fill a new page", lambda: queue.fill(address, mark, 64))
        self.drain(line.client)
        assert context.space.read(address, 64) == bytes([mark]) * 64
        context.unmap(mapping)
        assert not context.deferred
        packet = encode_packet(PacketOp.FILL, dst=address, bytes=64)
        gone = Expected(FaultCode.PAGE_FAULT, address=address)
        self.enter(line, "fill an old page", lambda: queue.raw(packet), expected=gone)

    # Checks

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

    def run(self) -> None:
        # fmt: off
        actions = [
            (self.launch, 12), (self.copy, 8), (self.fill, 6), (self.fence, 8), (self.hand_over, 8), (self.nop, 2),
            (self.fault, 4), (self.verify, 2), (self.reset, 1), (self.bad_doorbell, 1), (self.remap, 1),
            (self.reset_device, 0.1),
        ]
        # fmt: on
        in_batch = [self.launch, self.copy, self.fill, self.nop, self.fence]
        choices, weights = zip(*actions, strict=True)
        while self.submitted < self.count:
            line = self.dice.choice(self.lines)
            if self.dice.random() < 0.15:
                with line.queue.batch():
                    for _ in range(self.dice.randrange(2, 6)):
                        self.dice.choice(in_batch)(line)
            else:
                (action,) = self.dice.choices(choices, weights)
                action(line)
            if self.dice.random() < 0.3:
                self.driver.transport.advance(self.dice.randrange(1, 800))
            if self.dice.random() < 0.3:
                self.driver.service()

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


def soak(seed: int, count: int, run: int = 600, posted: bool = False) -> Counter[str]:
    """At least ``count`` submissions on one device, in runs with contexts of their own; on a bus that posts writes, or
    one that does not."""
    tally: Counter[str] = Counter()
    transport = WatchedTransport(SMALL)
    try:
        bus = PostedWrites(transport, seed) if posted else transport
        driver = Driver(bus, hang_cycles=60_000)
        (guard,) = driver.pages.allocate(GUARD_BYTES, 1 << 40)
        first = guard.address // PAGE_BYTES
        transport.forbid(range(first, first + GUARD_BYTES // PAGE_BYTES), beyond=False)
        before = driver.pages.statistics().used, driver.free_queues
        dice = random.Random(seed)
        while tally["submitted"] < count:
            part = Soak(driver, dice.getrandbits(32), min(run, count - tally["submitted"]))
            part.run()
            part.finish()
            tally += part.tally
            tally["submitted"] += part.submitted
            assert (driver.pages.statistics().used, driver.free_queues) == before
            assert not driver.contexts
            assert not driver.buffers
            assert not driver.handles
    except BaseException as error:
        error.add_note(f"replay: SLEY_SOAK_SEED={seed} SLEY_SOAK_COUNT={count} pytest {TEST[posted]}")
        raise
    finally:
        transport.close()
    return tally


@pytest.mark.parametrize("posted", [False, True], ids=["ordered", "posted"])
def test_short_soak(posted: bool) -> None:
    tally = soak(SEED, COUNT, posted=posted)
    assert sum(count for name, count in tally.items() if name.startswith("fault")) > COUNT // 30


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_bit_is_found(seed: int) -> None:
    """Wherever it is: in data, in a semaphore, in the place of a fence."""
    transport = WatchedTransport(SMALL)
    part = Soak(Driver(transport, hang_cycles=60_000), seed, 50)
    part.run()
    client = part.dice.choice(part.clients)
    areas = (client.area, client.constant_area, client.fence_area, part.shared)
    for other in part.clients:
        part.drain(other)
    area = areas[seed]
    (place, *_) = np.flatnonzero(area.known)[part.dice.randrange(100) :]
    area.buffer.write(int(place), bytes([area.data[place] ^ 1]))
    with pytest.raises(AssertionError, match="1 bytes differ"):
        part.finish()
    transport.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED + 1, SEED + 4))
def test_long_soak(seed: int) -> None:
    tally = soak(seed, 10_000)
    faults = {name.split()[1] for name in tally if name.startswith("fault")}
    assert faults == {code.name for code in FaultCode if code not in NOT_PROVOKED}
