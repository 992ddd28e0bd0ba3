"""A chip that was compiled to a shared library with the C API of ``host.h``, as a transport."""

import ctypes
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sley.abi.transport import EngineError, memory_span, register_address
from sley.sim.engines.access import ACCESS_LIMIT, VIOLATION, check_response
from sley.sim.engines.options import EngineOptions
from sley.sim.memory.dram import DramTiming

_NO_REGISTER = ~0xFFFC
"""Bits that the address of a register has not."""

_READ_FAILED = -256
"""What is added to the response when a read failed: values that were read are not negative."""


class CompiledTiming(ctypes.Structure):
    """``DramTiming`` of ``channels.h``."""

    _fields_ = [(field.name, ctypes.c_uint32) for field in fields(DramTiming)]


class LibraryTransport:
    """A device that runs as machine code.

    ``memory`` is device memory as a writable array without a copy; ``cycles`` counts clock cycles since reset. A
    register access that takes more than ``ACCESS_LIMIT`` cycles, or is answered with an error, raises ``EngineError``.
    Calls that let time pass release the interpreter's lock: several devices run beside each other in threads.
    """

    def __init__(self, path: Path, options: EngineOptions) -> None:
        self._sim: int | None = None
        self._library = load(path)
        timing = CompiledTiming(*astuple(options.dram))
        self._sim = self._library.sley_create(options.memory, timing)
        if not self._sim:
            raise EngineError(f"there is no memory for a device memory of {options.memory} bytes")
        buffer = (ctypes.c_uint8 * options.memory).from_address(self._library.sley_memory(self._sim))
        self.memory: npt.NDArray[np.uint8] = np.ctypeslib.as_array(buffer)
        self._memory_bytes = options.memory
        self._bind()
        if options.trace:
            self._library.sley_trace_open(self._sim, str(options.trace).encode())

    def _bind(self) -> None:
        """Register accesses are the calls that count: no conversion of arguments, and no release of the lock."""
        self._device = ctypes.c_void_p(self._sim)
        short = ctypes.PyDLL(None, handle=self._library._handle)
        self._write32: Any = short["sley_write32"]
        self._read32: Any = short["sley_read32"]
        self._read32.restype = ctypes.c_int64

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    @property
    def cycles(self) -> int:
        return int(self._library.sley_cycles(self._open()))

    def read32(self, address: int) -> int:
        if address & _NO_REGISTER:
            register_address(address)
        value: int = self._read32(self._device, address)
        if value < 0:
            self._refuse(value - _READ_FAILED, "read", address)
        return value

    def write32(self, address: int, value: int) -> None:
        if address & _NO_REGISTER:
            register_address(address)
        response = self._write32(self._device, address, value & 0xFFFFFFFF)
        if response:
            self._refuse(response, "write", address)

    def _refuse(self, response: int, what: str, address: int) -> None:
        """Raises for an access that was not answered with OKAY."""
        check_response(self._checked(response), what, address)

    def read_memory(self, address: int, length: int) -> bytes:
        return self.memory[self._span(address, length)].tobytes()

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raw = np.frombuffer(data, np.uint8)
        self.memory[self._span(address, raw.size)] = raw

    def barrier(self) -> None:
        """Writes take effect at once here."""

    def wait_irq(self, cycles: int) -> bool:
        return bool(self._checked(self._library.sley_run_until_irq(self._open(), cycles)))

    def advance(self, cycles: int) -> None:
        self._checked(self._library.sley_step(self._open(), cycles))

    def close(self) -> None:
        """Releases the device and completes the waveform; views of ``memory`` must not be used any more."""
        if self._sim:
            sim, self._sim = self._sim, None
            self.memory = np.zeros(0, np.uint8)
            self._read32 = self._write32 = self._closed
            self._library.sley_destroy(sim)

    def __del__(self) -> None:
        if getattr(self, "_sim", None):
            self.close()

    def _open(self) -> int:
        if self._sim is None:
            raise EngineError("the device is closed; open it again")
        return self._sim

    def _closed(self, *arguments: object) -> int:
        """In the place of functions that must not be called any more."""
        return self._open()

    def _span(self, address: int, length: int) -> slice:
        self._open()
        return memory_span(address, length, self._memory_bytes)

    def _checked(self, status: int) -> int:
        if status == VIOLATION:
            raise EngineError(f"the chip issued {self._library.sley_violation(self._sim).decode()}")
        return status


def load(path: Path) -> ctypes.CDLL:
    """The library with the types of its functions."""
    library = ctypes.CDLL(str(path))
    handle, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    signatures: dict[str, tuple[type | None, list[type]]] = {
        "create": (handle, [u64, ctypes.POINTER(CompiledTiming)]),
        "destroy": (None, [handle]),
        "memory": (handle, [handle]),
        "cycles": (u64, [handle]),
        "violation": (ctypes.c_char_p, [handle]),
        "trace_open": (None, [handle, ctypes.c_char_p]),
        "trace_flush": (None, [handle]),
        "access_limit": (None, [u64]),
        "write32": (ctypes.c_int, [handle, u32, u32]),
        "read32": (ctypes.c_int64, [handle, u32]),
        "step": (ctypes.c_int, [handle, u64]),
        "run_until_irq": (ctypes.c_int, [handle, u64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"sley_{name}")
        function.restype, function.argtypes = result, arguments
    library.sley_access_limit(ACCESS_LIMIT)
    return library
