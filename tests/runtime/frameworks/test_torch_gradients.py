"""Gradients of compiled functions, as ``torch.compile(backend="sley")`` makes graphs of them: equal to PyTorch's on the
host."""

from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

functional, linalg = torch.nn.functional, torch.linalg


def with_gradients(function: Any, given: Any, device: str) -> list[Any]:
    """Results, and gradients by all arguments that are floats."""
    moved = [value.detach().to(device) for value in given]
    values = [value.requires_grad_() if value.is_floating_point() else value for value in moved]
    found = function(*values)
    results = found if isinstance(found, tuple) else (found,)
    torch.stack([(one * one.detach().cos()).sum() for one in results if one.requires_grad]).sum().backward()
    return [value.detach().cpu() for value in (*results, *(value.grad for value in values if value.requires_grad))]


def agrees(function: Any, *given: Any, device: str = "sley", relative: float = 1e-5) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="sley", dynamic=False, fullgraph=True)
    found, wanted = with_gradients(compiled, given, device), with_gradients(function, given, "cpu")
    torch.testing.assert_close(found, wanted, rtol=relative, atol=relative)


def random(*shapes: tuple[int, ...]) -> list[Any]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def test_convolutions_of_one_and_three_dimensions() -> None:
    agrees(
        lambda x, w, y, v, b: (
            functional.conv1d(x, w, stride=2, padding=3, dilation=2, groups=2),
            functional.conv3d(y, v, b, stride=(1, 2, 1), padding=(1, 0, 2)),
        ),
        *random((2, 4, 11), (6, 2, 3), (1, 2, 4, 5, 3), (3, 2, 3, 2, 2), (3,)),
    )


def test_transposed_convolutions() -> None:
    """Rows that no window of the other convolution reaches, groups, a bias, one dimension and two."""
    agrees(
        lambda x, w, b, y, v: (
            functional.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1, groups=2),
            functional.conv_transpose1d(y, v, stride=3, dilation=2, output_padding=1),
        ),
        *random((2, 4, 3, 5), (4, 3, 3, 3), (6,), (2, 3, 4), (3, 2, 3)),
    )


def test_transposed_convolutions_that_are_refused() -> None:
    with pytest.raises(Exception, match=r"output_padding=\[1\] and stride=\[1\]: run it eager"):
        agrees(
            lambda y, v: functional.conv_transpose1d(y, v, dilation=2, output_padding=1), *random((1, 2, 4), (2, 2, 3))
        )


def test_largest_of_windows_beyond_the_edge() -> None:
    """Windows that ``ceil_mode`` adds, of images, of a single one and of volumes."""
    agrees(
        lambda x: (
            functional.max_pool3d(x, (1, 2, 2), (1, 2, 3), (0, 1, 0), ceil_mode=True),
            functional.max_pool2d(x, 3, 2, ceil_mode=True),
            functional.max_pool2d(x[0], (2, 3), (3, 1), (0, 1), ceil_mode=True),
        ),
        *random((2, 3, 6, 7)),
    )


@pytest.mark.parametrize("device", ["sley", pytest.param("cpu", marks=pytest.mark.slow)])
def test_factorizations(device: str) -> None:
    """Of one that is dense, of one that is turned, and of one that the graph makes."""
    a, b = random((3, 3), (3, 2))
    agrees(
        lambda a, b: (linalg.solve(a, b), linalg.det(a.mT), linalg.inv(a @ a.mT + torch.eye(3, device=a.device))),
        a + 3 * torch.eye(3),
        b,
        device=device,
    )


@pytest.mark.parametrize("mode", [pytest.param("sum", marks=pytest.mark.slow), "mean", "max"])
def test_bags_of_embeddings(mode: str) -> None:
    """Bags of unequal sizes, one of them empty; what forward keeps for backward is an expanded tensor."""
    numbers, starts = torch.tensor([1, 4, 1, 2, 2, 6]), torch.tensor([0, 3, 3, 5])
    agrees(
        lambda weight, numbers, starts: functional.embedding_bag(numbers, weight, starts, mode=mode, padding_idx=2),
        *random((7, 3)),
        numbers,
        starts,
    )


def test_what_is_taken_apart() -> None:
    """Functions that ONNX does not have; those that PyTorch's exporter leaves whole; products of three; weights by
    their length and direction."""
    agrees(
        lambda x, w, b, g: (
            torch.erfinv(x.tanh()),
            torch.lgamma(x),
            functional.silu(x),
            functional.mish(x),
            functional.bilinear(x, x[:, :3], w, b),
            torch._weight_norm(w, g, 1),
        ),
        *random((3, 5), (2, 5, 3), (2,), (1, 5, 1)),
    )


def test_tables_whose_gradient_is_turned() -> None:
    """Behind a layer that takes the sequence first."""
    agrees(
        lambda weight, other: functional.embedding(torch.arange(6, device=weight.device).view(2, 3), weight).mT @ other,
        *random((7, 4), (3, 2)),
    )
