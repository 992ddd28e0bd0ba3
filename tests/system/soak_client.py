"""A client of a soak: a context with its queues, memory, programs and journals."""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from soak_mirror import Area, Entry, Place
from soak_programs import PROGRAMS, REGION

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.errors import SleyError
from sley.abi.faults import FaultCode
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import FENCE_BYTES
from sley.abi.pages import ENTRY_BYTES, LARGE_PAGE_BYTES, PAGE_BITS, PAGE_BYTES, PAGE_ENTRY, TABLE_ENTRIES
from sley.driver.errors import QueueFault
from sley.driver.memory.buffer import READ_WRITE, Rights
from sley.driver.memory.space import Mapping
from sley.driver.queue.queue import Queue

if TYPE_CHECKING:
    from soak_session import Session

REGIONS = 12
FENCES = 64
WATCHDOG = 3_000
UNTOUCHED = bytes(8) + b"no time."
ABYSS = (TABLE_ENTRIES - 1) * LARGE_PAGE_BYTES
"""What a page table made by hand maps behind the end of memory."""


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

    def __init__(self, session: "Session", number: int, queues: int) -> None:
        self.session, self.number = session, number
        self.context = session.driver.context()
        self.context.heap.chunk = 4 * PAGE_BYTES
        self.errors: list[SleyError] = []
        self.context.on_error = self._heard
        self.lines = [
            Line(self, self.context.queue(session.dice.randrange(4), session.dice.choice([2, 3, 5]), WATCHDOG))
            for _ in range(queues)
        ]
        for number, line in enumerate(self.lines):
            share = REGIONS // queues
            line.regions = range(share * number, share * (number + 1))
        self.data, self.area = self.map(REGION * REGIONS, READ_WRITE)
        self.constants, self.constant_area = self.map(PAGE_BYTES, Rights.READ)
        self.code, code = self.map(2 * PAGE_BYTES, Rights.EXECUTE)
        self.fences, self.fence_area = self.map(FENCES * FENCE_BYTES, READ_WRITE)
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
            tag = session.driver.program_tag() if session.dice.random() < 0.5 else 0
            self.programs[name] = self.code.address + at, len(program) // INSTRUCTION_BYTES, tag
            at += len(program)
        code.buffer.write(0, code.data.tobytes())
        self.areas = (self.area, self.constant_area, code, self.fence_area)
        self.shared: Mapping | None = None
        self.never = self.context.heap.allocate(8)
        self.context.space.write(self.never, bytes(8))
        self.reach_behind_memory()

    def map(self, length: int, rights: Rights) -> tuple[Mapping, Area]:
        buffer = self.context.allocate(length)
        mapping = self.context.map(buffer, rights)
        area = Area(buffer, self.session.numbers)
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
            self.session.matched.add(id(error))
            self.session.tally["fault BAD_DOORBELL"] += 1
        for line in self.lines:
            self.session.settle(line)
