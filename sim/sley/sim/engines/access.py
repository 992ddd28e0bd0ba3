"""What the simulating engines check alike on every access."""

from sley.abi.transport import EngineError

ACCESS_LIMIT = 100_000
"""Cycles after which a register access that got no answer is given up."""

HANG, VIOLATION = -1, -2
_RESPONSES = {1: "EXOKAY", 2: "SLVERR", 3: "DECERR"}


def check_response(response: int, what: str, address: int) -> None:
    """Raises unless the AXI response is OKAY."""
    if response == HANG:
        raise EngineError(f"{what} of register {address:#06x} got no answer within {ACCESS_LIMIT} cycles")
    if response:
        raise EngineError(f"{what} of register {address:#06x} was answered with {_RESPONSES[response]}")
