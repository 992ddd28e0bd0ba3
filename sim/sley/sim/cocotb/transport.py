"""A chip in any simulator that cocotb drives, cycle by cycle as the engines run it."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.task import resume
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from sley.abi.transport import EngineError, memory_span, register_address
from sley.sim.engines.access import ACCESS_LIMIT, HANG, check_response
from sley.sim.memory.dram import OUTPUTS, Address, Dram, DramTiming, ProtocolError

PERIOD_NS = 10
RESET_CYCLES = 4

HOST_INPUTS = (
    *("awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready"),
    *("araddr", "arprot", "arvalid", "rready"),
)


class CycleTransport:
    """Blocking access to the chip ``dut``, for code that runs in a thread started with ``cocotb.task.bridge``.

    ``await reset()`` first; ``cycles`` counts from there. Host and memory keep the rules of the engines (see
    docs/theory/engines.md), so that a program takes as many cycles here as on any engine. ``memory`` is device memory,
    ``timing`` its rule.
    """

    def __init__(self, dut: Any, memory_bytes: int = 1 << 20, timing: DramTiming | None = None) -> None:
        self.dut = dut
        self.memory = bytearray(memory_bytes)
        self.timing = timing or DramTiming()
        self._dram = Dram(self.memory, len(dut.m_axi_wdata) // 8, self.timing)
        self._driven = dict.fromkeys(OUTPUTS, 0)

    @property
    def memory_bytes(self) -> int:
        return len(self.memory)

    @property
    def cycles(self) -> int:
        return self._dram.cycle

    async def reset(self) -> None:
        """Starts the clock and resets the chip; cycle 0 begins when this returns."""
        for name in HOST_INPUTS:
            getattr(self.dut, f"s_axil_{name}").value = 0
        for name in OUTPUTS:
            getattr(self.dut, f"m_axi_{name}").value = 0
        self.dut.rst.value = 1
        Clock(self.dut.clk, PERIOD_NS, unit="ns").start(start_high=False)
        await ClockCycles(self.dut.clk, RESET_CYCLES)
        self.dut.rst.value = 0
        self._drive()
        cocotb.start_soon(self._serve_memory())

    @resume
    async def read32(self, address: int) -> int:
        self.dut.s_axil_araddr.value = register_address(address)
        response, data = await self._access(["ar"], "r", "rdata")
        check_response(response, "read", address)
        return data

    @resume
    async def write32(self, address: int, value: int) -> None:
        dut = self.dut
        dut.s_axil_awaddr.value = register_address(address)
        dut.s_axil_wdata.value = value & 0xFFFFFFFF
        dut.s_axil_wstrb.value = 15
        response, _ = await self._access(["aw", "w"], "b", "bresp")
        check_response(response, "write", address)

    async def _access(self, requests: list[str], answer: str, wanted: str) -> tuple[int, int]:
        """Offers the requests until they are taken, and waits for the answer: its response, and one of its signals."""
        dut = self.dut

        def signal(name: str) -> Any:
            return getattr(dut, f"s_axil_{name}")

        ready = signal(f"{answer}ready")
        offers = [(signal(f"{channel}valid"), signal(f"{channel}ready")) for channel in requests]
        for line in (*(valid for valid, _ in offers), ready):
            line.value = 1
        response = result = HANG
        for _ in range(ACCESS_LIMIT):
            await RisingEdge(dut.clk)
            for valid, taken in offers:
                if int(taken.value):
                    valid.value = 0
            if int(signal(f"{answer}valid").value):
                response, result = int(signal(f"{answer}resp").value), int(signal(wanted).value)
                break
        for line in (*(valid for valid, _ in offers), ready):
            line.value = 0
        return response, result

    def read_memory(self, address: int, length: int) -> bytes:
        return bytes(self.memory[memory_span(address, length, len(self.memory))])

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raw = memoryview(data).cast("B")
        self.memory[memory_span(address, len(raw), len(self.memory))] = raw

    def barrier(self) -> None:
        """Writes take effect at once here."""

    @resume
    async def wait_irq(self, cycles: int) -> bool:
        for _ in range(cycles):
            if await self._irq():
                break
            await RisingEdge(self.dut.clk)
        return await self._irq()

    @resume
    async def advance(self, cycles: int) -> None:
        if cycles > 0:
            await ClockCycles(self.dut.clk, cycles)

    def close(self) -> None:
        """The simulator ends with the bench."""

    async def _irq(self) -> bool:
        """The line in the current cycle: in its second half, when everything has settled."""
        if int(self.dut.clk.value):
            await FallingEdge(self.dut.clk)
        return bool(int(self.dut.irq.value))

    def _drive(self) -> None:
        for name in OUTPUTS:
            value = getattr(self._dram, name)
            if self._driven[name] != value:
                self._driven[name] = value
                getattr(self.dut, f"m_axi_{name}").value = value

    async def _serve_memory(self) -> None:
        dram, value = self._dram, self._value
        while True:
            await RisingEdge(self.dut.clk)
            w = (value("wdata"), value("wstrb"), value("wlast")) if value("wvalid") else None
            bready, rready = (0, 0) if dram.idle else (value("bready"), value("rready"))
            try:
                dram.edge(self._address("aw"), w, bready, self._address("ar"), rready)
            except ProtocolError as error:
                raise EngineError(f"the chip issued {error}") from error
            self._drive()

    def _value(self, name: str) -> int:
        return int(getattr(self.dut, f"m_axi_{name}").value)

    def _address(self, channel: str) -> Address | None:
        if not self._value(f"{channel}valid"):
            return None
        of = [self._value(channel + name) for name in ("id", "addr", "len", "size", "burst")]
        return of[0], of[1], of[2], of[3], of[4]
