"""What surrounds the load and store units in a bench: commands, local memories, memory behind runs, and a reference.

The reference executes commands loop by loop as the contract words them, and says where they stop.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import (
    FLAGS_LSB,
    FORMATS,
    INTERLEAVE_CHUNKS,
    PARAMS,
    TRANSPOSE_CHUNKS,
    Op,
    Param,
    Space,
)
from sley.hw.core.sram.sram import READ_LATENCY
from sley.hw.testing.pins import Pins
from sley.hw.testing.streams import StreamBench, StreamError

WORD = 0xFFFFFFFF


@dataclass
class DmaCommand:
    """A LOAD or STORE (``a`` memory, ``b`` row, ``c`` runs), or a SET of ``param`` to ``a``."""

    op: Op
    a: int
    b: int = 0
    c: int = 0
    space: Space = Space.SCRATCHPAD
    param: int = 0
    unit: Unit = Unit.LOAD
    signal: int = 0
    pc: int = 0
    interleave: int = 0
    transpose: int = 0

    def payload(self) -> dict[str, int]:
        fields = {"param": self.param, "unit": self.unit} if self.op is Op.SET else {"space": self.space}
        if self.op is Op.LOAD:
            fields |= {"interleave": self.interleave, "transpose": self.transpose}
        layout = FORMATS[self.op].layout.fields
        flags = sum(value << (layout[name].lsb - FLAGS_LSB) for name, value in fields.items())
        operands = {name: getattr(self, name) & WORD for name in "abc"}
        return {"op": self.op, "pc": self.pc, "wait": 0, "signal": self.signal, "flags": flags, **operands}


@dataclass
class Program:
    """Commands of one unit in order; each has its place as ``pc``."""

    unit: Unit
    commands: list[DmaCommand] = field(default_factory=list)

    def move(
        self,
        a: int,
        b: int,
        c: int,
        space: Space = Space.SCRATCHPAD,
        signal: int = 0,
        interleave: int = 0,
        transpose: int = 0,
    ) -> None:
        op = Op.LOAD if self.unit is Unit.LOAD else Op.STORE
        pc = len(self.commands)
        self.commands.append(
            DmaCommand(op, a, b, c, space, signal=signal, pc=pc, interleave=interleave, transpose=transpose)
        )

    def set(self, param: int, value: int) -> None:
        self.commands.append(DmaCommand(Op.SET, value, param=param, unit=self.unit, pc=len(self.commands)))

    def sets(self, **values: int) -> None:
        for name, value in values.items():
            self.set(Param[name.upper()], value)

    def payloads(self) -> list[dict[str, int]]:
        return [c.payload() for c in self.commands]

    def signals(self) -> list[int]:
        return [c.signal for c in self.commands]


class DmaFaultError(Exception):
    """Where the reference stops a command."""

    def __init__(self, code: FaultCode, address: int) -> None:
        super().__init__(f"{code.name} at {address:#x}")
        self.code = code
        self.address = address & WORD


@dataclass
class DmaState:
    """Local memories as rows of bytes, memory, and the parameters of one unit."""

    config: ChipConfig
    unit: Unit
    local: dict[Space, list[bytearray]]
    memory: bytearray
    params: dict[Param, int] = field(default_factory=dict)
    faults: list[tuple[int, int, int]] = field(default_factory=list)
    """Code, pc and address."""

    @classmethod
    def random(cls, config: ChipConfig, unit: Unit, rng: random.Random, memory_bytes: int) -> "DmaState":
        local = {
            Space.SCRATCHPAD: [bytearray(rng.randbytes(config.row_bytes)) for _ in range(config.scratchpad_rows)],
            Space.ACCUMULATOR: [
                bytearray(rng.randbytes(config.accumulator_row_bytes)) for _ in range(config.accumulator_rows)
            ],
        }
        state = cls(config, unit, local, bytearray(rng.randbytes(memory_bytes)))
        state.clear_params()
        return state

    def copy(self) -> "DmaState":
        local = {space: [bytearray(row) for row in rows] for space, rows in self.local.items()}
        return DmaState(self.config, self.unit, local, bytearray(self.memory), dict(self.params), list(self.faults))

    def clear_params(self) -> None:
        self.params = {p: info.reset for p, info in PARAMS.items() if self.unit in info.units}

    def execute(self, program: Program) -> None:
        for command in program.commands:
            try:
                if command.op is Op.SET:
                    self._set(command)
                elif command.c > 0xFFFF:
                    raise DmaFaultError(FaultCode.BAD_PARAMETER, command.c)
                elif self._illegal(command):
                    raise DmaFaultError(FaultCode.ILLEGAL_INSTRUCTION, 0)
                elif command.op is Op.LOAD:
                    self._load(command)
                else:
                    self._store(command)
            except DmaFaultError as fault:
                self.faults.append((int(fault.code), command.pc, fault.address))

    def _set(self, command: DmaCommand) -> None:
        info = PARAMS[Param(command.param)] if command.param in Param._value2member_map_ else None
        if info is None or self.unit not in info.units:
            raise DmaFaultError(FaultCode.BAD_PARAMETER, command.param)
        value = command.a & WORD
        if info.signed and value >> 31:
            value -= 1 << 32
        low = -(1 << (info.width - 1)) if info.signed else 0
        if not low <= value < low + (1 << info.width):
            raise DmaFaultError(FaultCode.BAD_PARAMETER, command.param)
        self.params[info.param] = value

    def _runs(self, command: DmaCommand, pad_runs: int) -> Iterator[tuple[int, int, bool]]:
        """Memory address and first row of each run, and whether it has data."""
        p = self.params
        for slab in range(p[Param.COUNT2] if command.c else 0):
            for run in range(command.c + pad_runs):
                address = command.a + slab * p[Param.MEM_STRIDE2] + run * p[Param.MEM_STRIDE]
                row = (command.b & WORD) + slab * p[Param.LOCAL_STRIDE2] + run * p[Param.LOCAL_STRIDE]
                data = run < command.c and p[Param.RUN_BYTES] > 0
                if data and (address & WORD) + p[Param.RUN_BYTES] > 1 << self.config.addr_bits:
                    raise DmaFaultError(FaultCode.BAD_ADDRESS, address)
                yield address & WORD, row, data

    def _row(self, command: DmaCommand, row: int) -> bytearray:
        rows = self.local[command.space]
        if not 0 <= row < len(rows):
            raise DmaFaultError(FaultCode.LOCAL_ADDRESS, row)
        return rows[row]

    def _illegal(self, command: DmaCommand) -> bool:
        permuted = command.interleave or command.transpose
        return bool(permuted and (command.space or (command.interleave and self.config.lane_elements() == 1)))

    def _load(self, command: DmaCommand) -> None:
        p = self.params
        row_bytes = len(self.local[command.space][0])
        if command.c == 0 or p[Param.COUNT2] == 0:
            return
        if p[Param.RUN_BYTES] > p[Param.CHUNKS] * row_bytes:
            raise DmaFaultError(FaultCode.BAD_PARAMETER, p[Param.RUN_BYTES])
        if command.interleave or command.transpose:
            self._load_permuted(command)
            return
        bus = self.config.bus_bytes
        for address, first, data in self._runs(command, p[Param.PAD_RUNS]):
            for chunk in range(p[Param.CHUNKS]):
                target = self._row(command, first + chunk * p[Param.CHUNK_STRIDE])
                for at in range(0, row_bytes, bus):
                    target[at : at + bus] = self._beat(address, chunk * row_bytes + at, data)

    def _beat(self, address: int, offset: int, data: bool) -> bytes:
        """What a run has at an offset, zeros behind its end."""
        bus = self.config.bus_bytes
        size = max(0, min(bus, self.params[Param.RUN_BYTES] - offset)) if data else 0
        if size and address + offset + size > len(self.memory):
            raise DmaFaultError(FaultCode.BUS_ERROR, address)
        return bytes(self.memory[address + offset : address + offset + size]).ljust(bus, b"\0")

    def _load_permuted(self, command: DmaCommand) -> None:
        """Unit by unit: all its runs, then its rows."""
        p, n, row_bytes = self.params, self.config.array, self.config.row_bytes
        chunks = p[Param.CHUNKS]
        pair = 2 if command.interleave else 1
        block = n if command.transpose else 1
        most = (TRANSPOSE_CHUNKS // pair) if command.transpose else INTERLEAVE_CHUNKS
        if chunks > most:
            raise DmaFaultError(FaultCode.BAD_PARAMETER, chunks)
        runs = command.c + p[Param.PAD_RUNS]
        units = -(-runs // (pair * block))
        fetch = self._runs(command, units * pair * block - command.c)
        for slab in range(p[Param.COUNT2]):
            for unit in range(units):
                # rows[i][h][c] after interleaving
                rows: list[list[list[bytes]]] = []
                for _ in range(block):
                    group = []
                    for _ in range(pair):
                        address, _, data = next(fetch)
                        group.append([self._beat(address, c * row_bytes, data) for c in range(chunks)])
                    if pair == 2:
                        woven = [
                            bytes(x for ab in zip(a, b, strict=True) for x in ab) for a, b in zip(*group, strict=True)
                        ]
                        group = [[row[h * row_bytes : (h + 1) * row_bytes] for row in woven] for h in range(2)]
                    rows.append(group)
                lane = row_bytes // n
                for j in range(block):
                    for h in range(pair):
                        for c in range(chunks):
                            row = (command.b & WORD) + slab * p[Param.LOCAL_STRIDE2] + unit * p[Param.LOCAL_STRIDE]
                            row += j + (c * pair + h) * p[Param.CHUNK_STRIDE]
                            if command.transpose:
                                value = b"".join(rows[i][h][c][j * lane : (j + 1) * lane] for i in range(n))
                            else:
                                value = rows[0][h][c]
                            self._row(command, row)[:] = value

    def _store(self, command: DmaCommand) -> None:
        p = self.params
        length = p[Param.RUN_BYTES]
        row_bytes = len(self.local[command.space][0])
        if length == 0:
            return
        try:
            bus_error = False
            for address, first, _ in self._runs(command, 0):
                rows = [self._row(command, first + k * p[Param.CHUNK_STRIDE]) for k in range(-(-length // row_bytes))]
                if address + length > len(self.memory):
                    bus_error = True
                else:
                    self.memory[address : address + length] = b"".join(rows)[:length]
        finally:
            if bus_error:
                raise DmaFaultError(FaultCode.BUS_ERROR, command.a)


class DmaBench(StreamBench):
    """The unit with local memories and memory around it; ``state`` is what they hold."""

    def __init__(self, dut: Any, state: DmaState, *, seed: int = 0, timeout: int = 20_000) -> None:
        super().__init__(dut, seed=seed, timeout=timeout)
        self.state = state
        self.faults: list[tuple[int, int, int]] = []
        self.grants: list[int] = []
        """Cycles of reads and writes of the local memories."""
        self.runs: list[tuple[int, int, int]] = []
        """Cycle, address and bytes of each run."""
        self.acknowledged: list[int] = []
        """Cycle in which each run of a store was acknowledged."""
        self.joined = 0
        """Runs of stores that the next one continues."""
        self.retired: list[int] = []
        self.add(self._watch_unit)

    async def _watch_unit(self, ctx: Any) -> None:
        fault = self.dut.fault
        signal = self.dut.signal[0]
        async for _, _, valid, code, pc, address, retired, offered, busy in ctx.tick().sample(
            fault.valid, fault.code, fault.pc, fault.address, self.dut.retired, signal.valid, self.dut.busy
        ):
            if offered and not busy:
                raise StreamError("a signal set is offered, and the unit is not busy (rule 6 of a unit)")
            if valid:
                self.faults.append((code, pc, address))
            if retired:
                self.retired.append(self.cycle)

    def play_local_writes(self, denied: float = 0.0) -> None:
        for port, space in ((self.dut.scratchpad, Space.SCRATCHPAD), (self.dut.accumulator, Space.ACCUMULATOR)):
            self.add(self._writes(port, self.state.local[space], denied))

    def _writes(self, port: Any, rows: list[bytearray], denied: float) -> Any:
        rng = random.Random(self.rng.random())
        granules = len(port.enable)
        size = len(rows[0]) // granules

        async def process(ctx: Any) -> None:
            pins = Pins(port.ready)
            ready = rng.random() >= denied
            pins.set(ctx, ready)
            async for _, _, valid, row, data, enable in ctx.tick().sample(port.valid, port.row, port.data, port.enable):
                if valid and ready:
                    self.grants.append(self.cycle)
                    new = data.to_bytes(len(rows[0]), "little")
                    for k in range(granules):
                        if enable >> k & 1:
                            rows[row][k * size : (k + 1) * size] = new[k * size : (k + 1) * size]
                ready = rng.random() >= denied
                pins.set(ctx, ready)

        return process

    def play_local_reads(self, denied: float = 0.0) -> None:
        for port, space in ((self.dut.scratchpad, Space.SCRATCHPAD), (self.dut.accumulator, Space.ACCUMULATOR)):
            self.add(self._reads(port, self.state.local[space], denied))

    def _reads(self, port: Any, rows: list[bytearray], denied: float) -> Any:
        rng = random.Random(self.rng.random())
        width = len(port.data)

        async def process(ctx: Any) -> None:
            pipe: list[int | None] = [None] * READ_LATENCY
            pins, edges = Pins(port.ready, port.data), aiter(ctx.tick().sample(port.valid, port.row, port.part))
            while True:
                ready = rng.random() >= denied
                arriving = pipe.pop(0)
                pins.set(ctx, ready, rng.getrandbits(width) if arriving is None else arriving)
                _, _, valid, row, part = await anext(edges)
                if valid and ready:
                    self.grants.append(self.cycle)
                read = int.from_bytes(rows[row], "little") >> (part * width) & ((1 << width) - 1)
                pipe.append(read if valid and ready else None)

        return process

    def play_reader(self, latency: tuple[int, int] = (3, 3), pause: float = 0.0, idle: float = 0.0) -> None:
        """Memory behind ``run`` and ``beat``; each run takes at least a random latency."""
        dut, bus, memory = self.dut, self.state.config.bus_bytes, self.state.memory
        rng = random.Random(self.rng.random())
        queue: list[tuple[int, dict[str, int]]] = []

        async def process(ctx: Any) -> None:
            offered = False
            pins = Pins(dut.run.ready, dut.beat.valid, dut.beat.payload)
            edges = aiter(ctx.tick().sample(dut.beat.ready, dut.run.valid, dut.run.payload.addr, dut.run.payload.bytes))
            while True:
                run_ready = rng.random() >= pause
                offered = offered or bool(queue and queue[0][0] <= self.cycle and rng.random() >= idle)
                beat = queue[0][1] if offered else {"data": rng.getrandbits(8 * bus), "last": 1}
                pins.set(ctx, run_ready, offered, beat)
                _, _, taken, valid, address, length = await anext(edges)
                if offered and taken:
                    queue.pop(0)
                    offered = False
                if valid and run_ready:
                    assert length > 0
                    self.runs.append((self.cycle, address, length))
                    due = self.cycle + rng.randint(*latency) - 1
                    for at in range(0, length, bus):
                        piece = memory[address + at : address + min(at + bus, length)]
                        error = address + min(at + bus, length) > len(memory)
                        beat = {"data": int.from_bytes(piece, "little"), "last": at + bus >= length, "error": error}
                        queue.append((due, beat))

        self.add(process)

    def play_writer(self, latency: tuple[int, int] = (3, 3), pause: float = 0.0) -> None:
        """Memory behind ``run`` and ``data``: takes a run, then its data, and acknowledges it later, but no run that is
        to be joined before the next one is here or ``cut``. A run has a group, and no group begins anew while it has
        runs of its last time."""
        dut, bus, memory = self.dut, self.state.config.bus_bytes, self.state.memory
        rng = random.Random(self.rng.random())
        promised: int | None = None
        runs: list[tuple[int, int, int]] = []
        acks: list[tuple[int, bool, int]] = []

        async def process(ctx: Any) -> None:
            nonlocal promised
            got = b""
            run = dut.run.payload
            pins = Pins(dut.run.ready, dut.data.ready, dut.writer_pending, dut.writer_error, dut.writer_error_phase)
            edges = aiter(
                ctx.tick().sample(
                    dut.run.valid, run.addr, run.bytes, run.more, dut.phase, dut.data.valid, dut.data.payload, dut.cut
                )
            )
            while True:
                run_ready = len(runs) < 4 and rng.random() >= pause
                ready = bool(runs) and rng.random() >= pause
                complete = len(acks) > 1 or runs or promised is None
                acknowledged = bool(acks and complete) and acks[0][0] <= self.cycle
                phases = [entry[2] for entry in (*acks, *runs)]
                pending = sum(1 << k for k in set(phases))
                error_phase = acks[0][2] if acks else rng.randrange(2)
                pins.set(ctx, run_ready, ready, pending, acknowledged and acks[0][1], error_phase)
                _, _, run_valid, address, length, more, phase, valid, data, cut = await anext(edges)
                if acknowledged:
                    acks.pop(0)
                    self.acknowledged.append(self.cycle)
                if cut:
                    promised = None
                if valid and ready:
                    got += data.to_bytes(bus, "little")
                    start, size, group = runs[0]
                    if len(got) >= size:
                        error = start + size > len(memory)
                        if not error:
                            memory[start : start + size] = got[:size]
                        due = max(self.cycle + rng.randint(*latency), acks[-1][0] + 1 if acks else 0)
                        acks.append((due, error, group))
                        runs.pop(0)
                        got = b""
                if run_valid and run_ready:
                    assert length > 0
                    assert promised in (None, address)
                    promised = (address + length) & WORD if more else None
                    self.runs.append((self.cycle, address, length))
                    self.joined += more
                    assert phase not in phases or phase == phases[-1]
                    runs.append((address, length, phase))

        self.add(process)
