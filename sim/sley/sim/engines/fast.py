"""Engine ``fast``: the gateware compiled by Sley's own vectorising compiler (``sley.sim.fast``)."""

import ctypes
from dataclasses import replace
from pathlib import Path

from sley.abi.config import configuration
from sley.abi.transport import EngineError, Transport
from sley.sim.engines.access import HANG
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.library import LibraryTransport
from sley.sim.engines.link import linked
from sley.sim.engines.options import EngineOptions, parse_options
from sley.sim.errors import FastError
from sley.sim.fast.run.build import build_library
from sley.sim.fast.run.condition import Condition
from sley.sim.fast.run.instance import Instance
from sley.sim.fast.run.tier import AUTO, chosen
from sley.sim.memory import dram

HOST = Path(__file__).with_name("fast_host.c")
INCLUDES = (HOST.parent, Path(dram.__file__).parent)

TIES = {"rst": 0}
"""Inputs that no host of this engine drives: a device is reset by opening another one."""

TRACE_DEPTH = 10_000
"""Cycles at the end of a run that are in a waveform asked for by ``trace``."""

MAX_RECORD = 10_000_000
"""Cycles that can be recorded; each takes some hundred bytes."""

FAILURE_FILE = Path("sley-failure.vcd")


class FastTransport(LibraryTransport, Instance):
    """A device as vector code: several times faster than ``rtl``, and built in a fraction of its time.

    ``rtlil`` is a design whose first module has the ports of a chip, ``bus_bytes`` the width of its memory bus.
    ``record``: cycles that are kept to be written as a waveform, to ``options.trace`` when the device is closed and to
    ``sley-failure.vcd`` (or there too) when it fails. ``tier``: how well it is compiled.
    """

    def __init__(self, rtlil: str, bus_bytes: int, options: EngineOptions, record: int = 0, tier: str = AUTO) -> None:
        self._trace: Path | None = None
        self._tier = tier
        super().__init__(self._build(rtlil, bus_bytes), replace(options, trace=None))
        self._library.sley_run_until.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self._attach(self._library, self._open(), rtlil, None, TIES)
        depth = record or (TRACE_DEPTH if options.trace else 0)
        if depth:
            self.record(depth, options.trace or FAILURE_FILE)
        self._trace = options.trace

    def _build(self, rtlil: str, bus_bytes: int) -> Path:
        return build_library(rtlil, None, HOST, INCLUDES, (f"-DBUS_BYTES={bus_bytes}",), TIES, self._tier)

    def close(self) -> None:
        if not self._sim:
            return
        try:
            if self._trace is not None:
                self.write_vcd(self._trace)
        finally:
            self._detach()
            super().close()

    def __del__(self) -> None:
        if getattr(self, "_sim", None):
            self._trace = None  # the interpreter may be ending: only close() writes
            self.close()

    def _run(self, condition: Condition, limit: int, clocks: tuple[str, ...]) -> int:
        if clocks:
            raise FastError(f"a chip has one clock: leave out {', '.join(clocks)}")
        return int(self._library.sley_run_until(self._handle, condition.pointer, limit))

    def _checked(self, status: int) -> int:
        self._check(status)
        try:
            return super()._checked(status)
        except EngineError as error:
            raise EngineError(f"{error}{self._written()}") from None

    def _refuse(self, response: int, what: str, address: int) -> None:
        try:
            super()._refuse(response, what, address)
        except EngineError as error:
            raise EngineError(f"{error}{self._written() if response == HANG else ''}") from None

    def save(self, path: str | Path) -> None:
        if self._library.sley_violation(self._open()):
            raise EngineError("the chip broke a rule of its memory bus; such a state cannot be saved")
        super().save(path)

    @property
    def _device_memory(self) -> int:
        return self.memory_bytes


def open_transport(spec: str, options: dict[str, str]) -> Transport:
    """The chip of a preset or a JSON file (``base`` when empty), compiled on first use.

    Option ``record``: cycles to keep for a waveform, see ``FastTransport``. ``tier``: how well it is compiled, see
    ``sley.sim.fast.run.tier``.
    """
    config = configuration(spec or "base")
    others = dict(options)
    tier = chosen(others.pop("tier", AUTO))
    record = _depth(others.pop("record", "0"))
    parsed = parse_options("fast", config, others, (".vcd", ".fst"))
    return linked(FastTransport(cached_rtlil(config), config.bus_bytes, parsed, record, tier), parsed.link)


def _depth(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_RECORD:
        raise EngineError(f"record={text}: record must be in 0..{MAX_RECORD}")
    return int(text)
