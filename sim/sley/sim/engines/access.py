"""What the simulating engines check alike on every access."""

from sley.sim.errors import EngineError

ACCESS_LIMIT = 100_000
"""Cycles after which a register access that got no answer is given up."""

HANG, VIOLATION = -1, -2
_RESPONSES = {1: "EXOKAY", 2: "SLVERR", 3: "DECERR"}


def register_address(address: int) -> int:
    """``address`` if it is one of a whole word in MMIO space."""
    if address % 4 or not 0 <= address < 1 << 16:
        raise EngineError(f"register address {address:#x} is not a multiple of 4 in 0x0..0xfffc")
    return address


def check_response(response: int, what: str, address: int) -> None:
    """Raises unless the AXI response is OKAY."""
    if response == HANG:
        raise EngineError(f"{what} of register {address:#06x} got no answer within {ACCESS_LIMIT} cycles")
    if response:
        raise EngineError(f"{what} of register {address:#06x} was answered with {_RESPONSES[response]}")


def memory_span(address: int, length: int, size: int) -> slice:
    """The range as a slice if it lies in device memory."""
    if address < 0 or length < 0 or address + length > size:
        raise EngineError(f"bytes {address:#x}..{address + length:#x} are outside the device's {size:#x} bytes")
    return slice(address, address + length)
