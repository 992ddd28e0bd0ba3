"""Fixtures that tests of several layers share."""

import atexit
import gc
import math
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from rich.console import Console
from rich.table import Table

from sley.abi.install import extra
from sley.fpga.flow.toolchain import TOOLS, prepared
from sley.hw.elaboration.widths import remember_widths
from sley.hw.testing.streams import WATCHES, compiled
from sley.runtime import blas
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.sim.model.cycles import twins
from sley.sim.testing.product import Product

HELPERS = [path for path in Path(__file__).parent.rglob("*.py") if not path.stem.startswith(("test_", "conftest"))]
"""Benches and models that tests share: importable by name, with assertions that explain themselves."""

sys.path += sorted({str(path.parent) for path in HELPERS})
pytest.register_assert_rewrite(*(path.stem for path in HELPERS))

EXTRAS = {
    "onnx": ("onnx", "tests of ONNX models"),
    "torch": ("torch", "tests of PyTorch models"),
    "quant": ("torchao", "tests of PyTorch's quantisation"),
    "triton": ("triton", "tests of Triton's own compiler"),
    "chat": ("gguf", "tests of files of language models"),
    "explore": ("optuna", "tests of guided searches, of Dask and of pictures"),
}
"""Extras that the extra ``test`` does not bring; a package of each, and the tests that need it."""
GARBAGE = (100_000, 50, 100)
"""Objects and rounds between searches for garbage. A design is some 100,000 objects that stay; with Python's own 700,
10 and 10 a fifth of the time of tests that simulate goes into looking at them again and again."""


def pytest_configure(config: pytest.Config) -> None:
    """Workers do not compile the tools all at once."""
    gc.set_threshold(*GARBAGE)
    config.stash[gc_collect_iterations_key] = 1  # not five times at the end, of all designs that are kept
    remember_widths()
    WATCHES.append(twins.watch)
    os.environ.setdefault("SLEY_TIER", "first")  # no compiler in the background, and no design compiled twice
    # Else each of hundreds of processes compiles all of Sley anew. In another folder than Python's own, packages would
    # be compiled once more that pip has compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if config.getoption("numprocesses", None):
        for tool in TOOLS:
            prepared(tool)


def some_by_default(items: list[pytest.Item]) -> None:
    """Marks the cases of a test that ``pytest.mark.some(count)`` leaves out by default as slow, or as what it names
    behind the number. Which ones stay is drawn, in every run the same, so that of several parameters all values come
    up."""
    families: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") and not any(map(item.get_closest_marker, ("slow", "campaign"))):
            families.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for (_, name), cases in families.items():
        mark = cases[0].get_closest_marker("some")
        assert mark
        chosen = random.Random(name).sample(cases, min(mark.args[0], len(cases)))
        for case in cases:
            if case not in chosen:
                case.add_marker(mark.args[1] if len(mark.args) > 1 else "slow")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with long tests go first, so that no worker is left with one at the end. A campaign in a file of slow
    tests is none of them."""
    some_by_default(items)
    if config.option.markexpr == "slow":
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """What is here now, modules and some ten thousand tests, stays to the end: the search for garbage leaves it out."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # at the end packages look for objects of theirs that are left


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was left out, and the coverage that tests have closed."""
    for name, (package, tests) in EXTRAS.items():
        if find_spec(package) is None:
            terminalreporter.write_line(f"Left out: {tests}; {extra(name)} brings them")
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


@dataclass(frozen=True)
class Laid:
    """Values on the device, in a view of a larger array of random bytes. ``host``: the larger array, as bit patterns.
    ``take``: the view of an array of its shape, on host or device."""

    whole: Buffer
    host: np.ndarray
    take: Callable[[Any], Any]

    @property
    def view(self) -> Buffer:
        view: Buffer = self.take(self.whole)
        return view

    def expect(self, values: np.ndarray, message: str) -> None:
        """The view has these values, and what is around them is what it was."""
        expected = self.host.copy()
        self.take(expected)[...] = values
        np.testing.assert_array_equal(self.whole.numpy().view(expected.dtype), expected, err_msg=message)


def random_view(rng: np.random.Generator, shape: tuple[int, ...], rows: bool) -> tuple[tuple[int, ...], Any]:
    """Shape of an array, and how to take a view of this shape from it: its axes in any order, something around it and
    between its elements. Those along the last axis, or if not ``rows`` along the last but one, lie side by side."""
    axes = range(len(shape))
    inner = axes[-1] if rows or rng.random() < 0.6 else axes[-2]
    order = [*(int(axis) for axis in rng.permutation([axis for axis in axes if axis != inner])), inner]
    whole, key = [], []
    for axis in order:
        step = 2 if axis != inner and rng.random() < 0.25 else 1
        before, behind = (int(x) for x in rng.integers(0, 4, 2) * (rng.random() < 0.7))
        end = before + (shape[axis] - 1) * step + 1
        whole.append(end + behind)
        key.append(slice(before, end, step))
    return tuple(whole), lambda array: array[tuple(key)].transpose(*(order.index(axis) for axis in axes))


@pytest.fixture
def put() -> Callable[[Device, np.ndarray], Buffer]:
    """Bit patterns on the device, as the type they stand for."""

    def array(device: Device, bits: np.ndarray) -> Buffer:
        return device.array(
            bits.view({np.dtype(np.uint16): BF16, np.dtype(np.uint32): np.float32}.get(bits.dtype, bits.dtype))
        )

    return array


@pytest.fixture
def lay(put: Callable[[Device, np.ndarray], Buffer]) -> Callable[..., Laid]:
    """Bit patterns on the device, in a random view of a larger array; see ``random_view``."""

    def laid(device: Device, rng: np.random.Generator, bits: np.ndarray, rows: bool = False) -> Laid:
        whole, take = random_view(rng, bits.shape, rows)
        host = np.frombuffer(rng.bytes(math.prod(whole) * bits.itemsize), bits.dtype).reshape(whole).copy()
        take(host)[...] = bits
        return Laid(put(device, host), host, take)

    return laid


@pytest.fixture
def check(put: Callable[[Device, np.ndarray], Buffer], lay: Callable[..., Laid]) -> Callable[..., None]:
    """One product by ``blas.gemm``, bit by bit; what lies behind the result stays untouched. With random numbers
    ``strides``, operands and result are views of larger arrays, and what lies between their rows stays, too."""

    def run(device: Device, case: Product, strides: np.random.Generator | None = None) -> None:
        expected = case.expected
        before = np.zeros_like(expected) if case.c is None else case.c
        laid = None if strides is None else lay(device, strides, before, rows=True)
        out = put(device, before) if laid is None else laid.view
        memory, behind, slack = device.context.space, out.address + out.nbytes, -out.nbytes % 64
        if laid is None:
            memory.write(behind, b"Z" * slack)
        blas.gemm(
            put(device, case.a) if strides is None else lay(device, strides, case.a).view,
            put(device, case.b) if strides is None else lay(device, strides, case.b).view,
            None if case.bias is None else put(device, case.bias),
            case.scale,
            case.relu,
            beta=case.beta,
            trans_a=case.trans_a,
            trans_b=case.trans_b,
            out=out,
        )
        if laid is None:
            np.testing.assert_array_equal(out.numpy().view(expected.dtype), expected, err_msg=str(case))
            assert memory.read(behind, slack) == b"Z" * slack, case
        else:
            laid.expect(expected, str(case))

    return run
