"""The cache: built once, complete or absent, one builder at a time."""

import threading
import time
from pathlib import Path

import pytest

from sley.sim.cache import cache_folder, cached, digest


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))


def test_digest_keeps_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", b"b") == digest("a", "b")


def test_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SLEY_CACHE")
    assert cache_folder().name == "sley"


def test_one_builder_at_a_time() -> None:
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


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(output: Path, scratch: Path) -> None:
        output.write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached("k", "y", fail)
    assert not list(tmp_path.rglob("y"))
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
