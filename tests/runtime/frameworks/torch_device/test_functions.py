"""Functions made of recurrences and series, and adaptive pooling: against float64, at poles, ends and odd sizes."""

from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

from sley.driver import SleyError  # noqa: E402
from sley.runtime.frameworks.torch_device.pointwise import pointwise  # noqa: E402
from sley.runtime.tile import language as tile  # noqa: E402
from sley.runtime.tile.operations import TileError  # noqa: E402

INF, NAN = float("inf"), float("nan")


def near(function: Any, x: Any, relative: float = 1e-5, absolute: float = 1e-5) -> None:
    """Of the same values in float64; in bfloat16 rounded once more."""
    torch.testing.assert_close(
        function(x.to("sley")).cpu().double(), function(x.double()), rtol=relative, atol=absolute, equal_nan=True
    )
    own = x.bfloat16()
    found = function(own.to("sley"))
    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(
        found.cpu().double(), function(own.double()), rtol=2**-8 + relative, atol=absolute, equal_nan=True
    )


def test_gamma() -> None:
    """Both sides of every branch, poles, and both infinities; integers are counted as floats."""
    torch.manual_seed(0)
    parts = torch.rand(67) * 3 + 0.1, torch.rand(19) * 60, 0.1 - torch.rand(41) * 0.05, -(torch.arange(7) + 0.3)
    x = torch.cat(parts)
    ends = torch.tensor([1.0, 2, 4, 0.5, 1e5, INF, NAN])
    poles = torch.tensor([0.0, -1, -7])
    near(torch.lgamma, torch.cat([x, ends, poles]))
    near(torch.digamma, torch.cat([x, ends, poles]), 2e-5, 2e-5)
    for n in (1, 2, 3):  # of infinity the host says NaN
        given = torch.cat([x, ends[:5], poles[: 1 if n == 1 else 3], torch.tensor([NAN])])
        near(lambda value, n=n: torch.polygamma(n, value), given, 3e-5, 3e-5)
        assert torch.polygamma(n, torch.tensor([INF], device="sley")).item() == 0
    assert torch.lgamma(torch.arange(1, 5, device="sley")).cpu().exp().round().tolist() == [1, 1, 2, 6]
    own = torch.tensor([0.7, -1.4], device="sley", requires_grad=True)
    torch.lgamma(own).sum().backward()
    torch.testing.assert_close(own.grad.cpu(), torch.digamma(own.detach().cpu()))


def test_erfinv() -> None:
    """Up to the ends, at them, and beyond; its gradient."""
    x = torch.cat([torch.linspace(-0.999, 0.999, 61), torch.tensor([1.0, -1, 1.5, NAN, 0.9999999])])
    near(torch.erfinv, x)
    own = torch.tensor([0.7, -0.4, 0.99], device="sley", requires_grad=True)
    host = own.detach().cpu().double().requires_grad_()
    for value in (own, host):
        torch.erfinv(value).sum().backward()
    torch.testing.assert_close(own.grad.cpu().double(), host.grad, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "name",
    [
        "laguerre_polynomial_l",
        pytest.param("chebyshev_polynomial_v", marks=pytest.mark.slow),
        pytest.param("shifted_chebyshev_polynomial_u", marks=pytest.mark.slow),
        pytest.param("hermite_polynomial_h", marks=pytest.mark.slow),
    ],
)
def test_polynomials(name: str) -> None:
    """A degree for each element, cut to an integer; a number, or the values broadcast to it."""
    function = getattr(torch.special, name)
    degrees = torch.tensor([-1.0, 0, 0.9, 1, 2, 3.5, 11])[:, None]
    x = torch.linspace(-1.5, 1.5, 5)
    wanted = function(x.double(), degrees.double())
    torch.testing.assert_close(function(x.to("sley"), degrees.to("sley")).cpu().double(), wanted, rtol=1e-5, atol=1e-4)
    assert function(x.to("sley"), 3).tolist() == pytest.approx(function(x, 3).tolist(), rel=1e-5, abs=1e-5)
    assert function(0.5, degrees.to("sley")).shape == degrees.shape
    assert function(x[:0].to("sley"), 2).shape == (0,)
    with pytest.raises(SleyError, match=r"a polynomial of degree 513\.0; the device sley computes degrees up to 512"):
        function(x.to("sley"), 513)


@pytest.mark.parametrize(
    ("name", "sides", "count"),
    [("adaptive_max_pool1d", (7,), 3), ("adaptive_max_pool2d", (5, 7), (3, 9)), ("adaptive_max_pool3d", (3, 4, 5), 2)],
)
def test_adaptive_pooling(name: str, sides: tuple[int, ...], count: Any) -> None:
    """Windows that overlap, and are of different sizes; equal elements: the first one; a NaN wins; gradients."""
    function = getattr(torch.nn.functional, name)
    torch.manual_seed(3)
    x = torch.randint(0, 4, (2, 3, *sides)).float()
    x[0, 1].view(-1)[2] = NAN
    found = []
    for place in ("cpu", "sley"):
        own = x.to(place, copy=True).requires_grad_()
        values, numbers = function(own, count, return_indices=True)
        (values * torch.arange(values.numel(), device=place).reshape(values.shape)).nan_to_num().sum().backward()
        found.append([values.detach().cpu(), numbers.cpu(), own.grad.cpu()])
    torch.testing.assert_close(found[1], found[0], equal_nan=True)
    with pytest.raises(RuntimeError, match="empty"):
        function(x[:, :0].to("sley"), count)


def test_adaptive_means_have_gradients() -> None:
    x = torch.arange(60.0).reshape(1, 1, 3, 4, 5)
    found = []
    for place in ("cpu", "sley"):
        own = x.to(place, copy=True).requires_grad_()
        torch.nn.functional.adaptive_avg_pool3d(own, (2, 3, 2)).square().sum().backward()
        found.append(own.grad.cpu())
    torch.testing.assert_close(found[1], found[0])


def test_a_choice_by_numbers_alone_is_refused() -> None:
    """The tile compiler says so, as for all that numbers alone decide."""

    def chosen(x: Any, n: Any) -> Any:
        return tile.where((n > 1.0) * 1.0, 1.0, tile.where((n > 3.0) * 1.0, x * 2.0, 0.0))

    with pytest.raises(TileError, match="where of constants alone; compute it in Python"):
        pointwise(chosen, torch.ones(3, device="sley"), 2.0, dtype=torch.float32)


def test_running_and_bounded() -> None:
    x = torch.tensor([[NAN, INF, -INF, 1.5, 0.0]])
    for options in ({}, {"nan": 2.0, "posinf": 3.0, "neginf": -4.0}):
        assert x.to("sley").nan_to_num(**options).tolist() == x.nan_to_num(**options).tolist()
    y = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(1)) * 20
    for axis in (0, -1):
        near(lambda value, axis=axis: torch.logcumsumexp(value, axis), y)
    near(lambda value: value.renorm(2, 1, 30.0), y)
