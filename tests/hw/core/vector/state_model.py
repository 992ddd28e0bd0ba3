"""The vector unit of the golden model of a chip, behind the interface of the bench's own model."""

from copy import deepcopy

import numpy as np
from vector_model import Model

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op
from sley.sim.model.memory import FaultError
from sley.sim.model.state import Command, LocalState
from sley.sim.model.units import execute


class StateModel:
    """Executes commands of a chip with chains on a ``LocalState``."""

    def __init__(self, config: ChipConfig, scratchpad: np.ndarray, accumulators: np.ndarray) -> None:
        self.state = LocalState(config, None)
        self.state.scratchpad[:] = scratchpad.view(np.uint8)
        self.state.accumulator[:] = accumulators.view(np.uint8)
        self.scratchpad = self.state.scratchpad.view(np.int8)
        self.accumulators = self.state.accumulator.view(np.uint32)
        self.faults: list[tuple[int, int, int]] = []

    @classmethod
    def random(cls, config: ChipConfig, rng: np.random.Generator) -> "StateModel":
        contents = Model.random(config, rng)
        return cls(config, contents.scratchpad, contents.accumulators)

    def clear(self) -> None:
        """What a block begins with."""
        self.state.clear()

    def execute(self, command: dict) -> None:
        op = Op(command["op"])
        if op is Op.SET:
            fields = {"param": command["flags"] & 0xFF}
        else:
            fields = FORMATS[op].layout.unpack(command["flags"] << FLAGS_LSB)
        try:
            self._execute(op, fields, command)
        except FaultError as fault:
            self.faults.append((fault.code, command["pc"], fault.address & 0xFFFFFFFF))
            if fault.code is FaultCode.LOCAL_ADDRESS and op is Op.VECTOR:
                self._rows_before(fields, command)

    def _execute(self, op: Op, fields: dict[str, int], command: dict) -> None:
        operands = (command[name] for name in "abc")
        execute(self.state, Unit.VECTOR, Command(op, command["pc"], fields, *operands))

    def _rows_before(self, fields: dict[str, int], command: dict) -> None:
        """Of a command with a row that does not exist: the unit is done with those before it."""
        rows = 0
        while True:
            try:
                self._check(fields, command | {"c": rows + 1})
            except FaultError:
                break
            rows += 1
        self._execute(Op.VECTOR, fields, command | {"c": rows})

    def _check(self, fields: dict[str, int], command: dict) -> None:
        """Raises what so many rows do, and changes nothing."""
        state = deepcopy(self.state)
        operands = (command[name] for name in "abc")
        execute(state, Unit.VECTOR, Command(Op.VECTOR, command["pc"], fields, *operands))
