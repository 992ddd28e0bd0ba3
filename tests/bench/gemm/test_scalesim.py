"""SCALE-Sim as a peer: its report and formula, what is kept, what goes wrong."""

import shutil
import sys
from pathlib import Path

import pytest

from sley.abi.errors import SleyError
from sley.bench.gemm import scalesim
from sley.bench.gemm.scalesim import Array, Peer, ScaleSimError, environment, parse_report, peers

SIZES = [(64, 64, 64), (16, 16, 16), (24, 24, 24), (94, 1, 9), (128, 128, 128), (1, 256, 256), (256, 256, 256)]
REPORT = """\
LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, \
Compute Util %,
0, 3831, 1759, 0, 58.21489482660603, 100.0, 51.200000000000024,
1, 1125, 61, 0, 26.229508196721312, 100.0, 20.77922077922078,
2, 1399, 279, 0, 19.35483870967742, 56.25, 15.88235294117647,
3, 1193, 139, 0, 2.377473021582734, 3.515625, 2.132056451612903,
4, 21423, 11135, 0, 73.5698248765155, 100.0, 67.72486772486772,
5, 19626, 12031, 0, 2.1278364225750144, 100.0, 1.6129032258064515,
6, 117419, 77311, 0, 84.7693083778505, 100.0, 80.75709779179778,
"""
"""What SCALE-Sim 3.0.0 wrote about ``SIZES`` on a 16 x 16 array."""

ARRAY = Array(16, 16)


def test_recorded_report() -> None:
    cycles = parse_report(REPORT)
    assert cycles == [1760, 62, 280, 140, 11136, 12032, 77312]
    assert cycles == [ARRAY.formula(size) for size in SIZES]


def test_another_report() -> None:
    with pytest.raises(ScaleSimError, match="no column 'Total Cycles', but LayerID, Cycles"):
        parse_report("LayerID, Cycles,\n0, 17,\n")


def test_what_is_run_and_kept(scalesim_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert environment(scalesim_python, said.append) == scalesim_python
    monkeypatch.setattr(scalesim, "BATCH_CYCLES", 2100)  # 1760 + 280; then 62 + 140
    wanted = [SIZES[0], SIZES[2], SIZES[1], SIZES[0], SIZES[3], SIZES[6]]
    found = peers(scalesim_python, ARRAY, wanted, 2000, said.append)
    assert found == {size: Peer(ARRAY.formula(size), size != SIZES[6]) for size in wanted}
    assert said == ["SCALE-Sim 16x16: part 1 of 2, 2,040 cycles", "SCALE-Sim 16x16: part 2 of 2, 202 cycles"]
    monkeypatch.setattr(scalesim, "_run", lambda *_: pytest.fail("was run again"))
    assert peers(scalesim_python, ARRAY, wanted, 2000, said.append) == found
    assert not peers(scalesim_python, ARRAY, [SIZES[4]], 11135, said.append)[SIZES[4]].run
    with pytest.raises(pytest.fail.Exception, match="was run again"):
        peers(scalesim_python, ARRAY, [SIZES[4]], 11136, said.append)
    with pytest.raises(pytest.fail.Exception, match="was run again"):  # of another array nothing is known
        peers(scalesim_python, Array(32, 16), wanted, 2000, said.append)


def test_numbers_that_the_formula_does_not_explain(scalesim_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalesim, "_run", lambda python, array, sizes: dict.fromkeys(sizes, 62))
    with pytest.raises(ScaleSimError, match=r"took 62 cycles for \(24, 24, 24\), not 280"):
        peers(scalesim_python, ARRAY, [SIZES[1], SIZES[2]], 300, print)
    assert not scalesim._read_known(ARRAY)


def test_a_run_that_fails(scalesim_python: Path) -> None:
    with pytest.raises(ScaleSimError, match="SCALE-Sim failed: AssertionError: no such layer"):
        peers(scalesim_python, ARRAY, [(1, 666, 1)], 10_000, print)


def test_a_python_without_it(tmp_path: Path, scalesim_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ScaleSimError, match="is no Python: No such file"):
        environment(tmp_path / "python", print)
    metadata = tmp_path / "site" / "scalesim-3.0.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("3.0.0", "2.0.2"))
    with pytest.raises(ScaleSimError, match=r"has SCALE-Sim 2\.0\.2; the suite compares with version 3\.0\.0"):
        environment(scalesim_python, print)
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(ScaleSimError, match="has no SCALE-Sim"):
        environment(Path(sys.executable), print)


def test_an_installation_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    said: list[str] = []
    for _ in range(2):  # what was left half done does not count
        with pytest.raises(ScaleSimError, match="cannot be installed: exit code 1"):
            environment(None, said.append)
    assert len(said) == 2
    assert str(tmp_path / "scalesim" / "3.0.0-py3.") in said[0]


@pytest.mark.parametrize("below", [False, True])
def test_a_cache_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: bool) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setenv("SLEY_CACHE", str(file / "below" if below else file))
    message = "where nothing can be written" if below else "is a file; name a folder"
    for use in (lambda: environment(None, print), lambda: peers(Path(sys.executable), ARRAY, SIZES, 0, print)):
        with pytest.raises(SleyError, match=rf"SLEY_CACHE.*{message}"):
            use()
    assert file.read_text() == "mine"


def test_a_damaged_file_of_what_was_kept(tmp_path: Path, scalesim_python: Path) -> None:
    (tmp_path / "kept").mkdir()
    for damage in ("", "[[1, 2]]", "[1]", '{"a": 1}'):
        (tmp_path / "kept" / "3.0.0-16x16.json").write_text(damage)
        with pytest.raises(ScaleSimError, match=r"3\.0\.0-16x16\.json is no list of products .*: remove it"):
            peers(scalesim_python, ARRAY, [SIZES[1]], 300, print)


@pytest.mark.slow
def test_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ScaleSimError, match=r"cannot be installed: ERROR: .*scalesim"):
        environment(None, print)


@pytest.mark.campaign
def test_the_real_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    python = environment(None, print)
    assert environment(None, pytest.fail) == python
    for array in (ARRAY, Array(32, 16), Array(4, 4)):
        assert all(peer.run for peer in peers(python, array, SIZES[:6], 150_000, print).values())
