"""Rules of heaps, and of what waits for work in flight."""

from __future__ import annotations

from client_steps import NUMBER, ClientSteps
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule


class HeapRules(ClientSteps):
    """Small pieces, and actions that wait."""

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, size=st.sampled_from([0, 1, 64, 100, 300]), log2=st.sampled_from([0, 0, 6, 12, 15]))
    def heap(self, client: int, size: int, log2: int) -> None:
        party = self.pick(self.parties, client)
        if len(party.pieces) < 7:
            self.did("heap")
            self.get_piece(party, size, 1 << log2)

    @precondition(lambda self: any(p.pieces for p in self.parties))
    @rule(client=NUMBER, number=NUMBER)
    def heap_free(self, client: int, number: int) -> None:
        party = self.pick(self.parties, client)
        pieces = [p for p in party.pieces if p not in party.gates and not p.leaving] if party else []
        if piece := self.pick(pieces, number):
            self.did("heap free")
            heap, address = party.real.heap, piece.address
            before, now = heap.statistics(), not party.host.deferred
            piece.leaving = True

            def gone() -> None:
                party.pieces.remove(piece)
                party.host.places.remove(piece)

            self.attempt(None, lambda: party.real.when_done(lambda: heap.free(address)))
            party.host.when_done(gone)
            if now and piece not in party.pieces:
                assert heap.statistics().used == before.used - max(-(-piece.length // 64) * 64, 64)
                self.attempt("BufferFreed", lambda: heap.free(address))

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER)
    def when_done(self, client: int) -> None:
        if party := self.pick(self.parties, client):
            self.did("when done")
            real, host = self.tag()
            self.attempt(None, lambda: party.real.when_done(real))
            party.host.when_done(host)

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER)
    def trim(self, client: int) -> None:
        if party := self.pick(self.parties, client):
            self.did("trim")
            self.note_pages()
            party.real.heap.trim()
