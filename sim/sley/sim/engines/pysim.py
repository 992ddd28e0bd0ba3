"""Engine ``pysim``: the gateware in Amaranth's own simulator; needs nothing but Python."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

from sley.abi.config import ChipConfig, configuration
from sley.abi.ctrl_c import CTRL_C
from sley.abi.transport import EngineError, Transport, memory_span, register_address
from sley.sim.engines.access import ACCESS_LIMIT, HANG, check_response
from sley.sim.engines.link import linked
from sley.sim.engines.options import EngineOptions, parse_options
from sley.sim.memory.dram import OUTPUTS, Dram, ProtocolError

PERIOD = 10e-9

Command = Callable[[Any], Awaitable[int]]


class PysimTransport:
    """A device in Amaranth's simulator: some hundred to some thousand cycles a second.

    ``chip`` is a component with the members of a chip. The DRAM is a simulator process; the host is a testbench that
    executes one command at a time and pauses the simulation in between. ``memory`` is device memory, ``cycles``
    counts clock cycles since reset. A register access that takes more than ``ACCESS_LIMIT`` cycles, or is answered
    with an error, raises ``EngineError``.
    """

    def __init__(self, chip: Any, options: EngineOptions) -> None:
        from amaranth.sim import Simulator

        self._chip = chip
        self.memory = bytearray(options.memory)
        self._dram = Dram(self.memory, len(chip.m_axi.wdata) // 8, options.dram)
        self._command: Command | None = None
        self._result = 0
        self._closed = False
        self._waveform = ExitStack()
        self._simulator = Simulator(chip)
        self._simulator.add_clock(PERIOD)
        self._simulator.add_process(self._serve_memory)
        self._simulator.add_testbench(self._execute)
        if options.trace:
            self._waveform.enter_context(self._simulator.write_vcd(str(options.trace)))
        self._simulator.advance()

    @property
    def memory_bytes(self) -> int:
        return len(self.memory)

    @property
    def cycles(self) -> int:
        return self._dram.cycle

    def read32(self, address: int) -> int:
        bus, register = self._chip.s_axil, register_address(address)
        data = 0

        async def read(ctx: Any) -> int:
            nonlocal data
            ctx.set(bus.araddr, register)
            ctx.set(bus.rready, 1)
            ctx.set(bus.arvalid, 1)
            response = HANG
            for _ in range(ACCESS_LIMIT):
                address_taken, done = ctx.get(bus.arready), ctx.get(bus.rvalid)
                if done:
                    response, data = ctx.get(bus.rresp), ctx.get(bus.rdata)
                await ctx.tick()
                if address_taken:
                    ctx.set(bus.arvalid, 0)
                if done:
                    break
            ctx.set(bus.arvalid, 0)
            ctx.set(bus.rready, 0)
            return response

        check_response(self._run(read), "read", address)
        return data

    def write32(self, address: int, value: int) -> None:
        bus, register = self._chip.s_axil, register_address(address)

        async def write(ctx: Any) -> int:
            ctx.set(bus.awaddr, register)
            ctx.set(bus.wdata, value & 0xFFFFFFFF)
            ctx.set(bus.wstrb, 15)
            for signal in (bus.bready, bus.awvalid, bus.wvalid):
                ctx.set(signal, 1)
            response = HANG
            for _ in range(ACCESS_LIMIT):
                address_taken, data_taken = ctx.get(bus.awready), ctx.get(bus.wready)
                done = ctx.get(bus.bvalid)
                if done:
                    response = ctx.get(bus.bresp)
                await ctx.tick()
                if address_taken:
                    ctx.set(bus.awvalid, 0)
                if data_taken:
                    ctx.set(bus.wvalid, 0)
                if done:
                    break
            for signal in (bus.bready, bus.awvalid, bus.wvalid):
                ctx.set(signal, 0)
            return response

        check_response(self._run(write), "write", address)

    def read_memory(self, address: int, length: int) -> bytes:
        return bytes(self.memory[self._span(address, length)])

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raw = memoryview(data).cast("B")
        self.memory[self._span(address, len(raw))] = raw

    def barrier(self) -> None:
        """Writes take effect at once here."""

    def wait_irq(self, cycles: int) -> bool:
        async def wait(ctx: Any) -> int:
            left = cycles
            # Of operations there is this one, and the driver's wait above it: Ctrl-C does not take as long as both.
            while left > 0 and not ctx.get(self._chip.irq) and not CTRL_C.asked(2):
                await ctx.tick()
                left -= 1
            return int(ctx.get(self._chip.irq))

        return bool(self._run(wait))

    def advance(self, cycles: int) -> None:
        async def advance(ctx: Any) -> int:
            if cycles > 0:
                await ctx.tick().repeat(cycles)
            return 0

        self._run(advance)

    def close(self) -> None:
        """Releases the device and completes the waveform."""
        self._closed = True
        self._waveform.close()

    def _span(self, address: int, length: int) -> slice:
        if self._closed:
            raise EngineError("the device is closed; open it again")
        return memory_span(address, length, len(self.memory))

    @CTRL_C.postponed()  # in the middle of a step the simulator cannot be used again
    def _run(self, command: Command) -> int:
        """Advances the simulator until the host testbench has executed ``command``."""
        if self._closed:
            raise EngineError("the device is closed; open it again")
        self._command = command
        advance = self._simulator.advance
        try:
            while self._command is not None:
                advance()
        except BaseException as error:
            self.close()  # the simulator stopped in the middle of a step
            if isinstance(error, ProtocolError):
                raise EngineError(f"the chip issued {error}") from error
            raise
        return self._result

    async def _execute(self, ctx: Any) -> None:
        while True:
            # No time passes while there is nothing to do: the next command starts in the cycle in which this one ended.
            while self._command is None:
                await ctx.delay(0)
            self._result = await self._command(ctx)
            self._command = None

    async def _serve_memory(self, ctx: Any) -> None:
        bus, dram = self._chip.m_axi, self._dram
        signals = [(name, getattr(bus, name)) for name in OUTPUTS]
        driven = dict.fromkeys(OUTPUTS, 0)
        aw = (bus.awvalid, bus.awid, bus.awaddr, bus.awlen, bus.awsize, bus.awburst)
        ar = (bus.arvalid, bus.arid, bus.araddr, bus.arlen, bus.arsize, bus.arburst)
        inputs = (*aw, bus.wvalid, bus.wdata, bus.wstrb, bus.wlast, bus.bready, *ar, bus.rready)

        def drive() -> None:
            for name, signal in signals:
                value = getattr(dram, name)
                if driven[name] != value:
                    driven[name] = value
                    ctx.set(signal, value)

        drive()
        async for _, _, *values in ctx.tick().sample(*inputs):
            dram.edge(
                tuple(values[1:6]) if values[0] else None,
                tuple(values[7:10]) if values[6] else None,
                values[10],
                tuple(values[12:17]) if values[11] else None,
                values[17],
            )
            drive()


def open_transport(spec: str, options: dict[str, str]) -> Transport:
    """The chip of a preset or a JSON file (``nano`` when empty)."""
    from sley.hw.chip import Chip

    config: ChipConfig = configuration(spec or "nano")
    parsed = parse_options("pysim", config, options)
    return linked(PysimTransport(Chip(config), parsed), parsed.link)
