"""What each unit instruction computes, on numpy arrays: the definition that the gateware is held against."""

from collections.abc import Callable

from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import FORMATS, Op
from sley.abi.parameters import PARAMS, Param
from sley.abi.vector.chains import CHAIN_PARAM, CHAIN_WORDS, WORDS, WORDS_KEPT
from sley.sim.model.matrix import matmul, weights
from sley.sim.model.memory import FaultError
from sley.sim.model.moves import load, store
from sley.sim.model.state import Command, LocalState
from sley.sim.model.vector import vector, vfold, vrow


def execute(state: LocalState, unit: Unit, command: Command) -> None:
    """Runs one instruction of a unit. Raises ``FaultError``; what was written before a fault is not defined."""
    if command.op is Op.SET:
        _set(state, unit, command)
        return
    if "rc" in FORMATS[command.op].fields and command.c > 0xFFFF:
        raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, command.c)
    _EXECUTE[command.op](state, unit, command)


def _set(state: LocalState, unit: Unit, command: Command) -> None:
    number = command.flag("param")
    bad = FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, number)
    if unit is Unit.VECTOR and number >= CHAIN_PARAM:
        chain, word = divmod(number - CHAIN_PARAM, WORDS_KEPT)
        exists = 1 <= chain <= state.config.vector_chains and word < CHAIN_WORDS
        if not exists or command.a & ~WORDS[word].mask:
            raise bad
        state.chains[chain, word] = command.a
        return
    info = PARAMS.get(Param(number)) if number in Param._value2member_map_ else None
    if info is None or info.param not in state.params[unit]:
        raise bad
    value = command.a
    if info.signed:
        value = value - (1 << 32) if value >> 31 else value
        if not -(1 << (info.width - 1)) <= value < 1 << (info.width - 1):
            raise bad
    elif value >= 1 << info.width:
        raise bad
    state.params[unit][info.param] = value


_EXECUTE: dict[Op, Callable[[LocalState, Unit, Command], None]] = {
    Op.LOAD: load,
    Op.STORE: store,
    Op.WEIGHTS: weights,
    Op.MATMUL: matmul,
    Op.VECTOR: vector,
    Op.VROW: vrow,
    Op.VFOLD: vfold,
}
