"""Builds kernel programs: registers and semaphores by name, loops and conditions as context managers."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.runtime.assembler.control import Control
from sley.runtime.assembler.instructions import EMPTY, Instruction
from sley.runtime.assembler.operands import Semaphore, Semaphores
from sley.runtime.assembler.semaphores import mask
from sley.runtime.assembler.units import Units
from sley.runtime.device.program import Program


class KernelBuilder(Control, Units):
    """Collects instructions; ``build`` makes the program.

    Operands are registers; where an instruction takes an immediate, a plain number will do. ``0`` is always accepted.

    Parameters
    ----------
    name: name of the kernel. config: the chip to build for.

    Attributes
    ----------
    block, grid: the registers with the block's x, y, z and the grid's size; ``free`` those that are not needed.
    """

    def __init__(self, name: str, config: ChipConfig) -> None:
        super().__init__(name, config)
        self._raised_at = 0

    def semaphore(self, name: str, initial: int = 0) -> Semaphore:
        """A semaphore. It is raised to ``initial`` when a block starts, and ``end`` takes as much back; then one unit
        alone may wait for it."""
        return self._semaphores.new(name, initial)

    def raise_semaphores(self) -> None:
        """Raises all semaphores to their initial values here, not at the start: nothing before may wait for one of
        them, and the place is passed once."""
        self._raised_at = len(self._code)

    def sync(self, wait: Semaphores = (), signal: Semaphores = ()) -> None:
        """Waits for and signals semaphores in the sequencer itself."""
        self._emit(Op.SYNC, wait=mask(wait), signal=mask(signal))

    def take_back(self, semaphore: Semaphore, unit: Unit) -> None:
        """Lets ``unit`` take its initial value back at the end, instead of the unit that waits for it: one whose last
        instruction begins after nothing waits for it any more, and that is done sooner."""
        self._semaphores.name_taker(semaphore, unit)

    def end(self) -> None:
        """Takes the initial values of the semaphores back, and ends the block.

        A unit that waits for a semaphore takes it back behind all its instructions, unless ``take_back`` names another
        one: the sequencer, which has run ahead, would take what they still need.
        """
        self._straight_line_ends()
        for unit, waits in self._semaphores.take_backs():
            self._emit(EMPTY[unit], wait=waits)
        self._emit(Op.END)

    def build(self) -> Program:
        """The program. Raises ``KernelError`` if it is too long, or a label is not placed."""
        seeds = [Instruction(Op.SYNC, {"signal": signals}) for signals in self._semaphores.raises()]
        words = self._encode(seeds, self._raised_at)
        args = tuple(arg.name for arg in self._args)
        return Program(self.name, words, args, self.config.hash, frozenset(self._strided), tuple(self._bounds))
