"""Whose access to memory it is, and what can go wrong with it."""

from amaranth.hdl import Mux, Value
from amaranth.lib import enum

from sley.abi.faults import FaultCode


class AccessError(enum.IntEnum):
    """What an answer says about an access."""

    NONE = 0
    BUS = 1  # memory answered SLVERR or DECERR
    PAGE = 2  # nothing is mapped there
    PERMISSION = 3  # the page does not allow it


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
