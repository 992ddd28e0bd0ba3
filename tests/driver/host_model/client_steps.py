"""What rules are made of: clients that open, take queues and get memory, on the driver and in the model."""

from __future__ import annotations

from functools import partial

from client_world import CHIP, ClientWorld, Handle, Party, Work
from host_chip import HostClient
from host_memory import HostBuffer, Place
from host_queue import HostQueue
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from writer_program import WRITER

from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.pages import PAGE_BYTES
from sley.driver.memory.buffer import ALL_RIGHTS, READ_WRITE, Rights
from sley.driver.memory.space import Mapping

NUMBER = st.integers(0, 7)
"""Picks one of what there is."""
RIGHTS = st.sampled_from([READ_WRITE, READ_WRITE, READ_WRITE, Rights.READ, Rights.WRITE, Rights.EXECUTE, ALL_RIGHTS])
MOST_AHEAD = 3
"""How far a gate is from being open, at most."""
FULL_CYCLES = 2_000
"""How long a call waits for room in a ring."""


class ClientSteps(ClientWorld):
    """Two clients with memory; one has two queues."""

    @initialize()
    def begin(self) -> None:
        for _ in range(2):
            party = self.open_client()
            assert party is not None
            self.take_queue(party)
            self.get_memory(party, 2 * PAGE_BYTES, READ_WRITE)
            self.get_piece(party, 100, 1)
        self.take_queue(self.parties[0])

    @invariant()
    def same(self) -> None:
        self.did("step")
        self.rest()
        self.compare()

    def teardown(self) -> None:
        """What was in flight is let go on; then all buffers are given up, and everybody gets some of their pages."""
        for _ in range(MOST_AHEAD):
            for party in self.parties:
                for gate in party.gates:
                    self.attempt(None, partial(self.open_once, party, gate))
            self.same()
        for buffer in tuple(self.buffers):
            self.give_up_buffer(buffer)
        self.same()
        for party in [*self.parties, *self.parties] * 3:
            self.get_memory(party, PAGE_BYTES, READ_WRITE)
        self.same()
        super().teardown()

    @staticmethod
    def open_once(party: Party, gate: Place) -> None:
        """The host opens a gate by one."""
        value = int.from_bytes(gate.buffer.data, "little") + 1
        party.real.signal(gate.address, value)
        gate.touch(0, gate.length).write(value.to_bytes(gate.length, "little"))

    def open_client(self) -> Party | None:
        taken = len(self.parties)
        real = self.attempt("NoRoom" if taken == CHIP.contexts else None, self.driver.context)
        if real is None:
            return None
        self.owners += 1
        party = Party(real, HostClient(self.owners))
        real.on_error = party.heard.append
        self.chip.clients.append(party.host)
        self.parties.append(party)
        code = real.map(buffer := real.allocate(len(WRITER)), Rights.EXECUTE)
        buffer.release()
        real.space.write(code.address, WRITER)
        party.program = (code.address, len(WRITER) // INSTRUCTION_BYTES, self.driver.program_tag())
        return party

    def take_queue(self, party: Party, log2_length: int | None = None) -> None:
        taken = sum(len(other.works) for other in self.parties)
        refused = "NoRoom" if taken == CHIP.queues else None
        real = self.attempt(refused, lambda: party.real.queue(log2_length=log2_length))
        if real is not None:
            host = HostQueue(real.length)
            real.full_timeout = FULL_CYCLES
            party.host.queues.append(host)
            party.works.append(Work(real, host))

    # Memory

    def get_memory(self, party: Party, size: int, rights: Rights) -> None:
        """Fresh pages show nobody what another left there."""
        self.note_pages()
        real = party.real.allocate(size)
        data = real.read(0, real.length)
        self.former.check(real.extents, party.host.owner, data)
        buffer = HostBuffer(party.host.owner, bytearray(data), real)
        self.buffers.append(buffer)
        self.map(party, buffer, rights)

    def note_pages(self) -> None:
        """Heaps may give pages back at any time, so their owners are noted before somebody gets some."""
        known = {id(buffer.real) for buffer in self.buffers}
        for party in self.parties:
            for mapping in party.real.space.mappings:
                if id(mapping.buffer) not in known:
                    self.former.note(mapping.buffer.extents, party.host.owner, False, None)

    def map(self, party: Party, buffer: HostBuffer, rights: Rights) -> None:
        assert buffer.real is not None
        mapping = self.attempt(None, lambda: party.real.map(buffer.real, rights))
        place = Place(buffer, mapping.address, rights)
        party.host.places.append(place)
        party.mappings[place] = mapping
        buffer.mappings += 1

    def drop(self, buffer: HostBuffer) -> None:
        """Somebody refers to a buffer no more; its pages come back with the last one."""
        if not buffer.references:
            assert buffer.real is not None
            data = None if buffer.exported else bytes(buffer.data)
            self.former.note(buffer.real.extents, buffer.owner, buffer.exported, data)

    def unmap_place(self, party: Party, place: Place, mapping: Mapping) -> None:
        self.attempt(None, lambda: party.real.unmap(mapping))
        place.leaving = True

        def gone() -> None:
            party.host.places.remove(place)
            place.buffer.mappings -= 1
            self.drop(place.buffer)

        party.host.when_done(gone)

    def revoke_handle(self, handle: Handle) -> None:
        self.attempt(None, lambda: self.driver.revoke(handle.number))
        handle.revoked = True
        handle.buffer.handles -= 1
        self.drop(handle.buffer)

    def give_up_buffer(self, buffer: HostBuffer) -> None:
        """Nobody wants a buffer any more: its pages are the next that somebody gets."""
        for party in self.parties:
            for place, mapping in party.mappings.items():
                if place.buffer is buffer and not place.leaving:
                    self.unmap_place(party, place, mapping)
        for handle in self.handles:
            if handle.buffer is buffer and not handle.revoked:
                self.revoke_handle(handle)
        if buffer.held:
            assert buffer.real is not None
            self.attempt(None, buffer.real.release)
            buffer.held = False
            self.drop(buffer)

    def get_piece(self, party: Party, size: int, alignment: int) -> Place:
        """A piece of a client's heap."""
        heap = party.real.heap
        before = heap.statistics()
        address = heap.allocate(size, alignment)
        after = heap.statistics()
        assert address % max(64, alignment) == 0
        assert after.used == before.used + max(-(-size // 64) * 64, 64)
        assert after.hits + after.misses == before.hits + before.misses + 1
        assert all(address + size <= p.address or p.address + p.length <= address for p in party.pieces)
        data = bytearray(party.real.space.read(address, size))
        piece = Place(HostBuffer(party.host.owner, data), address, READ_WRITE)
        party.pieces.append(piece)
        party.host.places.append(piece)
        return piece
