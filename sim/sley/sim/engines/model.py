"""Engine ``model``: the golden functional model behind the driver's ``Transport``, and the twins of all blocks."""

import warnings

import numpy as np

from sley.abi.config import ChipConfig, configuration
from sley.abi.ctrl_c import CTRL_C
from sley.abi.transport import EngineError, MemoryWatch, Transport
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines.link import linked
from sley.sim.engines.options import VALID, parse_options
from sley.sim.engines.timed import TimedTransport, check_exact
from sley.sim.model.chip import ModelChip
from sley.sim.model.sanitize.kinds import Sanitizer, parse_sanitizers

_STEPS_PER_ACCESS = 64
COMPILED, NUMPY = VALUES = "compiled", "numpy"
"""Who computes what the cores do."""
NUMPY_IS_SLOWER = 100
OPTIONS = ("memory", "values", "sanitize", "cycles")
CYCLES = ("off", "on")
TIMED_VALUES = COMPILED, "off"
TIMED_OPTIONS = ("values", "cycles", *(name for name in VALID if name != "trace"))


class ModelTransport:
    """A ``Transport`` over ``ModelChip``. Every access lets the chip make some steps, waiting lets it run.

    With ``sanitizers``, ``wait_irq``, ``read_memory`` and ``close`` raise ``SanitizerError`` for what they have found.
    """

    def __init__(
        self,
        config: ChipConfig,
        memory_bytes: int,
        compiled: bool = True,
        sanitizers: frozenset[Sanitizer] = frozenset(),
    ):
        self.chip = ModelChip(config, memory_bytes, compiled, sanitizers)
        self._closed = False

    @property
    def watch(self) -> MemoryWatch | None:
        """Who wants to know which memory belongs to whom."""
        return self.chip.watch

    @property
    def memory_bytes(self) -> int:
        return self.chip.memory.data.size

    def _check(self) -> None:
        if self._closed:
            raise OSError("the device is closed; open it again")

    def read32(self, address: int) -> int:
        self._check()
        with CTRL_C.postponed():
            self.chip.run(_STEPS_PER_ACCESS)
        return self.chip.read(address)

    def write32(self, address: int, value: int) -> None:
        self._check()
        self.chip.write(address, value)

    def _span(self, address: int, length: int) -> slice:
        self._check()
        if address < 0 or length < 0 or address + length > self.memory_bytes:
            raise OSError(
                f"bytes {address:#x}..{address + length:#x} are outside the device's {self.memory_bytes:#x} bytes"
            )
        return slice(address, address + length)

    def read_memory(self, address: int, length: int) -> bytes:
        self.chip.reports.raise_found()
        return self.chip.memory.data[self._span(address, length)].tobytes()

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raw = np.frombuffer(data, np.uint8)
        self.chip.memory.data[self._span(address, raw.size)] = raw
        if self.chip.memory.shadow is not None:
            self.chip.memory.shadow.written(address, raw.size)

    def barrier(self) -> None:
        """Writes take effect at once here."""

    def wait_irq(self, cycles: int) -> bool:
        self._check()
        with CTRL_C.postponed():
            self.chip.run(cycles, until_irq=True)
        self.chip.reports.raise_found()
        return self.chip.irq

    def advance(self, cycles: int) -> None:
        self._check()
        with CTRL_C.postponed():
            self.chip.run(cycles)

    def close(self) -> None:
        self._closed = True
        self.chip.reports.raise_found()


def open_transport(spec: str, options: dict[str, str]) -> Transport:
    """``spec`` is a preset or a JSON file.

    Option ``memory`` is the size of device memory. ``values``: ``compiled`` needs a C compiler and is the default where
    one is; ``numpy`` gives the same values without one. ``sanitize``: names of sanitizers, separated by commas.
    ``cycles=on``: everything takes the cycles that it takes on the gateware; there are the options of memory and of the
    host link then, and with ``values=off`` only time passes.
    """
    timed = options.get("cycles", "off")
    if timed not in CYCLES:
        raise EngineError(f"cycles={timed}: cycles must be {' or '.join(CYCLES)}")
    if timed == "on" and "sanitize" in options:
        raise EngineError(
            f"sanitize={options['sanitize']} with cycles=on: sanitizers watch semaphores and packets of the model that "
            "has values alone; leave cycles=on out, the program and what is found are the same"
        )
    known = TIMED_OPTIONS if timed == "on" else OPTIONS
    unknown = [name for name in options if name not in known]
    if unknown:
        hint = "" if timed == "on" or unknown[0] not in TIMED_OPTIONS else "; that one is for cycles=on"
        raise EngineError(f"engine model has no option {unknown[0]!r}; there are {', '.join(known)}{hint}")
    config = configuration(spec)
    if timed == "on":
        return _open_timed(config, options)
    values = options.get("values") or _default_values()
    if values not in VALUES:
        raise EngineError(f"values={values}: values must be {' or '.join(VALUES)}")
    sanitizers = parse_sanitizers(options["sanitize"]) if "sanitize" in options else frozenset()
    if sanitizers and values != COMPILED:
        raise EngineError(
            f"sanitize={options['sanitize']}: sanitizers watch compiled cores, and values={values} here; leave "
            "values out, and install a C compiler if there is none"
        )
    sizes = {name: text for name, text in options.items() if name == "memory"}
    return ModelTransport(config, parse_options("model", config, sizes).memory, values == COMPILED, sanitizers)


def _open_timed(config: ChipConfig, options: dict[str, str]) -> Transport:
    values = options.get("values", COMPILED)
    if values not in TIMED_VALUES:
        raise EngineError(f"values={values}: with cycles=on values must be {' or '.join(TIMED_VALUES)}")
    check_exact(config)
    parsed = parse_options("model", config, {name: text for name, text in options.items() if name in VALID})
    return linked(TimedTransport(config, parsed, values == COMPILED), parsed.link)


def _default_values() -> str:
    if find_c_compiler():
        return COMPILED
    warnings.warn(
        f"engine model computes with numpy, some {NUMPY_IS_SLOWER} times slower than compiled, as there is no C "
        "compiler; install one, or say values=numpy",
        stacklevel=3,
    )
    return NUMPY
