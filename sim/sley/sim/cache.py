"""The folder of compiled engines: files named by a hash of everything they were made from, built once."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_dir


def cache_folder() -> Path:
    """Where generated Verilog and compiled engines are kept; the environment variable SLEY_CACHE moves it."""
    folder = os.environ.get("SLEY_CACHE")
    return Path(folder) if folder else Path(user_cache_dir("sley", appauthor=False))


def digest(*parts: str | bytes) -> str:
    """One name for all parts, in order."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()[:32]


def cached(kind: str, name: str, build: Callable[[Path, Path], None]) -> Path:
    """The file ``kind/name`` of the cache, made on first use.

    ``build(output, scratch)`` writes the file ``output``; ``scratch`` is an empty folder that is removed afterwards.
    The file appears under its name only when complete, and one process at a time builds it.
    """
    folder = cache_folder() / kind
    target = folder / name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{name}.lock"):
        if not target.exists():
            scratch = folder / f"building-{name}"
            shutil.rmtree(scratch, ignore_errors=True)  # of a builder that was killed; no other one holds the lock
            work = scratch / "work"
            work.mkdir(parents=True)
            try:
                build(scratch / name, work)
                (scratch / name).replace(target)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return target
