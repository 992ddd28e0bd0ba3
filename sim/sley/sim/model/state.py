"""What unit instructions of a core work on: its local memories, row registers and parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op, Space
from sley.abi.parameters import Param, unit_params
from sley.abi.types import ElementType
from sley.sim.golden.chain import RowRegisters
from sley.sim.golden.matmul import Lanes
from sley.sim.model.memory import FaultError, ModelMemory


@dataclass
class Command:
    """A unit instruction with its operands read."""

    op: Op
    pc: int
    fields: Mapping[str, int]
    a: int = 0
    b: int = 0
    c: int = 0

    def flag(self, name: str) -> int:
        return self.fields[name]


@dataclass
class LocalState:
    """Memories and registers of one core that unit instructions work on."""

    config: ChipConfig
    memory: ModelMemory
    scratchpad: NDArray[np.uint8] = field(init=False)
    accumulator: NDArray[np.uint8] = field(init=False)
    weights: Lanes = field(init=False)
    """Lanes [N, N], one for each array row and column."""
    rows: RowRegisters = field(init=False)
    chains: dict[tuple[int, int], int] = field(init=False)
    """Words of chains, by chain and word; those that are missing are 0."""
    params: dict[Unit, dict[Param, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.scrub()
        self.clear()

    def scrub(self) -> None:
        """What a block of another context finds: zeros."""
        c = self.config
        self.scratchpad = np.zeros((c.scratchpad_rows, c.row_bytes), np.uint8)
        self.accumulator = np.zeros((c.accumulator_rows, c.accumulator_row_bytes), np.uint8)
        self.weights = np.zeros_like(self.lanes[: c.array])

    def clear(self) -> None:
        """What a block starts with: row registers at zero, no chains, parameters at their reset values."""
        self.rows, self.chains = RowRegisters(self.config.array), {}
        self.params = {unit: {p: i.reset for p, i in unit_params(unit, self.config).items()} for unit in Unit}

    @property
    def lanes(self) -> Lanes:
        """The scratchpad as operand lanes."""
        return self.scratchpad.view(np.uint16) if self.config.has(ElementType.BF16) else self.scratchpad

    def space(self, space: int) -> NDArray[np.uint8]:
        return self.scratchpad if space == Space.SCRATCHPAD else self.accumulator


def check_rows(rows: NDArray[np.int64], limit: int, unit: Unit, pc: int) -> None:
    """Raises the fault of the first of these local rows that does not exist."""
    bad = (rows < 0) | (rows >= limit)
    if bad.any():
        raise FaultError(FaultCode.LOCAL_ADDRESS, unit, pc, int(rows.flat[int(np.argmax(bad))]))
