"""Rules of memory: clients that come, buffers, mappings, rights."""

from __future__ import annotations

from client_steps import NUMBER, RIGHTS, ClientSteps
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sley.abi.pages import PAGE_BYTES
from sley.driver.memory.buffer import Rights

SIZE = st.sampled_from([1, 64, PAGE_BYTES, PAGE_BYTES + 1, 3 * PAGE_BYTES])


class MemoryRules(ClientSteps):
    """Who has what, and who had it before."""

    @rule()
    def open(self) -> None:
        self.did("open")
        if party := self.open_client():
            self.take_queue(party)

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, length=st.sampled_from([0, 1, 2, 3]))
    def queue(self, client: int, length: int) -> None:
        self.did("queue")
        self.take_queue(self.pick(self.parties, client), length)

    @precondition(lambda self: self.parties and len(self.buffers) < 12)
    @rule(client=NUMBER, size=SIZE, rights=RIGHTS)
    def allocate(self, client: int, size: int, rights: Rights) -> None:
        self.did("allocate")
        self.get_memory(self.pick(self.parties, client), size, rights)

    @precondition(lambda self: self.buffers)
    @rule(client=NUMBER, number=NUMBER, rights=RIGHTS)
    def map_again(self, client: int, number: int, rights: Rights) -> None:
        party = self.pick(self.parties, client)
        mine = [buffer for buffer in self.buffers if party and buffer.owner == party.host.owner]
        if buffer := self.pick(mine, number):
            self.did("map again")
            self.map(party, buffer, rights)

    @precondition(lambda self: self.buffers)
    @rule(number=NUMBER)
    def release(self, number: int) -> None:
        if buffer := self.pick(self.buffers, number):
            self.did("release")
            self.attempt(None if buffer.held else "BufferFreed", buffer.real.release)
            buffer.held = False
            self.drop(buffer)

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, number=NUMBER)
    def map_freed(self, client: int, number: int) -> None:
        """Also a mapping that fails leaves nothing behind."""
        if party := self.pick(self.parties, client):
            self.did("map freed")
            used = party.real.space._ranges.used
            buffer = party.real.allocate(1 + number * PAGE_BYTES)
            buffer.release()
            self.attempt("BufferFreed", lambda: party.real.map(buffer))
            self.attempt("BadRequest", lambda: party.real.map(party.real.status.buffer, Rights.NONE))
            assert party.real.space._ranges.used == used

    @precondition(lambda self: any(p.mappings for p in self.parties))
    @rule(client=NUMBER, number=NUMBER)
    def unmap(self, client: int, number: int) -> None:
        party = self.pick(self.parties, client)
        place = self.pick([place for place in party.mappings if place in party.host.places] if party else [], number)
        if place is None:
            return
        self.did("unmap in flight" if any(queue.pending for queue in party.host.queues) else "unmap")
        if place.leaving:
            self.attempt("BufferFreed", lambda: party.real.unmap(party.mappings[place]))
        else:
            self.unmap_place(party, place, party.mappings[place])

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, number=NUMBER, offset=st.integers(0, 9000), data=st.binary(max_size=40))
    def write(self, client: int, number: int, offset: int, data: bytes) -> None:
        """The host writes whatever the rights."""
        party = self.pick(self.parties, client)
        place = self.pick(party.host.places if party else [], number)
        if place is None or not place.length or place in party.gates:
            return
        offset %= place.length
        refused = None if offset + len(data) <= place.length or place in party.pieces else "BadRequest"
        data = data if refused else data[: place.length - offset]
        touch = place.touch(offset, len(data))
        if touch.meets(t for client in self.chip.clients for queue in client.queues for t in queue.touched()):
            return
        self.did("write")
        self.attempt(refused, lambda: party.real.space.write(place.address + offset, data))
        if refused is None:
            touch.write(data)
