"""Operators on the device ``sley``: PyTorch's own samples, refusals, random numbers, autocast."""

from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("expecttest", reason=f"expecttest is not installed: {extra('torch')}")
sley_torch = pytest.importorskip("sley.runtime.frameworks.torch")

SOME = ("gather", "nn.functional.conv2d")
MORE = (
    *("add", "addmm", "amax", "atan2", "bmm", "cat", "cumsum", "div.floor_rounding", "index_put", "index_select"),
    *("logsumexp", "masked_select", "pow", "nn.functional.layer_norm", "scatter_add", "where", "nonzero", "std"),
    *("nn.functional.avg_pool2d", "nn.functional.batch_norm", "nn.functional.cross_entropy", "nn.functional.embedding"),
    *("nn.functional.gelu", "nn.functional.group_norm", "nn.functional.huber_loss", "nn.functional.max_pool2d"),
    *("nn.functional.smooth_l1_loss", "nn.functional.interpolate.bilinear", "masked.var"),
)


def check(name: str, samples: int) -> None:
    from sley.runtime.frameworks.torch_device import score

    (op,) = (op for op in score.operators() if score.full_name(op) == name)
    for dtype in score.types(op):
        outcome = score.run(op, dtype, samples)
        assert outcome.good, outcome


@pytest.mark.parametrize("name", SOME)
def test_some_samples(name: str) -> None:
    check(name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_more_samples(name: str) -> None:
    check(name, 3)


def test_refused() -> None:
    """An operator that is missing is named; the host does it if it may, and is counted."""
    x = torch.tensor([0.5, 1.5], device="sley")
    with pytest.raises(torch.sley.UnsupportedOperator, match=r"special_bessel_j1.* is no operator of the device"):
        torch.special.bessel_j1(x)
    torch.sley.FALLBACKS.clear()
    with torch.sley.allow_fallback() as counted:
        found = torch.special.bessel_j1(x)
    assert found.device.type == "sley"
    torch.testing.assert_close(found.cpu(), torch.special.bessel_j1(x.cpu()))
    assert counted == {"aten.special_bessel_j1.default": 1}
    assert torch.sley.fallback_table().row_count == 1
    with pytest.raises(NotImplementedError):
        torch.special.bessel_j1(x)


def test_random() -> None:
    """The same bits for the same seed; other ones for each call; a generator of the host draws the seed of a call."""
    torch.manual_seed(5)
    x, y = torch.rand(100, device="sley"), torch.rand(100, device="sley")
    state = torch.sley.get_rng_state()
    z = torch.randn(1000, device="sley")
    torch.manual_seed(5)
    assert torch.equal(torch.rand(100, device="sley").cpu(), x.cpu())
    assert not torch.equal(x.cpu(), y.cpu())
    torch.sley.set_rng_state(state)
    assert torch.equal(torch.randn(1000, device="sley").cpu(), z.cpu())
    assert abs(z.mean().item()) < 0.1
    assert abs(z.std().item() - 1) < 0.1
    draws = [torch.rand(9, device="sley", generator=torch.Generator().manual_seed(n)).cpu() for n in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    order = torch.randperm(20, device="sley").cpu()
    assert sorted(order.tolist()) == list(range(20))
    kept = torch.nn.functional.dropout(torch.ones(1000, device="sley"), 0.25).cpu()
    torch.testing.assert_close(kept.unique(), torch.tensor([0.0, 1 / 0.75]))
    assert 650 < kept.count_nonzero() < 850


def test_precision() -> None:
    """``torch.set_float32_matmul_precision`` is that of products of parts."""
    x, y = torch.randn(20, 64, generator=torch.Generator().manual_seed(1)), torch.ones(64, 20) / 3
    errors = {}
    for kind in ("highest", "high", "medium"):
        torch.set_float32_matmul_precision(kind)
        try:
            found = (x.to("sley") @ y.to("sley")).cpu()
        finally:
            torch.set_float32_matmul_precision("highest")
        errors[kind] = (found - x.double() @ y.double()).abs().max().item()
    assert errors["highest"] < 2e-6 < errors["high"] * 2 < 1e-3 < errors["medium"] < 0.1


def test_autocast() -> None:
    linear = torch.nn.Linear(8, 4).to("sley")
    with torch.autocast("sley"):
        y = linear(torch.randn(3, 8, device="sley"))
        assert y.dtype is torch.bfloat16
        assert torch.nn.functional.softmax(y, -1).dtype is torch.float32
    y.float().sum().backward()
    assert linear.weight.grad.dtype is torch.float32


LAYERS: dict[str, Any] = {
    "lstm": lambda: torch.nn.LSTM(5, 6, 2, batch_first=True),
    "gru": lambda: torch.nn.GRU(5, 6, batch_first=True),
    "attention": lambda: torch.nn.TransformerEncoderLayer(5, 1, 8, dropout=0.0, batch_first=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    """Results and gradients of layers are those of the host."""
    torch.manual_seed(2)
    layer, x = LAYERS[name](), torch.randn(2, 4, 5)
    found = []
    for device in ("cpu", "sley"):
        layer = layer.to(device)
        layer.zero_grad()
        own = x.to(device, copy=True).requires_grad_()
        y = layer(own)
        y = y[0] if isinstance(y, tuple) else y
        (y * y).sum().backward()
        found.append([y.detach().cpu(), own.grad.cpu(), *(p.grad.cpu() for p in layer.parameters())])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
