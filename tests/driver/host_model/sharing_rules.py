"""Rules of what clients share: handles, with rights; and memory that several of them have mapped."""

from __future__ import annotations

from client_steps import NUMBER, RIGHTS, ClientSteps
from client_world import Handle
from host_memory import Place
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sley.driver.memory.buffer import Rights


class SharingRules(ClientSteps):
    """Exports and imports."""

    @precondition(lambda self: self.buffers)
    @rule(number=NUMBER, rights=RIGHTS)
    def export(self, number: int, rights: Rights) -> None:
        buffer = self.pick(self.buffers, number)
        if buffer is None or len(self.handles) > 12:
            return
        self.did("export")
        handle = self.attempt(None, lambda: buffer.real.export(rights))
        assert handle not in {other.number for other in self.handles}
        buffer.handles += 1
        buffer.exported = True
        self.handles.append(Handle(handle, buffer, rights))

    @precondition(lambda self: self.parties and self.handles)
    @rule(client=NUMBER, number=NUMBER, rights=st.one_of(st.none(), RIGHTS), data=st.binary(max_size=8))
    def import_buffer(self, client: int, number: int, rights: Rights | None, data: bytes) -> None:
        """With all rights that the handle grants, or fewer; never with more."""
        party, live = self.pick(self.parties, client), [handle for handle in self.handles if not handle.revoked]
        handle = self.pick(self.handles if number % 2 else live or self.handles, number // 2)
        if len(party.mappings) > 8:
            return
        refused = "BadRequest" if handle.revoked or (rights is not None and rights & ~handle.rights) else None
        self.did("import" if refused is None else "import refused")
        mapping = self.attempt(refused, lambda: party.real.import_buffer(handle.number, rights))
        if mapping is None:
            return
        handle.buffer.mappings += 1
        place = Place(handle.buffer, mapping.address, handle.rights if rights is None else rights)
        assert mapping.rights == place.rights
        party.host.places.append(place)
        party.mappings[place] = mapping
        touch = place.touch(0, len(data))
        if not touch.meets(t for c in self.chip.clients for queue in c.queues for t in queue.touched()):
            party.real.space.write(place.address, data)
            touch.write(data)

    @precondition(lambda self: self.buffers)
    @rule(number=NUMBER)
    def give_up(self, number: int) -> None:
        """Nobody wants a buffer any more: its pages are the next that somebody gets."""
        self.did("give up")
        self.give_up_buffer(self.pick(self.buffers, number))

    @precondition(lambda self: self.handles)
    @rule(number=NUMBER)
    def revoke(self, number: int) -> None:
        if handle := self.pick(self.handles, number):
            self.did("revoke")
            if handle.revoked:
                self.attempt("BadRequest", lambda: self.driver.revoke(handle.number))
            else:
                self.revoke_handle(handle)
