"""A reference that executes loads and stores loop by loop as the contract words them, and says where they stop."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INTERLEAVE_CHUNKS, TRANSPOSE_CHUNKS, Op, Space
from sley.abi.network import AccessError
from sley.abi.parameters import PARAMS, Param, unit_params
from sley.hw.noc.access import FAULT_CODES
from sley.hw.testing.dma.program import WORD, DmaCommand, Program


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
        self.params = {p: info.reset for p, info in unit_params(self.unit, self.config).items()}

    def place_lists(self, program: Program) -> None:
        """Puts the words of a program's lists where it expects them."""
        for place, word in program.lists.items():
            row, lane = divmod(place, self.config.array)
            self.local[Space.ACCUMULATOR][row][4 * lane : 4 * lane + 4] = (word & WORD).to_bytes(4, "little")

    def refusal(self, start: int, end: int) -> AccessError:
        """The ``AccessError`` of bytes of a run that begins at ``start``: where some are behind the end of memory, the
        distance tells of what kind it is."""
        if end <= len(self.memory):
            return AccessError.NONE
        return {2: AccessError.PAGE, 3: AccessError.PERMISSION}.get(start // len(self.memory), AccessError.BUS)

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
        info = PARAMS[Param(command.param)] if command.param in self.params else None
        if info is None:
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
        offsets = self._offsets(command)
        for slab in range(p[Param.COUNT2] if command.c else 0):
            for run in range(command.c + pad_runs):
                address = command.a + slab * p[Param.MEM_STRIDE2] + (offsets[run] if run < len(offsets) else 0)
                row = (command.b & WORD) + slab * p[Param.LOCAL_STRIDE2] + run * p[Param.LOCAL_STRIDE]
                data = run < command.c and p[Param.RUN_BYTES] > 0
                if data and (address & WORD) + p[Param.RUN_BYTES] > 1 << self.config.addr_bits:
                    raise DmaFaultError(FaultCode.BAD_ADDRESS, address)
                yield address & WORD, row, data

    def _offsets(self, command: DmaCommand) -> list[int]:
        """From the first run of a slab to each one that has bytes."""
        p, n, rows = self.params, self.config.array, self.local[Space.ACCUMULATOR]
        if not command.c or not p[Param.RUN_BYTES] or not p[Param.COUNT2]:
            return []
        if not command.by_list:
            return [run * p[Param.MEM_STRIDE] for run in range(command.c)]
        if p[Param.LIST_ROW] + -(-command.c // n) > len(rows):
            raise DmaFaultError(FaultCode.BAD_PARAMETER, p[Param.LIST_ROW])
        words = b"".join(rows[p[Param.LIST_ROW] :])
        return [int.from_bytes(words[4 * run : 4 * run + 4], "little") for run in range(command.c)]

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
        """What a run has at an offset, the fill value behind its end."""
        bus = self.config.bus_bytes
        size = max(0, min(bus, self.params[Param.RUN_BYTES] - offset)) if data else 0
        refusal = self.refusal(address, address + offset + size)
        if size and refusal:
            raise DmaFaultError(FAULT_CODES[refusal], address)
        fill = self.params[Param.FILL].to_bytes(4, "little") * (bus // 4)
        return bytes(self.memory[address + offset : address + offset + size]) + fill[size:]

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
            refused = AccessError.NONE
            for address, first, _ in self._runs(command, 0):
                rows = [self._row(command, first + k * p[Param.CHUNK_STRIDE]) for k in range(-(-length // row_bytes))]
                refusal = self.refusal(address, address + length)
                refused = refused or refusal
                if not refusal:
                    self.memory[address : address + length] = b"".join(rows)[:length]
        finally:
            if refused:
                raise DmaFaultError(FAULT_CODES[refused], command.a)
