"""The part in C++, ``hooks.cpp``: compiled once for each release of PyTorch and of Python, kept in the cache."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

import torch
from filelock import FileLock

from sley.driver import BadRequest
from sley.runtime.cache import cache_folder

NAME = "sley_torch_hooks"
SOURCE = Path(__file__).with_name("hooks.cpp")
COMPILERS = "g++", "clang++", "c++"
FLAGS = "-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-w"
REMEDY = "Debian, Ubuntu: apt install g++ python3-dev; macOS: xcode-select --install"


class NoNativePart(BadRequest):
    """The part in C++ could not be built here; the message says why, and what to install."""


def load() -> ModuleType:
    """The module, which registers itself with PyTorch; compiles it if the cache does not have it, which takes some ten
    seconds. Raises ``NoNativePart``."""
    path = cache_folder() / "torch" / f"{_key()}{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not path.exists():
        _build(path)
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_loader(NAME, loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
    except ImportError as error:
        raise NoNativePart(f"{path} cannot be loaded: {error}. Remove it, so that it is compiled again") from None
    loader.exec_module(module)
    return module


def _key() -> str:
    parts = SOURCE.read_text(), torch.__version__, str(torch._C._GLIBCXX_USE_CXX11_ABI), *FLAGS
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _compiler() -> list[str]:
    """The command in CXX, else the first compiler that is installed. Raises ``NoNativePart``."""
    named = shlex.split(os.environ.get("CXX", ""))
    for command in [named] if named else [[name] for name in COMPILERS]:
        if shutil.which(command[0]):
            return command
    missing = f"CXX={named[0]} is not installed" if named else f"there is none of {', '.join(COMPILERS)}, none in CXX"
    raise NoNativePart(f"no C++ compiler: {missing}. Install one ({REMEDY})")


def _build(path: Path) -> None:
    """Compiles it to a file of its own, which gets its name when it is complete. Other processes wait for it."""
    compiler, headers = _compiler(), sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").exists():
        raise NoNativePart(f"no headers of Python in {headers}. Install them ({REMEDY})")
    home = Path(torch.__file__).parent
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(f"{path}.lock").acquire()
        folder = tempfile.TemporaryDirectory(dir=path.parent, prefix="building-")
    except OSError as error:
        raise NoNativePart(f"nothing can be written to {path.parent}: {error}. Set SLEY_CACHE to a folder") from None
    with held, folder as scratch:
        if path.exists():  # another process has compiled it meanwhile
            return
        print(
            "sley: compiling the part of the PyTorch device in C++, once, about 10 s ...", file=sys.stderr, flush=True
        )
        made = Path(scratch) / path.name
        libraries = ["-ltorch_python", "-ltorch_cpu", "-lc10"]
        includes = [f"-I{home / 'include'}", f"-I{headers}"]
        command = [*compiler, *FLAGS, *includes, str(SOURCE), f"-L{home / 'lib'}", *libraries, "-o", str(made)]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if result.returncode:
            tail = "\n".join(result.stderr.strip().splitlines()[-12:])
            raise NoNativePart(f"{compiler[0]} failed with exit status {result.returncode}:\n{tail}")
        made.replace(path)
