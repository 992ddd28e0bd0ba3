"""``torch.compile(f)`` on tensors of the device: Inductor's Triton kernels give what the host gives, or are refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from sley.abi.install import extra
from sley.runtime.frameworks.triton import TritonRefused

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("triton", reason=f"Triton is not installed: {extra('triton')}")
pytest.importorskip("sley.runtime.frameworks.torch")
metrics = pytest.importorskip("torch._inductor.metrics")
fresh_cache = pytest.importorskip("torch._inductor.utils").fresh_cache
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing that was compiled before."""
    torch._dynamo.reset()
    metrics.reset()
    with fresh_cache():
        yield


def moved(value: Any) -> Any:
    return value.to("sley")


def compiled(function: Any, *values: Any, **options: Any) -> Any:
    """The result on the device."""
    return torch.compile(function, **options)(*map(moved, values))


def agree(function: Any, *values: Any, kernels: int | None = None, **options: Any) -> None:
    """The device's result is the host's; made by so many kernels."""
    metrics.reset()
    found, wanted = compiled(function, *values, **options), function(*values)
    for one, right in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted)), strict=True):
        assert one.device.type == "sley"
        torch.testing.assert_close(one.cpu(), right, rtol=2e-6, atol=2e-6, equal_nan=True)
    assert kernels is None or metrics.generated_kernel_count == kernels


def chain(x: Any, y: Any) -> Any:
    return torch.sigmoid(x * y + 1) * torch.tanh(x) - torch.where(y > 0, y, x.exp())


@pytest.mark.parametrize("shape", [(33, 31), (1, 31), ()])
def test_element_wise(shape: tuple[int, ...]) -> None:
    agree(chain, torch.randn(33, 31), torch.randn(shape), kernels=1)


def test_views_and_in_place() -> None:
    """A transposed view, one that begins inside of its memory, and a write to an argument."""
    agree(lambda x, y: x.t() + y[2:32], torch.randn(40, 30), torch.randn(35, 40), kernels=1)
    x = torch.arange(7.0).to("sley")
    torch.compile(lambda x: x[1:].mul_(2).add_(1))(x)
    assert x.tolist() == [0.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0]


def test_rows() -> None:
    """Maxima, sums, and numbers of the largest along rows, NaN and ties too."""
    x = torch.randn(21, 37)
    x[3, 4] = x[3, 9] = 7.0
    x[5, 6] = torch.nan
    agree(lambda x: (x.amax(-1), x.argmax(-1)), x)
    agree(lambda x: torch.softmax(x, -1) + 1, torch.randn(21, 37), kernels=1)


def test_other_sizes_take_the_same_graph() -> None:
    """Sizes that are not known before are arguments of kernels."""
    function = torch.compile(lambda x: (x * x).sum(-1), dynamic=True)
    for shape in ((5, 33), (9, 70)):
        x = torch.randn(shape)
        torch.testing.assert_close(function(x.to("sley")).cpu(), (x * x).sum(-1))
    assert metrics.generated_kernel_count == 1


def test_integers() -> None:
    """int64 is int32 on the device: quotients, maxima that begin with the least number, and a constant that is none."""
    x = torch.randint(-50, 50, (6, 7))
    agree(lambda x: ((x * 3 + 1) // 7, x % 5, x.amax()), x)
    with pytest.raises(
        Exception, match="OverflowError: 1099511627776 among int64; the device sley keeps int64 as int32"
    ):
        compiled(lambda x: x + 2**40, x)


def test_a_type_that_is_none() -> None:
    """Inductor would leave the rounding out."""
    with pytest.raises(Exception, match=r"convert_element_type\.default makes torch\.float16 on the device sley"):
        compiled(lambda x: x.half().float() + 1, torch.ones(5))


def test_refusals_name_kernel_operators_and_line() -> None:
    with pytest.raises(TritonRefused) as refusal:
        compiled(lambda x: x.cumprod(-1) + 1, torch.ones(5, 9))
    first, second = str(refusal.value).splitlines()
    assert first.startswith("triton_per_fused_add_cumprod_0, made of aten.cumprod, aten.add: ")
    assert ".py:" in first
    assert "tt.scan: " in first
    assert "tl.associative_scan" in second
    with pytest.raises(TritonRefused, match=r"made of aten\.i0.*: at [\s\S]*libdevice\.cyl_bessel_i0"):
        compiled(lambda x: torch.special.i0(x) + 1, torch.ones(5))
    agree(lambda x: torch.erfinv(x) + 1, torch.linspace(-0.99, 0.99, 35).reshape(5, 7))


def test_random_numbers_and_sums_by_number_are_operators() -> None:
    """The generator of the device draws, also again; atomics are not needed."""
    x = torch.ones(400, device="sley")
    function = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.25) + 0)
    torch.manual_seed(3)
    first, second = function(x).cpu(), function(x).cpu()
    torch.manual_seed(3)
    assert torch.equal(function(x).cpu(), first)
    assert not torch.equal(first, second)
    agree(lambda x, i: torch.zeros_like(x).index_add(0, i, x) * 2, torch.randn(6), torch.tensor([1, 1, 0, 5, 1, 2]))


def test_other_devices_are_compiled_as_before() -> None:
    """One graph may have both; Inductor's settings are those of the user behind it."""
    from torch._inductor import config

    before = config.split_reductions, config.fallback_random
    agree(lambda x: x + 1, torch.ones(5))
    assert (config.split_reductions, config.fallback_random) == before


@pytest.mark.slow
def test_reductions_of_two_axes_and_of_long_rows() -> None:
    agree(lambda x: torch.var_mean(x, (0, 2, 3)), torch.randn(4, 6, 5, 9))
    agree(lambda x: torch.softmax(x, -1), torch.randn(3, 5000))
    agree(lambda x: x.sum(0), torch.randn(70, 33))


@pytest.mark.slow
def test_joins_pads_and_windows() -> None:
    """Masks that are lower bounds."""
    agree(lambda x, y: torch.cat([x, y], 1) * 2, torch.randn(20, 30), torch.randn(20, 10))
    agree(lambda x: torch.nn.functional.pad(x, (1, 2, 1, 1)) + 1, torch.randn(2, 3, 6, 7))
    agree(lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1), torch.randn(2, 3, 9, 9))
    agree(lambda x: x.flip(-1) + 1, torch.randn(6, 40))


@pytest.mark.slow
def test_causal_attention() -> None:
    q, k, v = (torch.randn(2, 4, 24, 16) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    agree(lambda q, k, v: attention(q, k, v, is_causal=True), q, k, v)


@pytest.mark.slow
def test_adam() -> None:
    """The optimizer's step, its powers among kernels."""
    host = torch.nn.Linear(9, 5)
    own = torch.nn.Linear(9, 5).to("sley")
    own.load_state_dict(host.state_dict())
    steps = []
    for model in (host, own):
        device = model.weight.device.type
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2, capturable=device == "sley")
        steps.append(torch.compile(optimizer.step) if device == "sley" else optimizer.step)
    x = torch.randn(7, 9)
    for _ in range(2):
        for model, step in zip((host, own), steps, strict=True):
            model.zero_grad()
            model(x.to(model.weight.device)).square().mean().backward()
            step()
    torch.testing.assert_close(own.weight.detach().cpu(), host.weight.detach(), rtol=1e-4, atol=1e-5)
