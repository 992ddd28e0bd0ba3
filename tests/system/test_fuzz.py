"""Fuzzing of everything that a user can write: packets, programs, garbage in rings and arguments, doorbells.

An attacker has a context with a queue and some pages; every input is a packet that it submits (for a program: its
launch) or a value that it writes into the page of its doorbell. A victim does valid work at the same time and has
pages that nobody touches. After each batch nothing outside the attacker's own pages has changed, the watch on the
memory bus has seen no access outside them, the victim's work is right, and the attacker's queue works again soon.

Replay of what a failure names:

    SLEY_FUZZ_SEED=17 SLEY_FUZZ_COUNT=10000 pytest -m slow tests/system/test_fuzz.py -k short
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.instructions import FORMATS, INSTRUCTION_BYTES, MAX_ARGS, Op
from sley.abi.layout import Layout
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, PACKETS, PacketOp
from sley.abi.pages import ENTRY_BYTES, PAGE_BITS, PAGE_BYTES, PAGE_ENTRY, TABLE_ENTRIES, table_index
from sley.abi.transport import EngineError
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import DeviceCorrupt, QueueFault
from sley.driver.memory.buffer import ALL_RIGHTS, Rights
from sley.driver.memory.space import Mapping
from sley.sim.engines.options import default_engine
from sley.sim.memory.dram import DramTiming
from sley.sim.testing.watched_transport import SMALL, WatchedTransport

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

SEED, COUNT = int(os.environ.get("SLEY_FUZZ_SEED", "1")), int(os.environ.get("SLEY_FUZZ_COUNT", "2000"))
WATCHDOG = 2_000
PATIENCE = 10_000
"""Cycles for which the attacker's work may go on before its context is reset: most of it has no end at all."""
LATENCY = DramTiming.latency
BURSTS = (1 << 16) // (SMALL.max_burst * SMALL.bus_bytes)
BOUND = SMALL.cores * BURSTS * (LATENCY + 3 * SMALL.max_burst)
"""Cycles within which a context is reset and works again: each core's LOAD finishes its run, of up to 64 KiB."""
BATCH = 48
SLOT = 256
"""Bytes for a program."""
VICTIM_TAG = 0x5EC
VICTIM_BYTES = 1024

MOVE = f"""
    mul r12, r1, #{VICTIM_BYTES // 4}
    add r8, r8, r12
    add r9, r9, r12
    set load.run_bytes, #{VICTIM_BYTES // 4}
    set load.chunks, #{VICTIM_BYTES // 4 // SMALL.row_bytes}
    set store.run_bytes, #{VICTIM_BYTES // 4}
    add r11, r0, #1
    load r8, r0, r11 signal=0
    store r9, r0, r11 wait=0 signal=1
    sync wait=1
    end
"""
PRODUCT = """
    add r11, r0, #4
    set load.run_bytes, #4
    set load.mem_stride, #4
    load r8, r0, r11 signal=0
    weights r0, r11 wait=0 signal=1
    loop #3, last
    matmul r0, r0, r11 accumulate=1 signal=2
    sync wait=2
    last: add r10, r10, #1
    sync wait=1
    vrow #5 row=bias splat=1
    vector r0, r0, r11 a_space=accumulator dtype=int32 bias=1 relu=1 out=int32 signal=3
    set store.run_bytes, #64
    add r12, r0, #1
    store r9, r0, r12 space=accumulator wait=3
    end
"""
SEEDS = [assemble(MOVE), assemble(PRODUCT)]
"""Real programs to begin with."""


def pages_of(context: Context, mappings: tuple[Mapping, ...]) -> set[int]:
    """Pages of memory behind addresses."""
    return {
        context.space.physical(address, 1) >> PAGE_BITS
        for mapping in mappings
        for address in range(mapping.address, mapping.end, PAGE_BYTES)
    }


def tables_of(driver: Driver, context: Context) -> set[int]:
    """Pages of memory with page tables of a context."""
    root = driver.registers.value(f"CONTEXT{context.number}.ROOT", "page")
    words = np.frombuffer(driver.transport.read_memory(root << PAGE_BITS, ENTRY_BYTES * TABLE_ENTRIES), "<u4")
    return {root} | {PAGE_ENTRY.unpack(int(word))["page"] for word in words if word}


