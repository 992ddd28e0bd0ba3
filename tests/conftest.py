"""Fixtures that tests of several layers share."""

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from sley.fpga.toolchain import TOOLS, prepared
from sley.hw.testing.streams import compiled
from sley.runtime import blas
from sley.runtime.buffer import BF16, Buffer
from sley.runtime.device import Device
from sley.sim.testing.product import Product

GARBAGE = (100_000, 50, 100)
"""Objects and rounds between searches for garbage. A design is some 100,000 objects that stay; with Python's own 700,
10 and 10 a fifth of the time of tests that simulate goes into looking at them again and again."""


def pytest_configure(config: pytest.Config) -> None:
    """Workers do not compile the tools all at once."""
    gc.set_threshold(*GARBAGE)
    if config.getoption("numprocesses", None):
        for tool in TOOLS:
            prepared(tool)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with long tests go first, so that no worker is left with one at the end. A campaign in a file of slow
    tests is none of them."""
    if config.option.markexpr == "slow":
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The coverage that tests have closed."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    rows = [value for report in reports for name, value in report.user_properties if name == "coverage"]
    if rows:
        table = Table("block", "bins", "fewest hits", "of", title="Functional coverage")
        for block, bins, hits, which in sorted(rows):
            table.add_row(block, str(bins), str(hits), which)
        terminalreporter.section("functional coverage")
        Console(file=terminalreporter._tw._file, width=120).print(table)


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    """For a test that changes what designs are made of: it uses none compiled before, and leaves none."""
    compiled.cache_clear()
    yield
    compiled.cache_clear()


@pytest.fixture
def put() -> Callable[[Device, np.ndarray], Buffer]:
    """Bit patterns on the device, as the type they stand for."""

    def array(device: Device, bits: np.ndarray) -> Buffer:
        return device.array(
            bits.view({np.dtype(np.uint16): BF16, np.dtype(np.uint32): np.float32}.get(bits.dtype, bits.dtype))
        )

    return array


@pytest.fixture
def check(put: Callable[[Device, np.ndarray], Buffer]) -> Callable[[Device, Product], None]:
    """One product by ``blas.gemm``, bit by bit; what lies behind the result stays untouched."""

    def run(device: Device, case: Product) -> None:
        expected = case.expected
        out = put(device, np.zeros_like(expected) if case.c is None else case.c)
        memory, behind, slack = device.context.space, out.address + out.nbytes, -out.nbytes % 64
        memory.write(behind, b"Z" * slack)
        blas.gemm(
            put(device, case.a),
            put(device, case.b),
            None if case.bias is None else put(device, case.bias),
            case.scale,
            case.relu,
            beta=case.beta,
            trans_a=case.trans_a,
            trans_b=case.trans_b,
            out=out,
        )
        np.testing.assert_array_equal(out.numpy().view(expected.dtype), expected, err_msg=str(case))
        assert memory.read(behind, slack) == b"Z" * slack, case

    return run
