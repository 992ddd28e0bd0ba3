"""The compiled model of a chip as a shared library, built on first use."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.vector.chains import function_of
from sley.sim.build.cache import cached, digest
from sley.sim.build.progress import Step, progress
from sley.sim.build.sources import Sources
from sley.sim.build.toolchain import CCompiler, cpu_features
from sley.sim.fast.run.tier import AUTO, FIRST, chosen
from sley.sim.golden.chain import apply_function
from sley.sim.model.compiled.header import header

FOLDER = Path(__file__).parent
MAIN = FOLDER / "model.c"
FLAGS = ("-O3", "-std=gnu11", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
SOON_DONE = ("-O1",)
"""For the tier ``first``, and for benches: a third of the time to compile."""
HANDLE, U32, U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
SECONDS = 5e-5
"""Of the compiler for a byte of C."""

OWN_FUNCTION: Callable[..., Any] = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_uint32), ctypes.c_int64)


SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "memory_create": (HANDLE, [HANDLE, U64]),
    "memory_root": (None, [HANDLE, U32, U32, U32]),
    "memory_invalidate": (None, [HANDLE, U32]),
    "memory_destroy": (None, [HANDLE]),
    "core_create": (HANDLE, [HANDLE, OWN_FUNCTION]),
    "core_destroy": (None, [HANDLE]),
    "core_scrub": (None, [HANDLE]),
    "core_stop": (None, [HANDLE]),
    "core_begin": (None, [HANDLE, U32, ctypes.c_char_p, U32, ctypes.POINTER(U32)]),
    "core_run": (U64, [HANDLE, U64]),
    "core_weights": (HANDLE, [HANDLE]),
    "core_waiting": (U32, [HANDLE, U32]),
    "core_signalling": (U32, [HANDLE, U32]),
}
SANITIZED: dict[str, tuple[Any, list[Any]]] = {
    "core_sanitizer": (HANDLE, [HANDLE]),
    "core_stuck": (None, [HANDLE]),
    "core_block": (None, [HANDLE, U32, U32]),
    "memory_mark": (None, [HANDLE, U64, U64, U32, U32]),
    "memory_copied": (None, [HANDLE, U64, U64, U64]),
    "memory_usable": (U64, [HANDLE, U64, U64]),
}
"""Results and arguments of the functions."""


class CompiledModel:
    """The functions of ``model.c`` for a chip; ``call`` is the library. Raises ``BuildError`` without a C compiler.

    Parameters: ``sanitized``: with what sanitizers need, which is another library.
    """

    def __init__(self, config: ChipConfig, sanitized: bool = False) -> None:
        self.call = _load(build(MAIN, {"abi.h": header(config)}, ("-DSANITIZE",) if sanitized else ()))
        if sanitized:
            _declare(self.call, SANITIZED)
        self.own = OWN_FUNCTION(_own_function)


def build(
    main: Path, generated: Mapping[str, str], options: tuple[str, ...] = (), includes: Sequence[Path] = ()
) -> Path:
    """The shared library of a C file, which may include the headers beside it, those in ``includes``, those here, and
    ``generated`` ones, by name. ``options``: of the compiler, behind the usual ones."""
    folders = [*includes, FOLDER]
    headers = sorted({*main.parent.rglob("*.h"), *(path for folder in folders for path in folder.rglob("*.h"))})
    compiler, sources = CCompiler.find(), Sources(lambda: (main, *headers))
    tier = SOON_DONE if chosen(AUTO) == FIRST else ()
    flags = (*FLAGS, *tier, *options, *compiler.flags)
    key = digest(*compiler.command, compiler.version, *flags, cpu_features(), *generated.values(), sources.digest)

    def compile_all(output: Path, scratch: Path) -> None:
        for name, text in generated.items():
            (scratch / name).write_text(text)
        paths = [argument for folder in (scratch, *folders) for argument in ("-I", folder)]
        size = sum(map(len, generated.values()))
        with progress("Compiling the model (once for this chip)", Step("model", size, SECONDS)):
            compiler.run(*flags, *paths, main, "-o", output, folder=scratch)
        sources.check()

    return cached("model", f"{key}.so", compile_all)


def _own_function(code: int, words: Any, count: int) -> None:
    """A function of a package, in place."""
    x = np.ctypeslib.as_array(words, (count,))
    x[:] = apply_function(function_of(code), x.copy())


def _load(path: Path) -> ctypes.CDLL:
    """The library with the types of its functions."""
    library = ctypes.CDLL(str(path))
    _declare(library, SIGNATURES)
    return library


def _declare(library: ctypes.CDLL, signatures: dict[str, tuple[Any, list[Any]]]) -> None:
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
