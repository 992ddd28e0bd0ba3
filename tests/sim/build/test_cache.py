"""The cache: built once, complete or absent, one builder at a time, within its limit."""

import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from sley.abi.transport import EngineError
from sley.driver.hardware.engines import open_transport
from sley.sim.build.cache import DEFAULT_LIMIT, cache_folder, cache_limit, cached, clear, digest, entries
from sley.sim.build.toolchain import find_c_compiler


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    monkeypatch.delenv("SLEY_CACHE_LIMIT", raising=False)


def write(size: int) -> Callable[[Path, Path], None]:
    return lambda output, scratch: output.write_bytes(bytes(size)) and None


def entry(name: str, size: int = 1000, age: int = 0, kind: str = "k") -> Path:
    """An entry of ``size`` bytes that was used ``age`` seconds ago, in a cache without limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLEY_CACHE_LIMIT", "0")
        path = cached(kind, name, write(size))
    os.utime(path, (time.time() - age,) * 2)
    return path


def names() -> list[str]:
    return [entry.path.name for entry in entries()]


def litter(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.suffix == ".lock" or path.name.startswith("building-")]


def test_digest_keeps_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", b"b") == digest("a", "b")


def test_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SLEY_CACHE")
    assert cache_folder().name == "sley"


def test_one_builder_at_a_time(tmp_path: Path) -> None:
    calls = []

    def build(output: Path, scratch: Path) -> None:
        calls.append(scratch)
        (scratch / "part").touch()
        time.sleep(0.2)
        output.write_text("done")

    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(cached("k", "x", build).read_text())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["done"] * 4
    assert len(calls) == 1
    assert not calls[0].exists()
    assert not litter(tmp_path)


def test_many_processes_build_once(tmp_path: Path) -> None:
    program = """
import sys, time
from sley.sim.build.cache import cached
def build(output, scratch):
    with open(sys.argv[1], "a") as log:
        log.write(output.name + "\\n")
    time.sleep(0.02)
    output.write_bytes(bytes(100))
for i in range(12):
    assert cached("k", f"{i}", build).stat().st_size == 100
"""
    log = tmp_path / "log"
    command = [sys.executable, "-c", program, str(log)]
    for process in [subprocess.Popen(command) for _ in range(3)]:
        assert process.wait() == 0
    assert sorted(log.read_text().split(), key=int) == [str(i) for i in range(12)]
    assert not litter(tmp_path)


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(output: Path, scratch: Path) -> None:
        output.write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached("k", "y", fail)
    assert not list(tmp_path.rglob("y"))
    assert not litter(tmp_path)
    assert cached("k", "y", lambda output, scratch: output.touch() and None).exists()


def test_rest_of_a_killed_builder_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "k" / "building-z" / "work" / "half"
    left.parent.mkdir(parents=True)
    left.touch()

    def build(output: Path, scratch: Path) -> None:
        assert not list(scratch.iterdir())
        output.touch()

    assert cached("k", "z", build).exists()
    assert not (tmp_path / "k" / "building-z").exists()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, DEFAULT_LIMIT),
        ("", DEFAULT_LIMIT),
        ("0", None),
        ("0G", None),
        ("1", 1),
        (" 12345 ", 12345),
        ("3k", 3 << 10),
        ("500M", 500 << 20),
        ("4G", 4 << 30),
    ],
)
def test_limit(text: str | None, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DEFAULT_LIMIT == 2 << 30
    if text is not None:
        monkeypatch.setenv("SLEY_CACHE_LIMIT", text)
    assert cache_limit() == limit


@pytest.mark.parametrize("text", ["lots", "-1", "1.5G", "4GB", "G", "4 G", "0x10", "٣"])
def test_bad_limit(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE_LIMIT", text)
    with pytest.raises(EngineError, match=f"SLEY_CACHE_LIMIT={text} is no size; .* such as 500M or 4G"):
        cached("k", "x", lambda output, scratch: pytest.fail("built first"))


def test_least_recently_used_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in (30, "c"), (50, "a"), (40, "b"), (20, "d"):
        entry(name, age=age, kind=f"kind-{name}")
    assert names() == ["a", "b", "c", "d"]
    cached("kind-a", "a", write(0))
    assert names() == ["b", "c", "d", "a"]
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "3500")
    cached("k", "new", write(1000))
    assert names() == ["d", "a", "new"]
    cached("k", "newer", write(500))
    assert names() == ["d", "a", "new", "newer"]


def test_nothing_goes_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        entry(name, age=1_000_000)
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1")
    cached("k", "a", write(0))
    assert len(names()) == 2, "a hit removes nothing"

    def broken(output: Path, scratch: Path) -> None:
        raise RuntimeError("the compiler failed")

    with pytest.raises(RuntimeError, match="the compiler failed"):
        cached("k", "c", broken)
    assert len(names()) == 2, "a failed build removes nothing"
    for limit in ("3K", "0", None):
        if limit is None:
            monkeypatch.delenv("SLEY_CACHE_LIMIT")
        else:
            monkeypatch.setenv("SLEY_CACHE_LIMIT", limit)
        cached("k", f"c{limit}", write(10))
    assert len(names()) == 5


def test_the_built_entry_and_its_siblings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    entry("old.so", age=10)
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1500")
    cached("k", "new.so", write(2000))
    time.sleep(0.02)
    assert names() == ["new.so"]
    cached("k", "new.pickle", write(2000))
    assert names() == ["new.so", "new.pickle"]
    cached("other", "new.so", write(2000))
    assert [entry.kind for entry in entries()] == ["other"]


def test_a_copied_file_counts_as_new() -> None:
    entry("x", age=10)

    def build(output: Path, scratch: Path) -> None:
        output.touch()
        os.utime(output, (0, 0))

    cached("k", "y", build)
    assert names() == ["x", "y"]


def test_an_entry_being_built_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        entry(name, age=10)
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1")
    with FileLock(tmp_path / "k" / "a.lock"):
        cached("k", "new", write(10))
        assert names() == ["a", "new"]
        assert clear().busy == ("k/a",)
        assert names() == ["a"]


def test_what_a_running_build_took_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that asks for other entries, in threads too, as that of the rtl engine does."""
    entry("old", age=10)
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1")

    def build(output: Path, scratch: Path) -> None:
        cached("part", "0", write(1000))
        worker = threading.Thread(target=lambda: [cached("part", f"{i}", write(1000)) for i in range(1, 4)])
        worker.start()
        worker.join()
        assert sorted(names()) == ["0", "1", "2", "3"]
        output.touch()

    cached("k", "whole", build)
    assert names() == ["whole"]


