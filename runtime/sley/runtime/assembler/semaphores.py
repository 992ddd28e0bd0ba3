"""The semaphores of a kernel: which it has, which units wait for them, and which take initial values back."""

from collections.abc import Iterator, Sequence

from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.runtime.assembler.operands import Semaphore, Semaphores
from sley.runtime.errors import KernelError


def mask(semaphores: Semaphores) -> int:
    """The field of an instruction: a bit for each semaphore."""
    if isinstance(semaphores, Semaphore):
        semaphores = (semaphores,)
    return sum(1 << number for number in {s.number for s in semaphores})


class SemaphoreUse:
    """Notes how a kernel uses its semaphores, so that each is zero at the end of a block.

    A block starts with every semaphore raised to its initial value. At the end one unit takes as much back, behind all
    its instructions: the only one that waits for the semaphore, or the one that is named in its place. The sequencer
    runs ahead of the units, and would take what they still need.

    Parameters
    ----------
    kernel: its name, for messages.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self._semaphores: list[Semaphore] = []
        self._waiters: dict[int, set[Unit]] = {}
        self._takers: dict[int, Unit] = {}

    def new(self, name: str, initial: int) -> Semaphore:
        """One that is not in use yet. Raises ``KernelError``."""
        if len(self._semaphores) == SEMAPHORES:
            raise KernelError(f"{self.kernel}: semaphore {name!r} is one too many; a core has {SEMAPHORES}")
        if not 0 <= initial <= SEMAPHORE_MAX:
            raise KernelError(f"{self.kernel}: semaphore {name!r} starts at {initial}; it counts 0 to {SEMAPHORE_MAX}")
        semaphore = Semaphore(len(self._semaphores), name, initial)
        self._semaphores.append(semaphore)
        return semaphore

    def note_wait(self, unit: Unit, waits: int) -> None:
        """An instruction of the unit waits for the semaphores of this mask."""
        for number in range(SEMAPHORES):
            if waits >> number & 1:
                self._waiters.setdefault(number, set()).add(unit)

    def name_taker(self, semaphore: Semaphore, unit: Unit) -> None:
        """This unit takes the initial value back."""
        self._takers[semaphore.number] = unit

    def raises(self) -> list[int]:
        """Masks to signal, one after the other, for all semaphores to have their initial values."""
        return _masks(self._semaphores)

    def take_backs(self) -> Iterator[tuple[Unit, int]]:
        """Units, and the masks that they wait for at the end. Raises ``KernelError`` if it is not clear who waits."""
        for semaphore in self._semaphores:
            units = self._waiters.get(semaphore.number, set())
            if len(units) > 1 and semaphore.initial:
                names = " and ".join(sorted(unit.name for unit in units))
                raise KernelError(
                    f"{self.kernel}: semaphore {semaphore.name!r} starts at {semaphore.initial}, but {names} wait; "
                    "let one unit wait, so that it can take the rest back at the end"
                )
        for unit in Unit:
            for waits in _masks([s for s in self._semaphores if self._taker(s) is unit]):
                yield unit, waits

    def _taker(self, semaphore: Semaphore) -> Unit | None:
        """Who takes its initial value back; none if several units wait for one that starts at zero."""
        waiters = self._waiters.get(semaphore.number, {Unit.SEQUENCER})
        only = next(iter(waiters)) if len(waiters) == 1 else None
        return self._takers.get(semaphore.number, only)


def _masks(semaphores: Sequence[Semaphore]) -> list[int]:
    most = max((s.initial for s in semaphores), default=0)
    return [mask(s for s in semaphores if s.initial > i) for i in range(most)]