class Fuzz:
    """One run. ``tally``: inputs by kind, and what became of them."""

    def __init__(self, transport: WatchedTransport, seed: int) -> None:
        self.transport = transport
        self.driver = Driver(transport, hang_cycles=2 * BOUND)
        self.dice, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.tally: Counter[str] = Counter()
        self.slowest = 0
        self.victim, self.attacker = self.driver.context(), self.driver.context()
        for context in (self.victim, self.attacker):
            context.heap.chunk = 4 * PAGE_BYTES
        self.canary = self._map(self.victim, 2 * PAGE_BYTES, ALL_RIGHTS)
        self.work = self._map(self.victim, PAGE_BYTES, ALL_RIGHTS)
        self.code = self._map(self.attacker, 4 * PAGE_BYTES, ALL_RIGHTS)
        self.data = self._map(self.attacker, 4 * PAGE_BYTES, ALL_RIGHTS)
        self.read_only = self._map(self.attacker, PAGE_BYTES, Rights.READ)
        self.victim_queue = self.victim.queue(priority=1)
        self.queue = self.attacker.queue(priority=2, log2_length=6, watchdog=WATCHDOG)
        self.victim.space.write(self.canary.address, self.numbers.bytes(self.canary.length))
        self.move = words_to_bytes(assemble(MOVE))
        self.victim.space.write(self.work.end - SLOT, self.move)
        attackers = pages_of(self.attacker, self.attacker.space.mappings)
        victims = pages_of(self.victim, self.victim.space.mappings) - pages_of(self.victim, (self.canary,))
        tables = tables_of(self.driver, self.attacker)
        every = set(range(transport.pages))
        self.alone = every - attackers - tables
        self.together = self.alone - victims - tables_of(self.driver, self.victim)
        self.outside = np.array(sorted(every - attackers - victims))
        self.victims = np.array(sorted(victims))
        self.interesting = [
            *(mapping.address for mapping in self.attacker.space.mappings),
            *(mapping.end for mapping in self.attacker.space.mappings),
            *(mapping.address for mapping in self.victim.space.mappings),
            *(page << PAGE_BITS for page in sorted(self.alone)[:: len(self.alone) // 16]),
            *(page << PAGE_BITS for page in sorted(tables)),
            self.queue.ring,
            0,
            1 << 31,
            (1 << 32) - PAGE_BYTES,
        ]

    def _map(self, context: Context, length: int, rights: Rights) -> Mapping:
        buffer = context.allocate(length)
        mapping = context.map(buffer, rights)
        buffer.release()
        return mapping

    # What the attacker writes

    def address(self) -> int:
        dice = self.dice
        kind = dice.random()
        if kind < 0.5:
            mapping = dice.choice([self.code, self.data, self.data, self.read_only])
            return mapping.address + dice.randrange(mapping.length) & dice.choice([-1, -8, -16, -64, -PAGE_BYTES])
        if kind < 0.9:
            near = dice.choice(self.interesting) + dice.choice([0, 0, 0, 8, 64, -64, -16, -1, 1, PAGE_BYTES - 4])
            return near & 0xFFFF_FFFF
        return dice.getrandbits(dice.choice([12, 32, 32, 33, 64]))

    def number(self, width: int) -> int:
        dice = self.dice
        value = dice.choice(
            [0, 1, 2, 3, 4, 7, 16, 64, 255, 4096, 65535, self.address(), dice.getrandbits(width), (1 << width) - 1]
        )
        return value & (1 << width) - 1

    def fields(self, layout: Layout) -> int:
        """All fields of a layout, with numbers that mean something here and there."""
        word = 0
        for name, placed in layout.fields.items():
            field = placed.field
            value = self.number(field.width)
            if name in ("address", "src", "dst", "program", "args", "imm") and self.dice.random() < 0.8:
                value = self.address() & (1 << field.width) - 1
            if name in ("wait", "signal") and self.dice.random() < 0.8:
                value = self.dice.choice([0, 0, 1, 2])
            if name in ("grid_x", "grid_y", "grid_z", "program_words", "arg_words") and self.dice.random() < 0.8:
                value = self.dice.randrange(1, 4)
            if name == "value" and self.dice.random() < 0.8:
                value = 0
            if name == "bytes" and self.dice.random() < 0.7:
                value = self.dice.randrange(1 << self.dice.randrange(1, 15))
            if name == "target" and self.dice.random() < 0.9:
                value = self.dice.randrange(16)
            word |= (value & (1 << field.width) - 1) << placed.lsb
        return word

    def flip(self, data: bytes) -> bytes:
        word = int.from_bytes(data, "little")
        for _ in range(self.dice.randrange(1, 4)):
            word ^= 1 << self.dice.randrange(8 * len(data))
        return word.to_bytes(len(data), "little")

    def packet(self) -> bytes:
        """Random bytes, random fields, and valid packets with some bits flipped."""
        kind = self.dice.random()
        if kind < 0.1:
            return self.dice.randbytes(PACKET_BYTES)
        op = self.dice.choice(list(PacketOp))
        if kind < 0.2:
            return bytes([op]) + self.dice.randbytes(PACKET_BYTES - 1)
        word = self.fields(PACKETS[op].layout) & ~0xFF | op
        if op is PacketOp.LAUNCH and self.dice.random() < 0.7:
            return self.launch(self.code.address + SLOT * self.dice.randrange(16), 16)
        data = word.to_bytes(PACKET_BYTES, "little")
        return self.flip(data) if kind < 0.5 else data

    def launch(self, program: int, words: int) -> bytes:
        dice = self.dice
        count = dice.choice([0, 2, 6, 7, MAX_ARGS])
        fields = {f"arg{k}": self.address() & 0xFFFF_FFFF for k in range(count if count <= INLINE_ARGS else 0)}
        if count > INLINE_ARGS:
            fields["args"] = self.data.address + 4 * dice.randrange(512)
        grid = dice.choice([(1, 1, 1), (1, 1, 1), (2, 1, 1), (3, 2, 1), (65535, 65535, 65535)])
        fields |= dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True))
        tag = dice.choice([0, 0, VICTIM_TAG, 1, 2, dice.getrandbits(32)])
        layout = PACKETS[PacketOp.LAUNCH].layout
        word = layout.pack(op=PacketOp.LAUNCH, program=program, program_words=words, arg_words=count, tag=tag, **fields)
        return word.to_bytes(PACKET_BYTES, "little")

    def instruction(self) -> int:
        kind = self.dice.random()
        if kind < 0.05:
            return self.dice.getrandbits(8 * INSTRUCTION_BYTES)
        op = self.dice.choice(list(Op))
        word = self.fields(FORMATS[op].layout) & ~0xFF | op
        return word ^ 1 << self.dice.randrange(128) if kind < 0.1 else word

    def program(self) -> list[int]:
        """Random instructions, and real programs with some of them exchanged, changed or left out."""
        if self.dice.random() < 0.3:
            return [self.instruction() for _ in range(self.dice.randrange(1, 16))]
        words = list(self.dice.choice(SEEDS))
        for _ in range(self.dice.randrange(1, 5)):
            at = self.dice.randrange(len(words))
            kind = self.dice.randrange(5)
            if kind == 0:
                words[at] = self.instruction()
            elif kind == 1:
                words[at] ^= 1 << self.dice.randrange(128)
            elif kind == 2 and len(words) > 1:
                del words[at]
            elif kind == 3:
                words.insert(at, self.dice.choice(words))
            else:  # another immediate
                words[at] = words[at] & ~(0xFFFF_FFFF << 32) | (self.address() & 0xFFFF_FFFF) << 32
        return words[:16]

    def garbage(self) -> None:
        """Fills pages with what packets, programs and arguments may lead to."""
        for mapping in (self.data, self.read_only):
            for page in range(0, mapping.length, PAGE_BYTES):
                kind = self.dice.randrange(3)
                if kind == 0:
                    data = self.numbers.bytes(PAGE_BYTES)
                elif kind == 1:
                    data = b"".join(self.packet() for _ in range(PAGE_BYTES // PACKET_BYTES))
                else:
                    words = [self.address() & 0xFFFF_FFFF for _ in range(PAGE_BYTES // 4)]
                    data = np.array(words, np.uint32).tobytes()
                self.attacker.space.write(mapping.address + page, data)

    # Batches

    def packets(self) -> None:
        self.submit([self.packet() for _ in range(BATCH)], "packets")

    def programs(self) -> None:
        launches = []
        for slot in range(BATCH):
            words = self.program()
            at = self.code.address + SLOT * slot
            self.attacker.space.write(at, words_to_bytes(words))
            launches.append(self.launch(at, len(words)))
        self.submit(launches, "programs")

    def submit(self, packets: list[bytes], kind: str) -> None:
        """All packets are executed, one way or another: those behind one that failed are submitted again."""
        while packets:
            first = self.queue.head
            try:
                with suppress(QueueFault):
                    self.queue.raise_failure()
                with self.queue.batch():
                    for packet in packets:
                        self.queue.raw(packet)
                    last = self.queue.fence().position
                ended = self.driver.wait(lambda last=last: self._over(last), timeout=PATIENCE, step=1_000)
                fault = self.queue.lost(last)
                if isinstance(fault, QueueFault):
                    self.tally[f"{kind}: {fault.code.name} {fault.unit.name}"] += 1
                    over = fault.position - first + 1
                elif ended:
                    over = len(packets)
                else:
                    self.tally[f"{kind}: no end"] += 1
                    over = self.reset(first) + 1
            except DeviceCorrupt:  # the attacker has overwritten its own read index
                self.tally[f"{kind}: own read index"] += 1
                over = self.reset(first) + 1
            over = min(max(over, 1), len(packets))
            self.tally[kind] += over
            packets = packets[over:]

    def _over(self, last: int) -> bool:
        """Whether the queue is empty or has stopped, as the chip says: words in memory may be the attacker's."""
        name = f"QUEUE{self.queue.index}"
        value = self.driver.registers.value
        return self.queue.lost(last) is not None or value(f"{name}.READ_INDEX") == value(f"{name}.WRITE_INDEX")

    def reset(self, first: int) -> int:
        """The context is reset within the bound; how many packets since ``first`` were over before."""
        over = self.queue.tail - first
        begun = self.transport.cycles
        self.attacker.reset()
        self.slowest = max(self.slowest, self.transport.cycles - begun)
        return over

    def rings(self) -> None:
        """Garbage in the whole ring, with a doorbell for some of it."""
        for _ in range(8):
            make = self.dice.choice([self.packet, lambda: self.dice.randbytes(PACKET_BYTES)])
            self.attacker.space.write(self.queue.ring, b"".join(make() for _ in range(self.queue.length)))
            self._knock(0, self.dice.randrange(1, self.queue.length + 1))
            self.tally["rings"] += 1
            self.driver.wait(lambda: False, timeout=500, step=100)
        self.reset(0)

    def doorbells(self) -> None:
        for _ in range(16):
            self.tally["doorbells"] += 1
            length = self.queue.length
            value = self.dice.choice(
                [self.dice.randrange(2 * length), self.dice.randrange(4 * length), self.dice.getrandbits(32)]
            )
            self._knock(self.dice.choice([0, 0, 0, self.dice.randrange(1, 1024)]), value)
            self.driver.wait(lambda: False, timeout=self.dice.choice([0, 10, 100]), step=10)
        self.reset(0)

    def _knock(self, word: int, value: int) -> None:
        """Writes into the page of the attacker's doorbell, whether there is a register or not."""
        page = self.driver.registers[f"DOORBELL{self.queue.index}.WRITE_INDEX"].address
        try:
            self.transport.write32(page + 4 * word, value)
        except EngineError:
            if not word:
                raise
            self.tally["doorbells: refused"] += 1

    # Checks

    def batch(self, make: Callable[[], None]) -> None:
        """One batch, alone or beside the victim's work, and what must be true afterwards."""
        beside = self.dice.random() < 0.7
        if self.dice.random() < 0.3:
            self.garbage()
        self.transport.forbid(self.together if beside else self.alone)
        memory = self.transport.memory.reshape(-1, PAGE_BYTES)
        if beside:
            before = memory[self.outside].copy()
            expected = self.numbers.bytes(VICTIM_BYTES)
            self.victim.space.write(self.work.address, expected + bytes(2 * VICTIM_BYTES))
            src, dst = self.work.address, self.work.address + VICTIM_BYTES
            program = self.work.end - SLOT
            with self.victim_queue.batch():
                self.victim_queue.launch(program, len(self.move) // 16, [src, dst], (4, 1, 1), VICTIM_TAG)
                self.victim_queue.copy(dst, dst + VICTIM_BYTES, VICTIM_BYTES)
                fence = self.victim_queue.fence()
            make()
            fence.wait()
            assert self.victim.space.read(self.work.address, 3 * VICTIM_BYTES) == 3 * expected
        else:
            both = np.concatenate([self.outside, self.victims])
            before = memory[both].copy()
            make()
            np.testing.assert_array_equal(memory[both], before)
        np.testing.assert_array_equal(memory[self.outside], before[: len(self.outside)])
        self.recovered()
        assert not self.victim.events
        assert not self.driver.statistics.device_resets

    def recovered(self) -> None:
        """The attacker can work again, soon after a reset of its context."""
        begun = self.transport.cycles
        self.attacker.reset()
        with suppress(QueueFault):  # of a queue that nobody asked since
            self.queue.raise_failure()
        place = self.data.address
        self.attacker.space.write(place, bytes(64))
        self.queue.fill(place + 16, 0x5A, 32)
        self.queue.fence(place).wait(timeout=BOUND)
        assert self.attacker.space.read(place + 16, 32) == b"\x5a" * 32
        self.slowest = max(self.slowest, self.transport.cycles - begun)
        assert self.slowest <= BOUND

    def run(self, count: int) -> None:
        kinds = (self.packets, self.programs, self.rings, self.doorbells)
        while sum(self.tally[kind.__name__] for kind in kinds) < count:
            (make,) = self.dice.choices(kinds, (5, 5, 2, 2))
            self.batch(make)


def fuzz(seed: int, count: int) -> Counter[str]:
    transport = WatchedTransport()
    try:
        run = Fuzz(transport, seed)
        run.run(count)
    except BaseException as error:
        error.add_note(
            f"replay: SLEY_FUZZ_SEED={seed} SLEY_FUZZ_COUNT={count} pytest -m slow tests/system/test_fuzz.py -k short"
        )
        raise
    finally:
        transport.close()
    run.tally["slowest recovery, cycles"] = run.slowest
    return run.tally


@pytest.mark.slow
def test_short_fuzz() -> None:
    print(fuzz(SEED, COUNT))


@pytest.mark.slow
@pytest.mark.parametrize("access", ["read", "write"])
def test_a_hole_is_found(access: str) -> None:
    """One entry of the attacker's page table, made by hand, leads to a page of the victim."""
    transport = WatchedTransport()
    run = Fuzz(transport, SEED)
    driver, attacker = run.driver, run.attacker
    page = run.victim.space.physical(run.canary.address, 1) >> PAGE_BITS
    hole = run.read_only.end + PAGE_BYTES
    root = driver.registers.value(f"CONTEXT{attacker.number}.ROOT", "page") << PAGE_BITS
    upper, lower = table_index(hole)
    word = int.from_bytes(transport.read_memory(root + ENTRY_BYTES * upper, ENTRY_BYTES), "little")
    place = (PAGE_ENTRY.unpack(word)["page"] << PAGE_BITS) + ENTRY_BYTES * lower
    entry = PAGE_ENTRY.pack(valid=1, page=page, **{access: 1})
    transport.write_memory(place, entry.to_bytes(ENTRY_BYTES, "little"))
    attacker.space.invalidate()
    run.interesting += [hole] * len(run.interesting)
    with pytest.raises(AssertionError, match=f"{access} of {page:#07x}"):
        run.run(3_000)
    transport.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_long_fuzz(seed: int) -> None:
    print(fuzz(seed, 10_000))
