"""Source files that decide what a build makes: what they said when it got its name, they must still say at its end."""

from collections.abc import Callable, Iterable
from pathlib import Path

from sley.abi.transport import EngineError
from sley.sim.build.cache import digest


class Sources:
    """The files that ``find`` returns, as they are now.

    ``digest`` is their contents in that order, for the name of an entry of the cache. ``check``, after the build and
    before its result becomes that entry, raises ``EngineError`` if they read otherwise by then: the build may have
    used some of the new text under the name of the old one, and everyone who asks for that name would get it.
    """

    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        self._find = find
        self._contents = self._read()
        self.digest = digest(*self._contents.values())

    def _read(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._find()}

    def check(self) -> None:
        now = self._read()
        changed = {path for path in now.keys() | self._contents.keys() if now.get(path) != self._contents.get(path)}
        if changed:
            names = ", ".join(sorted(path.name for path in changed))
            raise EngineError(f"{names} changed since this process read it: nothing was built; start the program again")