def test_rests_are_removed_after_any_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry("x")
    half = tmp_path / "k" / "building-killed" / "work" / "half"
    half.parent.mkdir(parents=True)
    half.write_bytes(bytes(5000))
    (tmp_path / "k" / "killed.lock").touch()
    (tmp_path / "k" / "x.lock").touch()
    entry("y", kind="other")
    assert not litter(tmp_path)
    assert sorted(names()) == ["x", "y"]


def test_a_read_only_cache_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    path = entry("x", age=100)
    before = path.stat().st_mtime

    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(os, "utime", refuse)
    assert cached("k", "x", lambda output, scratch: pytest.fail("built again")) == path
    assert path.stat().st_mtime == before


def test_an_entry_that_cannot_be_removed_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in (30, "a"), (20, "b"):
        entry(name, age=age)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "a":
            raise PermissionError(13, "not yours", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1")
    cached("k", "new", write(10))
    assert names() == ["a", "new"]
    with pytest.raises(PermissionError, match="not yours"):
        clear()


def test_files_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SLEY_CACHE may name a folder with other things in it, even one called as a kind is."""
    (tmp_path / "k").mkdir()
    (tmp_path / "tagged").mkdir()
    theirs = [tmp_path / "file", tmp_path / "k" / "thesis", tmp_path / "k" / "a.lock", tmp_path / "tagged" / "thing"]
    for path in theirs:
        path.write_bytes(bytes(1000))
    (tmp_path / "tagged" / "CACHEDIR.TAG").write_text(
        "Signature: 8a477f597d28d172789f06886806bc55\n# of another program"
    )
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1")
    cached("k", "x", write(10))
    cached("ours", "x", write(10))
    assert clear().entries == 1
    assert all(path.exists() for path in theirs)


def test_clear(tmp_path: Path) -> None:
    assert clear().entries == 0
    entry("a", 1000, kind="one")
    entry("b", 200, kind="two")
    entry("c", 30, kind="two")
    half = tmp_path / "two" / "building-d" / "half"
    half.parent.mkdir()
    half.write_bytes(bytes(4))
    done = clear("two")
    assert (done.entries, done.bytes, done.busy) == (2, 234, ())
    assert names() == ["a"]
    done = clear()
    assert (done.entries, done.bytes) == (1, 1000)
    assert not litter(tmp_path)
    assert entry("a", kind="one").exists()


def test_the_folder_may_be_deleted(tmp_path: Path) -> None:
    entry("a")
    shutil.rmtree(tmp_path)
    assert entries() == []
    assert entry("a").exists()


@pytest.mark.skipif(sys.platform == "win32" or find_c_compiler() is None, reason="no C compiler")
def test_a_library_in_use_may_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_c_compiler()
    assert compiler is not None

    def build(output: Path, scratch: Path) -> None:
        (scratch / "a.c").write_text("int seven(void) { return 7; }\n")
        compiler.run("-O2", "-shared", *compiler.flags, "a.c", "-o", output, folder=scratch)

    path = cached("k", "a.so", build)
    library = ctypes.CDLL(str(path))
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "1")
    cached("k", "b", write(10))
    assert not path.exists()
    assert library.seven() == 7


@pytest.mark.parametrize("engine", ["fast", "rtl"])
def test_a_cache_that_is_a_file(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines that compile say so; the others keep nothing there."""
    file = tmp_path / "file"
    file.write_text("mine")
    for folder, message in (
        (file, rf"SLEY_CACHE={file} is a file; name a folder"),
        (file / "below", rf"SLEY_CACHE is {file}/below, .*written.*set SLEY_CACHE to a folder"),
    ):
        monkeypatch.setenv("SLEY_CACHE", str(folder))
        with pytest.raises(EngineError, match=message):
            open_transport(f"{engine}:nano")
        for other in ("model:nano?values=numpy", "pysim:nano"):
            open_transport(other)
    assert file.read_text() == "mine"


def test_a_cache_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = cached("k", "known", write(10))
    monkeypatch.setattr("os.access", lambda path, mode: False)  # the superuser may write everywhere
    assert cached("k", "known", write(10)) == known
    with pytest.raises(EngineError, match=rf"SLEY_CACHE is {tmp_path}, .*\(Permission denied\)"):
        cached("k", "new", write(10))
    monkeypatch.delenv("SLEY_CACHE")
    monkeypatch.setattr("sley.sim.build.cache.user_cache_dir", lambda *args, **named: str(tmp_path))
    with pytest.raises(EngineError, match=rf"the cache folder is {tmp_path}, where nothing can be written"):
        cached("k", "new", write(10))
