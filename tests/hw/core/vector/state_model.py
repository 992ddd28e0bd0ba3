"""The vector unit of the golden model of a chip, behind the interface of the bench's own model."""

import numpy as np
from vector_model import Model

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
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

    def execute(self, command: dict) -> None:
        op = Op(command["op"])
        if op is Op.SET:
            fields = {"param": command["flags"] & 0xFF}
        else:
            fields = FORMATS[op].layout.unpack(command["flags"] << FLAGS_LSB)
        operands = (command[name] for name in "abc")
        try:
            execute(self.state, Unit.VECTOR, Command(op, command["pc"], fields, *operands))
        except FaultError as fault:
            self.faults.append((fault.code, command["pc"], fault.address & 0xFFFFFFFF))
