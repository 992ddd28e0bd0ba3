"""The folder of compiled engines: files named by a hash of everything they were made from, built once.

Every kind of entry has a folder of its own with single files in it. After a build the entries that were not used for
the longest time are removed until the rest keeps the limit. A library that some process has mapped may go: on Linux
and macOS the mapping outlives the name.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_dir

from sley.abi.cache import unusable
from sley.abi.sizes import parse_size
from sley.abi.transport import EngineError

DEFAULT_LIMIT = 2 << 30
"""Bytes that the entries may take together after a build, unless SLEY_CACHE_LIMIT says otherwise."""

TAG = "CACHEDIR.TAG"
TAG_TEXT = """Signature: 8a477f597d28d172789f06886806bc55
# Made by sley, which removes files from this folder. Backup programs skip folders with this tag.
"""
LOCK, BUILDING = ".lock", "building-"


def cache_folder() -> Path:
    """Where generated Verilog and compiled engines are kept; the environment variable SLEY_CACHE moves it. Raises
    ``EngineError`` if that names a file."""
    folder = os.environ.get("SLEY_CACHE")
    if folder and Path(folder).is_file():
        raise EngineError(f"SLEY_CACHE={folder} is a file; name a folder, which need not exist, or unset the variable")
    return Path(folder) if folder else Path(user_cache_dir("sley", appauthor=False))


def cache_limit() -> int | None:
    """Bytes that the cache may hold, from the environment variable SLEY_CACHE_LIMIT; None when it says 0: no limit."""
    text = os.environ.get("SLEY_CACHE_LIMIT", "").strip()
    if not text:
        return DEFAULT_LIMIT
    try:
        return parse_size(text) or None
    except ValueError:
        raise EngineError(
            f"SLEY_CACHE_LIMIT={text} is no size; write bytes, or a whole number with K, M or G, such as 500M or 4G "
            "(0: no limit)"
        ) from None


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
    Raises ``EngineError`` where the cache cannot be written.

    The file appears under its name only when complete, and one process at a time builds it. Then the cache is cut to
    its limit. That spares this entry, its siblings (same name, another suffix), entries being built, and all that was
    used since the oldest of the builds that run now began, for such a build may have taken it.
    """
    limit = cache_limit()
    folder = cache_folder() / kind
    target = folder / name
    if _use(target):
        return target
    try:
        _make_folder(folder)
    except OSError as error:
        raise EngineError(unusable(cache_folder(), error)) from None
    with _locked(target):
        if _use(target):
            return target
        scratch = _scratch(target)
        shutil.rmtree(scratch, ignore_errors=True)  # of a builder that was killed; no other one holds the lock
        work = scratch / "work"
        work.mkdir(parents=True)
        (scratch / "started").touch()
        build(scratch / name, work)
        (scratch / name).replace(target)
        _use(target)  # the builder may have copied an old file with its time
    with suppress(OSError):  # the entry is there: that others cannot be removed is no reason to fail
        _trim(limit, target)
    return target


def known(kind: str, name: str) -> bool:
    """Whether the cache has the file ``kind/name``."""
    return (cache_folder() / kind / name).exists()


@dataclass(frozen=True)
class Entry:
    """A file of the cache: ``size`` in bytes, ``used`` in seconds since 1970, when it was built or asked for last."""

    kind: str
    path: Path
    size: int
    used: float


def entries() -> list[Entry]:
    """All complete entries, the one not used for the longest time first."""
    found = []
    for folder in _kind_folders():
        for path in folder.iterdir():
            if path.name != TAG and path.suffix != LOCK:
                with suppress(FileNotFoundError):  # another process removed it
                    if path.is_file():
                        stat = path.stat()
                        found.append(Entry(folder.name, path, stat.st_size, stat.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.path))


@dataclass(frozen=True)
class Cleared:
    """What ``clear`` did: ``entries`` removed, ``bytes`` freed; ``busy`` are left because they are being built."""

    entries: int
    bytes: int
    busy: tuple[str, ...]


def clear(kind: str | None = None) -> Cleared:
    """Removes all entries, or those of one kind, and what killed builds left."""
    count, freed, busy = 0, 0, []
    for folder in _kind_folders():
        if kind in (None, folder.name):
            leftovers, running = _sweep(folder)
            freed += leftovers
            busy += [f"{folder.name}/{path.name}" for path in running]
    for entry in entries():
        if kind in (None, entry.kind) and _remove(entry):
            count, freed = count + 1, freed + entry.size
    return Cleared(count, freed, tuple(busy))


def _use(path: Path) -> bool:
    """Whether the entry exists; if so, it counts as used now. In a read-only cache it keeps its time."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:
        return path.exists()
    return True


def _make_folder(folder: Path) -> None:
    """The folder of a kind. Only a folder made here is tagged, and nothing is ever removed from one without tag."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir()
        (folder / TAG).write_text(TAG_TEXT)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _kind_folders() -> list[Path]:
    """Folders of the cache that it may remove files from: SLEY_CACHE may name a folder with other things in it."""
    return [tag.parent for tag in sorted(cache_folder().glob(f"*/{TAG}")) if tag.read_text("latin-1") == TAG_TEXT]


def _scratch(entry: Path) -> Path:
    return entry.with_name(BUILDING + entry.name)


@contextmanager
def _locked(entry: Path, wait: bool = True) -> Iterator[None]:
    """Holds the entry's lock; without ``wait`` raises ``TimeoutError`` if it is held. Afterwards lock and scratch go.

    The lock file is removed while it is held: who waits for it finds out (filelock compares) and makes a new one.
    """
    lock = entry.with_name(entry.name + LOCK)
    with FileLock(lock, blocking=wait):
        try:
            yield
        finally:
            shutil.rmtree(_scratch(entry), ignore_errors=True)
            with suppress(OSError):  # Windows removes no open file; the next sweep does
                lock.unlink()


def _remove(entry: Entry) -> bool:
    """Removes the entry, unless its lock is held, it was used in the meantime, or it is gone already."""
    try:
        with _locked(entry.path, wait=False):
            if entry.path.stat().st_mtime > entry.used:
                return False
            entry.path.unlink()
    except (TimeoutError, FileNotFoundError):
        return False
    return True


def _sweep(folder: Path) -> tuple[int, list[Path]]:
    """Removes locks and scratch folders of killed builds. Bytes freed, and the entries that are being built."""
    freed, running = 0, []
    names = {path.name.removeprefix(BUILDING) for path in folder.glob(f"{BUILDING}*")}
    names |= {path.name.removesuffix(LOCK) for path in folder.glob(f"*{LOCK}")}
    for entry in sorted(folder / name for name in names):
        try:
            with suppress(PermissionError), _locked(entry, wait=False):
                freed += sum(path.lstat().st_size for path in _scratch(entry).rglob("*") if path.is_file())
        except TimeoutError:
            running.append(entry)
    return freed, running


def _trim(limit: int | None, built: Path) -> None:
    """Removes what was not used for the longest time until the cache keeps its limit; never what is in use."""
    running = [entry for folder in _kind_folders() for entry in _sweep(folder)[1]]
    if limit is None:
        return
    oldest = float("inf")
    for entry in running:
        with suppress(OSError):
            oldest = min(oldest, (_scratch(entry) / "started").stat().st_mtime)
    found = entries()
    excess = sum(entry.size for entry in found) - limit
    for candidate in found:
        if excess <= 0 or candidate.used >= oldest:
            return
        with suppress(PermissionError):
            if candidate.path.with_suffix("") != built.with_suffix("") and _remove(candidate):
                excess -= candidate.size
