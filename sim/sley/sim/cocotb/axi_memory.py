"""The AXI4 memory of cocotbext-axi, with an end, and with addresses that answer with errors."""

from dataclasses import dataclass
from typing import Any

from cocotbext.axi import AxiResp
from cocotbext.axi.axi_ram import AxiRamRead, AxiRamWrite
from cocotbext.axi.memory import Memory


@dataclass
class BusFault:
    """A range of addresses that answers with an error.

    Attributes: ``start``, ``length``: bytes. ``response``: SLVERR or DECERR. ``reads``, ``writes``: of which it is.
    ``hits``: beats that were answered so.
    """

    start: int
    length: int
    response: Any
    reads: bool = True
    writes: bool = True
    hits: int = 0

    def meets(self, address: int, length: int) -> bool:
        return address < self.start + self.length and self.start < address + length


class _RefusedError(Exception):
    """A beat is answered with an error; cocotbext-axi makes SLVERR of any exception."""


class _Responses:
    """One side of the memory: which beats are refused, and the response of the last one that was."""

    def __init__(self, faults: list[BusFault], size: int, writing: bool) -> None:
        self._faults, self._size, self._writing = faults, size, writing
        self.last = AxiResp.OKAY

    def check(self, address: int, length: int) -> None:
        for fault in self._faults:
            if (fault.writes if self._writing else fault.reads) and fault.meets(address, length):
                fault.hits += 1
                self.last = fault.response
                raise _RefusedError
        if address + length > self._size:
            self.last = AxiResp.DECERR
            raise _RefusedError

    def answering(self, channel: Any, field: str) -> None:
        """Lets the responses that ``channel`` sends be those that were chosen here."""
        send = channel.send

        async def answer(beat: Any) -> None:
            if getattr(beat, field) != AxiResp.OKAY:
                setattr(beat, field, self.last)
            await send(beat)

        channel.send = answer


class _Write(AxiRamWrite):
    def __init__(self, bus: Any, clock: Any, reset: Any, mem: Any, responses: _Responses) -> None:
        self._responses = responses
        super().__init__(bus, clock, reset, mem=mem)
        responses.answering(self.b_channel, "bresp")

    async def _write(self, address: int, data: bytes) -> None:
        self._responses.check(address, len(data))
        self.write(address, data)


class _Read(AxiRamRead):
    def __init__(self, bus: Any, clock: Any, reset: Any, mem: Any, responses: _Responses) -> None:
        self._responses = responses
        super().__init__(bus, clock, reset, mem=mem)
        responses.answering(self.r_channel, "rresp")

    async def _read(self, address: int, length: int) -> bytes:
        self._responses.check(address, length)
        return bytes(self.read(address, length))


class AxiMemory(Memory):
    """Device memory on the AXI4 manager ``bus``. Bytes beyond its end are answered with DECERR; other errors are those
    of ``fail``. A beat that is answered with an error reads as zeros and writes nothing.

    Attributes: ``write_if``, ``read_if``: the sides of cocotbext-axi, with their channels. ``faults``: addresses that
    answer with errors now; a fault that is removed is no more.
    """

    def __init__(self, bus: Any, clock: Any, reset: Any, size: int) -> None:
        super().__init__(size)
        self.faults: list[BusFault] = []
        self.write_if = _Write(bus.write, clock, reset, self.mem, _Responses(self.faults, size, True))
        self.read_if = _Read(bus.read, clock, reset, self.mem, _Responses(self.faults, size, False))

    def fail(
        self, start: int, length: int = 1, response: Any = AxiResp.SLVERR, *, reads: bool = True, writes: bool = True
    ) -> BusFault:
        """From now on beats with one of these bytes are answered with ``response``."""
        if response not in (AxiResp.SLVERR, AxiResp.DECERR):
            raise ValueError(f"response is {response!r}; an error of AXI4 is AxiResp.SLVERR or AxiResp.DECERR")
        fault = BusFault(start, length, response, reads, writes)
        self.faults.append(fault)
        return fault
