"""Whose access to memory it is, and what can go wrong with it."""

from amaranth.hdl import Mux, Value

from sley.abi.faults import FaultCode
from sley.abi.network import AccessError

ERROR_BITS = 2
"""Width of an ``AccessError`` in layouts."""

FAULT_CODES = {
    AccessError.BUS: FaultCode.BUS_ERROR,
    AccessError.PAGE: FaultCode.PAGE_FAULT,
    AccessError.PERMISSION: FaultCode.PERMISSION,
}


def fault_code(error: Value) -> Value:
    """The code of a fault record for an error; BUS_ERROR also for none."""
    code: Value = Value.cast(FaultCode.BUS_ERROR)
    for kind in (AccessError.PAGE, AccessError.PERMISSION):
        code = Mux(error == kind, FAULT_CODES[kind], code)
    return code
