"""Rules of clients that end, in any order, with work in flight."""

from __future__ import annotations

from collections.abc import Callable

from client_steps import NUMBER, ClientSteps
from client_world import Party
from hypothesis.stateful import precondition, rule

from sley.driver.queue.fence import import_fence


class ClosingRules(ClientSteps):
    """Whoever ends gives everything back, and is told so whatever it asks."""

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER)
    def close(self, client: int) -> None:
        party = self.pick(self.parties, client)
        if party is None:
            return
        self.did("close")
        self.note_pages()
        party.real.close()
        self.chip.close(party.host)
        self.parties.remove(party)
        self.gone.append(party)
        for place in party.host.places:
            if place in party.mappings:
                place.buffer.mappings -= 1
                self.drop(place.buffer)
        for buffer in self.buffers:
            if buffer.owner == party.host.owner and buffer.held:
                buffer.held = False
                self.drop(buffer)
        for fence in party.fences:
            assert fence.real.over
            self.attempt(fence.host.loss.name if fence.host.loss else None, lambda fence=fence: fence.real.done)
        del self.gone[:-2]

    @precondition(lambda self: self.gone)
    @rule(client=NUMBER)
    def use_closed(self, client: int) -> None:
        party: Party | None = self.pick(self.gone, client)
        if party is None:
            return
        self.did("use of a closed client")
        context = party.real
        place = context.status.address
        calls: list[Callable[[], object]] = [
            lambda: context.allocate(1),
            lambda: context.map(None),  # type: ignore[arg-type]
            context.queue,
            context.reset,
            lambda: context.when_done(print),
            lambda: context.unmap(context.status),
            lambda: context.space.read(place, 1),
            lambda: context.space.write(place, b"x"),
            lambda: context.signal(place, 1),
        ]
        if party.works:
            queue = party.works[0].real
            calls += [queue.nop, queue.fence, lambda: queue.fill(place, 0, 1), lambda: queue.callback(print)]
        for call in calls:
            self.attempt("ContextClosed", call)
        for handle, _ in self.shown:
            if handle.buffer not in party.host.fences_seen and handle.buffer in self.driver.handles:
                self.attempt("ContextClosed", lambda handle=handle: import_fence(context, handle))
        context.close()
