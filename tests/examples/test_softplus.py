"""A function of one's own: from its definition to a kernel, with nothing of Sley edited."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.back import verilog

from sley.sim.build.toolchain import find_c_compiler
from sley.sim.cocotb.runner import installed_simulators, run_bench

FOLDER = Path(__file__).parents[2] / "examples" / "softplus"

KERNEL = """
import sys
import numpy as np
from sley.abi import PRESETS, Chain, ElementType, Space, Unit
from sley.runtime import Device, KernelBuilder
from sley_softplus import SOFTPLUS, softplus

config = PRESETS["nano"].replace(name="own", vector_chains=1, vector_functions=("exp2", "softplus"))
with open("own.json", "w") as file:
    file.write(config.to_json())
x = np.linspace(-10, 10, 64, dtype=np.float32)
for engine in sys.argv[1:]:
    with Device.open(f"{engine}:own.json?memory=1M") as device:
        assert device.config.vector_functions == config.vector_functions
        k = KernelBuilder("softplus", device.config)
        source, target, rows = k.arg("source"), k.arg("target"), k.reg("rows", 16)
        loaded, done = k.semaphore("loaded"), k.semaphore("done")
        k.set(Unit.LOAD, run_bytes=16, mem_stride=16)
        k.load(source, 0, rows, space=Space.ACCUMULATOR, signal=loaded)
        chain = k.chain(Chain(function=SOFTPLUS))
        k.vector(0, 0, rows, chain=chain, dtype=ElementType.FP32, wait=loaded, signal=done)
        k.set(Unit.STORE, run_bytes=16, mem_stride=16)
        k.store(target, 0, rows, space=Space.ACCUMULATOR, wait=done)
        k.end()
        a, b = device.array(x), device.empty(64, np.float32)
        device.stream.launch(k.build(), [a, b])
        assert (b.numpy().view(np.uint32) == softplus(x.view(np.uint32))).all(), engine
print("equal")
"""

TILES = """
import sys
import numpy as np
from sley.abi import PRESETS
from sley.runtime import Device, tile
from sley.runtime.nn.mapping import in_fp32
from sley.runtime.nn.nonlinear import softplus_tile
from sley_softplus import softplus

def own(x):
    return tile.apply("softplus", x)

def made(x):
    return softplus_tile(x, 1.0)

config = PRESETS["base"].replace(name="own", vector_functions=("exp2", "log2", "softplus"))
with open("own.json", "w") as file:
    file.write(config.to_json())
x = np.linspace(-20, 20, 1001, dtype=np.float32)
for engine in sys.argv[1:]:
    with Device.open(f"{engine}:own.json?memory=1M") as device:
        a = device.array(x)
        found = in_fp32("softplus", own, a).numpy()
        assert (found.view(np.uint32) == softplus(x.view(np.uint32))).all(), engine
        assert np.abs(found - in_fp32("made", made, a).numpy()).max() < 2**-8
with Device.open("model:base?memory=1M") as device:
    try:
        in_fp32("softplus", own, device.array(x))
    except tile.TileError as error:
        assert "the chip base has no softplus" in str(error), error
        print("equal")
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the package is installed: its module, and what an installer writes of it."""
    facts = tmp_path / "sley_softplus-0.1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: sley-softplus\nVersion: 0.1.0\n")
    (facts / "entry_points.txt").write_text("[sley.functions]\nsoftplus = sley_softplus:SOFTPLUS\n")
    (tmp_path / "sley_softplus.py").write_text((FOLDER / "sley_softplus.py").read_text())
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")
def test_in_tiles(installed: dict[str, str], tmp_path: Path) -> None:
    """A kernel of tiles with the function, which chips without it refuse."""
    script = tmp_path / "tiles.py"
    script.write_text(TILES)
    result = subprocess.run(
        [sys.executable, script, "model"], cwd=tmp_path, env=installed, capture_output=True, text=True, timeout=600
    )
    assert result.stdout == "equal\n", result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")
def test_in_a_kernel(installed: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", KERNEL, "model", "fast"]
    result = subprocess.run(command, cwd=tmp_path, env=installed, capture_output=True, text=True, timeout=600)
    assert result.stdout == "equal\n", result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")
def test_in_a_network(installed: dict[str, str]) -> None:
    """The study of an operation of one's own, in a small form: its unit takes fewer cycles."""
    pytest.importorskip("onnx")
    command = [sys.executable, "-m", "sley.runtime.cli", "study", "run", "own-operation", "--small"]
    result = subprocess.run(command, env=installed, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    made, own = (
        re.findall(r"[\d,]+", line) for line in result.stdout.splitlines() if re.search(r"(base|unit) +│ +64", line)
    )
    assert int(own[1].replace(",", "")) < int(made[1].replace(",", "")), result.stdout


def test_cocotb_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulators = installed_simulators()
    if not simulators:
        pytest.skip("no simulator for cocotb")
    monkeypatch.syspath_prepend(FOLDER)
    from sley_softplus import Softplus

    source = tmp_path / "softplus.v"
    source.write_text(verilog.convert(Softplus(), name="softplus", strip_internal_attrs=True))
    run_bench([source], "softplus_bench", tmp_path / "build", simulators[0], top="softplus")
