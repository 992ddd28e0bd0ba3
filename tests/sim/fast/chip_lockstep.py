"""A chip in Verilator and on the fast engine in lock-step, as a transport: every bit of the state, every cycle.

The Verilated chip is the generated Verilog with its registers and memories made public and its reset made an input
(``restart``), or both chips are ``tied``: without a reset, as the engines run them. ``chip_lockstep.cpp`` gives both
chips the same inputs and compares

- all outputs before every edge,
- after every edge every register that the manifest of the fast engine lists and that the Verilog has by that name,
- after every edge every row of every memory in which anything changed on either side: so all rows are equal in every
  cycle. (A shadow of all memories tells what changed.)

The rest, registers that only one side has, is in ``Coverage``.
"""

import ctypes
import re
from dataclasses import dataclass, field
from pathlib import Path

from same_names import same_names

from sley.abi.config import ChipConfig
from sley.sim.build.cache import digest
from sley.sim.build.verilator import build_library
from sley.sim.engines import library as chip_library
from sley.sim.engines.design_text import cached_rtlil, cached_verilog
from sley.sim.engines.fast import TIES
from sley.sim.engines.library import LibraryTransport
from sley.sim.engines.options import EngineOptions
from sley.sim.fast.emit.manifest import Manifest, Piece, Signal
from sley.sim.fast.run.build import build_library as build_fast_library
from sley.sim.fast.run.tier import BEST
from sley.sim.memory import dram

HARNESS = Path(__file__).with_name("chip_lockstep.cpp")
HOST_H = Path(chip_library.__file__).with_name("host.h")
DRAM_H = Path(dram.__file__).with_name("dram.h")
TOP = "sley_engine.chip.chip"
"""Where the chip is among the Verilated scopes."""

PUBLIC = " /*verilator public_flat_rd*/"
NAME = r"(?:\\(?!\$auto\$)\S+ |\w+)"
"""Not the names that Yosys makes to trigger constant drivers."""

REGISTER = re.compile(rf"^( *reg (?:\[\d+:0\] )?{NAME})( *= )", re.MULTILINE)
MEMORY = re.compile(rf"^( *reg (?:\[\d+:0\] )?{NAME} \[\d+:0\]);", re.MULTILINE)
READ_DATA = re.compile(rf"^ *assign ({NAME})(?: *\[[\d:]+\])? *= _\d+_;", re.MULTILINE)
"""Data of a memory's synchronous read port: Yosys gives the register a number and the name to a wire."""

REPORTED = 20


class LockstepError(AssertionError):
    """The two chips differ."""


class _Difference(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("kind", "number", "row", "low")]
    _fields_ += [(name, ctypes.c_uint64) for name in ("verilated", "fast")]


@dataclass
class Coverage:
    """What is compared, and what cannot be because one side does not have it."""

    registers: int = 0
    register_bits: int = 0
    memories: int = 0
    memory_bits: int = 0
    fast_only: list[str] = field(default_factory=list)
    """Registers of the fast engine that the Verilog has not."""
    verilog_only: list[str] = field(default_factory=list)
    """Registers and memories of the Verilog that the fast engine does not keep."""
    partial: list[str] = field(default_factory=list)
    """Registers of which the fast engine keeps only some bits."""


def public_verilog(verilog: str, tied: bool) -> str:
    """The chip with its state public, below a top module whose input ``restart`` is the reset unless that is tied."""
    modules = re.split(r"^(?=module )", verilog, flags=re.MULTILINE)
    text = "".join(_public_module(module) for module in modules)
    text = text.replace("\nmodule sley(", "\nmodule sley_chip(")
    top = verilog[verilog.index("\nmodule sley(") :].partition("endmodule")[0]
    ports = re.findall(r"^  (input|output) (\[\d+:0\] )?(\w+);", top, re.MULTILINE)
    outer = ", ".join(name for _, _, name in ports)
    declarations = "".join(f"  {direction} {width}{name};\n" for direction, width, name in ports)
    reset = f"1'b{TIES['rst']}" if tied else "restart"
    inner = ", ".join(".{}({})".format(name, reset if name == "rst" else name) for _, _, name in ports)
    wrapper = (
        f"\nmodule sley({outer}, restart);\n{declarations}  input restart;\n  sley_chip chip({inner});\nendmodule\n"
    )
    return text + wrapper


