"""``sley bench gemm``, ``suite`` and ``tune``: they refuse what ``blas.gemm`` refuses, and show no count that an engine
does not have."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sley.bench.gemm.measure import bench_problem, measure_gemm, require_cycles
from sley.driver import NoCycleCounts, OutOfDeviceMemory
from sley.runtime import Device, UnsupportedType
from sley.runtime.cli import app

NANO, BASE = "model:nano?memory=1M&values=numpy", "model:base?memory=1M&values=numpy"
"""Nothing is compiled, and so nothing is said of it."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        (NANO, "--dtype bf16", "the operands are bfloat16; the chip nano multiplies int8 only: convert them"),
        (NANO, "--result bfloat16", "the result is bfloat16; the chip nano has no bf16: ask for float32"),
        (BASE, "--dtype bf16 --result int32", "the result is int32; only sums of int8 without a scale are"),
        (BASE, "-k 131072", "K is 131072; above 131071 int32 sums could wrap: split K and add the parts"),
        (BASE, "-m 99999999999999999999", "99999999999999999999 x 8 x 8 needs 4,000,000,000,000,000,065,"),
        (BASE, "--batch 100000", "8 x 8 x 8 needs 38,465,536 bytes of device memory, and 7"),
    ],
)
def test_products_that_are_refused(engine: str, options: str, message: str) -> None:
    result = run("bench", "gemm", "-e", engine, "-m", "8", "-n", "8", "-k", "8", *options.split())
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {message}"), result.stderr
    assert result.stdout == ""


def test_the_model_shows_no_cycles() -> None:
    result = run("bench", "gemm", "-e", BASE, "-m", "8", "-n", "8", "-k", "8")
    assert result.exit_code == 0
    for made_up in ("doorbell to fence", "cycles / lower bound", "share of peak", "OPERANDS"):
        assert made_up not in result.stdout
    assert "in runs of Load" in result.stdout
    assert result.stderr == "The result is right. This engine counts work and no cycles; take fast, rtl or pysim.\n"


@pytest.mark.parametrize("command", [("bench", "suite"), ("tune", "8", "8", "8")])
def test_commands_that_need_cycles(command: tuple[str, ...]) -> None:
    result = run(*command, "-e", NANO)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no cycles were counted: the engine model has none.")
    with Device.open(NANO) as device, pytest.raises(NoCycleCounts):
        require_cycles(device)


@pytest.mark.usefixtures("cycles_for_all")
def test_suite_and_tune_refuse_the_same(tmp_path: Path) -> None:
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("family,layer,M,N,K,count\nmine,one,1,1,131072,1\n")
    for result in (
        run("bench", "suite", "-e", NANO, "--shapes", str(shapes)),
        run("tune", "1", "1", "131072", "-e", NANO),
    ):
        assert result.exit_code == 1
        assert "error: K is 131072; above 131071" in result.stderr
    for result in (
        run("bench", "suite", "-e", NANO, "--dtype", "bf16"),
        run("tune", "8", "8", "8", "-e", NANO, "--dtype", "bf16"),
    ):
        assert result.exit_code == 1
        assert "error: the operands are bfloat16; the chip nano" in result.stderr
    result = run("tune", "3000", "3000", "1", "-e", NANO)
    assert (result.exit_code, "needs 36,071,536 bytes of device memory" in result.stderr) == (1, True)


def test_measuring_refuses_before_it_makes_operands() -> None:
    with Device.open(NANO) as device:
        with pytest.raises(UnsupportedType):
            measure_gemm(device, bench_problem((8, 8, 8), "bf16"))
        with pytest.raises(OutOfDeviceMemory):
            measure_gemm(device, bench_problem((1 << 40, 1 << 40, 8)))
        assert measure_gemm(device, bench_problem((8, 8, 8)), counted=True).needed.macs == 512
