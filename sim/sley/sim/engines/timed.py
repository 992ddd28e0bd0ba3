"""A chip of twins as a transport: the cycles of the gateware, and the values of the compiled model."""

import ctypes
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.packets import PACKET_BYTES
from sley.abi.transport import EngineError
from sley.sim.engines.library import LibraryTransport
from sley.sim.engines.options import EngineOptions
from sley.sim.memory import dram
from sley.sim.model.compiled.header import header
from sley.sim.model.compiled.library import CompiledModel, build
from sley.sim.model.cycles import twins
from sley.sim.model.timed import wiring as timed

MAIN = Path(str(timed.__file__)).with_name("timed.c")
INCLUDES = (Path(__file__).parent, *(Path(str(module.__file__)).parent for module in (twins, dram)))
_POINTER = ctypes.c_void_p
_FUNCTIONS = (
    "core_enter",
    "core_execute",
    "core_scrub",
    "core_word",
    "memory_copy",
    "memory_fill",
    "memory_root",
    "memory_invalidate",
)


def check_exact(config: ChipConfig) -> None:
    """Raises ``EngineError`` for a chip of which some block has no exact twin."""
    if config.bus_bytes > PACKET_BYTES:
        raise EngineError(
            f"cycles=on with bus_bytes={config.bus_bytes}: twins know buses of up to {PACKET_BYTES} bytes; "
            "leave cycles=on out, or use engine fast"
        )


class TimedTransport(LibraryTransport):
    """A device that takes the same cycles as on engine ``fast``, and counts the same. ``computes``: whether it computes
    values, too.

    Parameters
    ----------
    config, options
        The chip, and the engine's options.
    values
        Whether what programs compute is computed. Without, memory holds only what the host and fences write.
    repeats
        Whether passages of a program that come again are left out, without values; ``repeated`` says how much that is.
    """

    def __init__(self, config: ChipConfig, options: EngineOptions, values: bool = True, repeats: bool = True) -> None:
        self._model: CompiledModel | None = None
        self._cores: list[int] = []
        self.computes = values
        generated = {"abi.h": header(config), "wiring.h": timed.wiring(config)}
        super().__init__(build(MAIN, generated, includes=INCLUDES), options)
        if values:
            self._compute(config)
        elif repeats:
            self._library.sley_repeat(_POINTER(self._sim))

    @property
    def repeated(self) -> tuple[int, int, int]:
        """Cycles left out because they came again; moments that were compared; those of them that had been before."""
        counts = (ctypes.c_uint64 * 3)()
        self._library.sley_repeated(_POINTER(self._open()), counts)
        return counts[0], counts[1], counts[2]

    def _compute(self, config: ChipConfig) -> None:
        """Connects the compiled model, whose memory is that of the device."""
        self._model = model = CompiledModel(config)
        self._shared = model.call.memory_create(self.memory.ctypes.data, self._memory_bytes)
        self._cores = [model.call.core_create(self._shared, model.own) for _ in range(config.cores)]
        if not (self._shared and all(self._cores)):
            raise MemoryError("the compiled model has no memory for its cores")
        calls = [ctypes.cast(getattr(model.call, name), _POINTER).value for name in _FUNCTIONS]
        table = (_POINTER * (len(calls) + 1 + config.cores))(*calls, self._shared, *self._cores)
        self._library.sley_values(_POINTER(self._sim), table)

    def close(self) -> None:
        super().close()
        if self._model is not None:
            for core in self._cores:
                self._model.call.core_destroy(core)
            self._model.call.memory_destroy(self._shared)
            self._model = None