def _public_module(module: str) -> str:
    module = MEMORY.sub(rf"\1{PUBLIC};", REGISTER.sub(rf"\1{PUBLIC}\2", module))
    for name in set(READ_DATA.findall(module)):
        module = re.sub(
            rf"^( *wire (?:\[\d+:0\] )?{re.escape(name.rstrip())} *);", rf"\1{PUBLIC};", module, flags=re.MULTILINE
        )
    return module


def _library(config: ChipConfig, tied: bool) -> Path:
    """The Verilated chip with the harness that compares."""
    defines = {
        "BUS_BYTES": config.bus_bytes,
        "HOST_H": f'"{HOST_H}"',
        "DRAM_H": f'"{DRAM_H}"',
        "HEADERS": int(digest(HOST_H.read_bytes(), DRAM_H.read_bytes())[:8], 16),
    }
    return build_library(public_verilog(cached_verilog(config), tied), HARNESS, defines, None)


def fast_library(config: ChipConfig, tied: bool) -> Path:
    """The chip on the fast engine, compiled well; the lock-step with Amaranth's simulator runs the first tier."""
    return build_fast_library(cached_rtlil(config), ties=TIES if tied else None, tier=BEST)


def manifest_of(config: ChipConfig, tied: bool = False) -> Manifest:
    """What is where on the fast engine."""
    library = ctypes.CDLL(str(fast_library(config, tied)))
    library.fast_manifest.restype = ctypes.c_char_p
    return Manifest.from_json(library.fast_manifest().decode())


