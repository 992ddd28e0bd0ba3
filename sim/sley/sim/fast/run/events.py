"""What happens when a ``Print``, ``Assert``, ``Assume`` or ``Cover`` of a compiled design fires.

The same as in Amaranth's simulator. With a clock: at its edge, with the values before it; an assertion that fails keeps
the edge from happening. Without a clock: when everything has settled; a print or cover fires when its condition
begins to hold or its arguments change, an assertion as long as it does not hold. (Amaranth's simulator also repeats
such a print when other logic of its module runs, and it looks at assertions while values are still settling.)
"""

import sys
from collections.abc import Callable

from sley.sim.fast.emit.manifest import EventPlace, Manifest
from sley.sim.fast.run.format import render

_KINDS = {"assert": "Assertion", "assume": "Assumption"}


class Events:
    """Prints, counts and keeps the failure of one instance, whose state ``view`` shows.

    It knows nothing of the instance's object: a reference from the library to it would be a cycle that keeps it alive.
    """

    def __init__(self, manifest: Manifest, view: memoryview, cycle: Callable[[], int]) -> None:
        self._manifest = manifest
        self._view = view
        self._cycle = cycle
        self.on_print: Callable[[str], object] = _write
        self.failure: BaseException | None = None

    def fire(self, user: int, number: int) -> int:
        """Called by the library; other than 0 stops it."""
        try:
            self._fire(self._manifest.events[number])
        except BaseException as error:
            self.failure = error
        return int(self.failure is not None)

    def _fire(self, event: EventPlace) -> None:
        text = self._text(event)
        if event.kind == "print":
            self.on_print(text)
        elif event.kind == "cover":
            self.on_print(f"Coverage hit at {event.source}: {text}\n")
        else:
            message = f"{_KINDS[event.kind]} violated" + (f": {text}" if text else "")
            raise AssertionError(f"{message} [{event.path}, {event.source}, cycle {self._cycle()}]")

    def _text(self, event: EventPlace) -> str:
        arguments = 0
        for piece in event.arguments:
            arguments |= int.from_bytes(self._view[piece.offset : piece.offset + 8], "little") << piece.low
        return render(event.format, arguments)

    def take_failure(self) -> BaseException | None:
        failure, self.failure = self.failure, None
        return failure


def _write(text: str) -> None:
    sys.stdout.write(text)
