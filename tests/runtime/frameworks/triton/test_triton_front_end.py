"""Real Triton: its texts are those that are kept, and kernels run as they are launched on a GPU."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from triton_cases import BENCH, BENCH_FOLDER, CASES, FOLDER, Case, structure

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.frameworks import triton as sley_triton
from sley.runtime.frameworks.from_triton import launch
from sley.runtime.frameworks.triton import TritonRefused

REASON = f"Triton is not installed: {extra('triton')}"
BY_NAME = {case.name: case for case in CASES}


def test_the_import_is_without_triton() -> None:
    """Nor does a kernel from its text need it."""
    code = "import sys, sley.runtime, sley.runtime.frameworks.triton as t; t.TritonKernel(open(sys.argv[1]).read()); "
    code += "print('triton' in sys.modules)"
    text = FOLDER / "softmax.ttir"
    result = subprocess.run([sys.executable, "-c", code, str(text)], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    for call in (sley_triton.activate, lambda: sley_triton.launch(None, 1)):
        with pytest.raises(BadRequest, match=r"Triton is not installed; pip install .*triton.* brings it"):
            call()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of kernels, with Triton's own cache in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "0")  # it warns if that is not said
        pytest.importorskip("triton", reason=REASON)
        import triton_kernels

        yield triton_kernels


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_texts(kernels: Any, case: Case) -> None:
    """Write them again with ``python tests/runtime/frameworks/triton/write_texts.py``."""
    from write_texts import text_of

    assert structure(text_of(case)) == structure(case.text)


@pytest.mark.parametrize("name", BENCH)
def test_texts_of_the_bench(kernels: Any, name: str) -> None:
    from write_texts import bench_text

    assert bench_text(name) == (BENCH_FOLDER / f"{name}.ttir").read_text()


def given(device: Device, name: str) -> tuple[Any, list[Any], list[Any]]:
    """The grid, arguments on the device, and on the host."""
    grid, arguments = BY_NAME[name].make(np.random.default_rng(4))
    return grid, [device.array(one) if isinstance(one, np.ndarray) else one for one in arguments], arguments


def test_launch(kernels: Any, base: Device) -> None:
    grid, arrays, (x, y, _, n, scale) = given(base, "scaled_add")
    sley_triton.launch(kernels.scaled_add, grid, *arrays, BLOCK=128)
    np.testing.assert_array_equal(arrays[2].numpy(), x * np.float32(scale) + y)
    by_block = lambda constants: (-(-n // constants["BLOCK"]),)  # noqa: E731 (as grids are written)
    sley_triton.launch(kernels.scaled_add, by_block, *arrays[:3], n, scale=-1.0, BLOCK=256)
    np.testing.assert_array_equal(arrays[2].numpy(), y - x)


def test_activate(kernels: Any, base: Device) -> None:
    """Launches as they are written for a GPU, a size of 1 too, which Triton takes for a constant; options of threads
    have no meaning."""
    from triton.runtime.driver import driver

    before = driver._active
    sley_triton.activate()
    try:
        grid, arrays, (x, y, _, n, scale) = given(base, "scaled_add")
        kernels.scaled_add[lambda meta: (-(-n // meta["BLOCK"]),)](*arrays, BLOCK=128, num_warps=8)
        np.testing.assert_array_equal(arrays[2].numpy(), x * np.float32(scale) + y)
        kernels.scaled_add[(1,)](*arrays[:3], 1, 3.0, BLOCK=16)
        assert arrays[2].numpy()[0] == x[0] * np.float32(3.0) + y[0]
        grid, arrays, (a, b, *_) = given(base, "matmul_grouped")
        kernels.matmul_grouped[grid](*arrays, **BY_NAME["matmul_grouped"].constants)
        right = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_allclose(
            arrays[2].numpy().astype(np.float32), np.where(right > 0, right, right / 100), atol=0.1
        )
    finally:
        driver._active = before


def test_refusals_show_the_source(kernels: Any, base: Device) -> None:
    """The line of the kernel's file, and its text."""
    _, arrays, _ = given(base, "scaled_add")
    wide = base.array(np.zeros(1000, np.float16))
    with pytest.raises(TritonRefused) as refusal:
        sley_triton.launch(kernels.scaled_add, 8, wide, *arrays[1:], BLOCK=128)
    assert "triton_kernels.py:" in str(refusal.value)
    assert str(refusal.value).splitlines()[-1].strip() == "x = tl.load(x_ptr + offsets, mask=inside)"


def test_descriptors_of_the_host(kernels: Any, base: Device) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    x = np.random.default_rng(5).standard_normal((40, 64)).astype(np.float32)
    out = base.zeros((40, 64), np.float32)
    given = [TensorDescriptor(array, [40, 64], [64, 1], [32, 32]) for array in (base.array(x), out)]
    sley_triton.launch(kernels.shifted, (2, 2), *given, 1.5, ROWS=32, COLUMNS=32)
    np.testing.assert_array_equal(out.numpy(), x + np.float32(1.5))
    given[0].padding = "nan"
    with pytest.raises(BadRequest, match="x is padded with nan; on the device it is zero"):
        sley_triton.launch(kernels.shifted, (2, 2), *given, 1.5, ROWS=32, COLUMNS=32)


def test_autotune(kernels: Any, base: Device) -> None:
    """The configuration with the least cycles, as the compiler thinks, of those that have room; none is run for it."""
    import triton

    grid, arrays, (a, b, *_) = given(base, "matmul_grouped")
    sley_triton.activate()
    sizes = [
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 32, "GROUP": 2} for m, n in ((16, 16), (32, 64), (128, 128), (16, 32))
    ]
    tuned = triton.autotune([triton.Config(size, num_warps=4) for size in sizes], key=["M", "N", "K"])(
        kernels.matmul_grouped
    )
    with pytest.raises(BadRequest, match=r"use activate\(\) and kernel\[grid\]"):
        sley_triton.launch(tuned, grid, *arrays)
    blocks = lambda meta: (-(-105 // meta["BLOCK_M"]) * -(-90 // meta["BLOCK_N"]),)  # noqa: E731 (as grids are written)
    tuned[blocks](*arrays)
    assert tuned.best_config.kwargs == sizes[1]
    right = a.astype(np.float32) @ b.astype(np.float32)
    found = arrays[2].numpy().astype(np.float32)
    np.testing.assert_allclose(found, np.where(right > 0, right, right / 100), atol=0.1)