class LockstepTransport(LibraryTransport):
    """Both chips as one device; every call raises ``LockstepError`` as soon as they differ.

    ``tied``: neither of them has a reset. ``manifest``: another one than that of the fast engine, to see whether a
    difference is noticed.
    """

    def __init__(
        self, config: ChipConfig, options: EngineOptions, tied: bool = False, manifest: Manifest | None = None
    ) -> None:
        path = _library(config, tied)
        self._tied = tied
        self.manifest = manifest or manifest_of(config, tied)
        _declare(ctypes.CDLL(str(path))).lockstep_open(str(fast_library(config, tied)).encode())
        super().__init__(path, options)
        _declare(self._library)
        self.coverage = Coverage()
        self._registers = list(self.manifest.registers)
        self._memories: list[str] = []
        state = (*self.manifest.registers, *self.manifest.memories)
        self._verilog = same_names(state, self._variables())
        self._bind_ports()
        self._bind_registers()
        self._bind_memories()
        self._list_verilog_only()
        self._compare_all()

    @property
    def compared(self) -> int:
        """Cycles in which everything was compared."""
        return int(self._library.lockstep_compared(self._open()))

    def noise(self, seed: int, cycles: int, addresses: list[int]) -> None:
        """Random values on all inputs, those of the memory bus included; register addresses mostly from a list."""
        widths = [signal.width for name, signal in self.manifest.inputs.items() if name != "clk"]
        self._checked(
            self._library.lockstep_noise(
                self._open(),
                seed,
                cycles,
                (ctypes.c_uint32 * len(widths))(*widths),
                (ctypes.c_uint32 * len(addresses))(*addresses),
                len(addresses),
            )
        )

    def restart(self, cycles: int) -> None:
        """Holds the chip's reset for some cycles."""
        assert not self._tied
        self._checked(self._library.lockstep_restart(self._open(), cycles))

    def close(self) -> None:
        """Compares everything once more, changed or not."""
        try:
            if self._sim and not self._differences():
                self._compare_all()
        finally:
            super().close()

    def _compare_all(self) -> None:
        self._checked(self._library.lockstep_compare_all(self._open()))

    def _checked(self, status: int) -> int:
        self._raise_difference()
        return super()._checked(status)

    def _refuse(self, response: int, what: str, address: int) -> None:
        self._raise_difference()
        super()._refuse(response, what, address)

    def _differences(self) -> list[_Difference]:
        """The first ones."""
        found = (_Difference * REPORTED)()
        return found[: self._library.lockstep_differences(self._open(), found, REPORTED)]

    def _raise_difference(self) -> None:
        found = self._differences()
        if not found:
            return
        lines = [f"the chips differ after {self.compared} cycles, first in:"]
        outputs = list(self.manifest.outputs)
        for item in found:
            names = (outputs, self._registers, self._memories)[item.kind]
            row = f"[{item.row}]" if item.kind == 2 else ""
            place = f"{names[item.number]}{row} from bit {item.low}"
            lines.append(f"  {place}: {item.fast:#x} on the fast engine, {item.verilated:#x} in Verilator")
        raise LockstepError("\n".join(lines))

    def _bind_ports(self) -> None:
        library, sim = self._library, self._open()
        left = set(library.lockstep_ports(sim).decode().split())
        for number, name in enumerate(self.manifest.inputs):
            port = "restart" if name == "rst" else name
            if name != "clk":
                assert library.lockstep_input(sim, port.encode(), number), name
                left.remove(port)
        for number, (name, signal) in enumerate(self.manifest.outputs.items()):
            for piece in signal.pieces:
                assert library.lockstep_output(sim, name.encode(), number, *_numbers(piece)), name
            left.remove(name)
        assert left == ({"restart"} if self._tied else set())

    def _bind_registers(self) -> None:
        for number, (name, signal) in enumerate(self.manifest.registers.items()):
            if self._bind_register(number, name, signal):
                self.coverage.registers += 1
                self.coverage.register_bits += sum(piece.width for piece in signal.pieces)
            else:
                self.coverage.fast_only.append(name)

    def _bind_register(self, number: int, name: str, signal: Signal) -> bool:
        scope, variable = _place(self._verilog[name])
        bits = 0
        for piece in signal.pieces:
            bits = self._library.lockstep_register(self._open(), scope, variable, number, *_numbers(piece))
            if not bits:
                return False
        assert signal.width <= bits, f"{name} has {signal.width} bits, {bits} in the Verilog"
        if sum(piece.width for piece in signal.pieces) < bits:
            self.coverage.partial.append(name)
        return True

    def _bind_memories(self) -> None:
        library, sim = self._library, self._open()
        for name, memory in self.manifest.memories.items():
            depth = library.lockstep_memory(sim, *_place(self._verilog[name]))
            if not depth:
                self.coverage.fast_only.append(name)
                continue
            assert depth == memory.depth, f"{name} has {memory.depth} rows, {depth} in the Verilog"
            self._memories.append(name)
            for piece, pitch in zip(memory.pieces, memory.pitches, strict=True):
                library.lockstep_memory_piece(sim, *_numbers(piece), pitch)
            self.coverage.memories += 1
            self.coverage.memory_bits += memory.width * memory.depth

    def _list_verilog_only(self) -> None:
        known = set(self._verilog.values())
        self.coverage.verilog_only += [path for path in self._variables() if path not in known]

    def _variables(self) -> list[str]:
        """Paths of all that can be compared in the Verilated chip."""
        lines = self._library.lockstep_variables(self._open()).decode().splitlines()
        places = (line.partition("\t")[::2] for line in lines)
        return [f"sley{scope.removeprefix(TOP)}.{name.removeprefix(chr(92)).rstrip()}" for scope, name in places]


def _place(path: str) -> tuple[bytes, bytes]:
    """Scope and name of a variable in the Verilated chip."""
    scope, _, variable = path.rpartition(".")
    return (TOP + scope.removeprefix("sley")).encode(), variable.encode()


def _numbers(piece: Piece) -> tuple[int, int, int, int]:
    return piece.low, piece.width, piece.offset, piece.size


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """The types of the harness's functions."""
    handle, text, u32, u64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64
    piece = [u32, u32, u64, u32]
    signatures = {
        "open": (text, [text]),
        "ports": (text, [handle]),
        "input": (ctypes.c_int, [handle, text, u32]),
        "output": (ctypes.c_int, [handle, text, u32, *piece]),
        "register": (u32, [handle, text, text, u32, *piece]),
        "memory": (u32, [handle, text, text]),
        "memory_piece": (None, [handle, *piece, u64]),
        "compare_all": (ctypes.c_int, [handle]),
        "compared": (u64, [handle]),
        "differences": (u32, [handle, ctypes.POINTER(_Difference), u32]),
        "variables": (text, [handle]),
        "noise": (ctypes.c_int, [handle, u64, u64, ctypes.POINTER(u32), ctypes.POINTER(u32), u32]),
        "restart": (ctypes.c_int, [handle, u64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"lockstep_{name}")
        function.restype, function.argtypes = result, arguments
    return library
