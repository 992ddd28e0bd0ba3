"""What the golden model counts: work, not time."""

from sley.abi.counters import COUNTERS, GROUP_COUNTERS, CounterGroup, MatrixCycle, Traffic
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.sim.model.moves import addresses_of
from sley.sim.model.state import Command, LocalState


class WorkCounts:
    """The counters of a core that say how much was done (``Counter.exact``); all others stay zero.

    They are those of the gateware for every program that ends without a fault. ``frozen`` stops them.
    """

    def __init__(self) -> None:
        self.values = {group: [0] * GROUP_COUNTERS for group in COUNTERS}
        self.frozen = False

    def add(self, state: LocalState, unit: Unit, command: Command) -> None:
        """Counts an instruction that was executed."""
        if self.frozen:
            return
        if command.op is Op.MATMUL:
            bf16 = command.fields.get("dtype") == ElementType.BF16
            kind = MatrixCycle.ROW_BF16 if bf16 else MatrixCycle.ROW_INT8
            self.values[CounterGroup.MATRIX][kind] += command.c
        elif command.op is Op.LOAD:
            self._move(state, unit, command, Traffic.LOAD_BEATS, Traffic.LOAD_BYTES)
        elif command.op is Op.STORE:
            self._move(state, unit, command, Traffic.STORE_BEATS, Traffic.STORE_BYTES)

    def add_scrub(self) -> None:
        """Counts the row that takes weights of zeros into the array for another context."""
        if not self.frozen:
            self.values[CounterGroup.MATRIX][MatrixCycle.ROW_INT8] += 1

    def _move(self, state: LocalState, unit: Unit, command: Command, beats: Traffic, moved: Traffic) -> None:
        """Runs to or from memory: their bytes, and the bus beats in which they are."""
        p, bus = state.params[unit], state.config.bus_bytes
        size, count = p[Param.RUN_BYTES], command.c
        if not size or not count:
            return
        first = addresses_of(state, unit, command)
        if p[Param.MEM_STRIDE] == size and not command.flag("by_list"):
            size, first = size * count, first[:, :1]  # joined
        traffic = self.values[CounterGroup.TRAFFIC]
        traffic[moved] += first.size * size
        traffic[beats] += int(((first + size - 1) // bus - first // bus + 1).sum())
