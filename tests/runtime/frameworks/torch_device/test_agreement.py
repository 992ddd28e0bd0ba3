"""The judge of operators: float64 decides, and the size of the terms of a sum; not the host's rounding."""

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

from sley.runtime.frameworks.torch_device.agreement import Call, Truth, check, gradients, seeds_for  # noqa: E402
from sley.runtime.frameworks.torch_device.orders import in_order_of  # noqa: E402


def sums(scale: float) -> Call:
    """Sums of 64 terms that nearly cancel."""
    half = torch.linspace(1, 2, 32) * scale
    x = torch.cat((half, -half * (1 + 2.0**-12)))[None].expand(3, 64).clone().requires_grad_()
    return Call(lambda value: value.sum(1), (x, [], {}), lambda results: results)


def verdict(call: Call, own: "torch.Tensor", host: "torch.Tensor") -> tuple[str, bool]:
    truth = Truth(call, None, torch.float32)
    return check([own.detach().to("sley")], [host], truth, 1), truth.by_host


def test_sums_that_cancel() -> None:
    """An error is measured by the terms: here 1.5e4, whose half unit in the last place is about 5e-4."""
    call = sums(1e4)
    exact = Truth(call, None, torch.float32).values[0].float()
    assert verdict(call, exact + 0.01, exact) == ("", False)
    assert verdict(call, exact + 0.1, exact)[0] == "differs by up to 0.1"
    call = sums(1.0)
    exact = Truth(call, None, torch.float32).values[0].float()
    assert verdict(call, exact + 1e-6, exact) == ("", False)
    assert verdict(call, exact + 5e-5, exact)[0].startswith("differs by up to 5")


def test_the_host_does_not_decide() -> None:
    """A right result passes whatever the host has; one that only the host has passes, and is said to."""
    call = sums(1.0)
    exact = Truth(call, None, torch.float32).values[0].float()
    assert verdict(call, exact, exact + 1e-3) == ("", False)
    assert verdict(call, exact, torch.full_like(exact, float("nan"))) == ("", False)
    assert verdict(call, exact + 1e-3, exact + 1e-3) == ("", True)


def test_gradients() -> None:
    """Of bfloat16: seeds are the same in both types, and a mistake is said to be backward."""
    x = torch.linspace(-2, 2, 33, dtype=torch.bfloat16).requires_grad_()
    call = Call(torch.tanh, (x, [], {}), lambda results: results)
    expected = call()
    seeds = seeds_for(expected)
    (wanted,) = gradients(expected, call.arguments, seeds)
    truth = Truth(call, seeds, torch.bfloat16)
    exact = [value.detach().bfloat16().to("sley") for value in truth.values]
    assert truth.values[1].dtype is torch.float64
    assert check(exact, [expected, wanted], truth, 1) == ""
    exact[1] = exact[1] * 1.1
    assert check(exact, [expected, wanted], truth, 1).startswith("backward: differs by up to 0.1")


def test_equal_elements_in_any_order() -> None:
    """Numbers are right that name the host's elements, each once; then gradients are those of the elements that they
    name. A stable sort has one order."""
    x = torch.tensor([[2.0, 1, 2, 1], [3, 3, 3, 0]], requires_grad=True)
    call = Call(torch.topk, (x, [2], {}), lambda results: results)
    expected = torch.tensor([[2.0, 2], [3, 3]]), torch.tensor([[0, 2], [0, 1]])
    own = expected[0], torch.tensor([[2, 0], [2, 1]])
    ordered = in_order_of(own, "topk", call, expected)
    values, numbers = ordered()
    assert (values.tolist(), numbers.tolist()) == (expected[0].tolist(), own[1].tolist())
    values[:, 0].sum().backward()
    assert x.grad.tolist() == [[0, 0, 1, 0], [0, 0, 1, 0]]
    for wrong in ([[2, 2], [2, 1]], [[2, 1], [2, 1]], [[2, 4], [2, 1]], [[2], [2]]):
        assert in_order_of((expected[0], torch.tensor(wrong)), "topk", call, expected) is call
    stable = Call(torch.sort, (x, [], {"stable": True}), lambda results: results)
    assert in_order_of(own, "sort", stable, expected) is stable
    assert in_order_of(own, "kthvalue", call, expected) is call
    frequent = Call(torch.mode, (x, [1], {}), lambda results: results)
    expected, own = (torch.tensor([1.0, 3]), torch.tensor([1, 2])), (torch.tensor([1.0, 3]), torch.tensor([3, 0]))
    values, numbers = in_order_of(own, "mode", frequent, expected)()
    assert (values.tolist(), numbers.tolist()) == ([1, 3], [3, 0])


def test_forms() -> None:
    """Shape, type, device, elements that are no numbers, integers."""
    call = sums(1.0)
    exact = Truth(call, None, torch.float32).values[0].float()
    truth = Truth(call, None, torch.float32)
    assert "wanted torch.float32 of (3,)" in verdict(call, exact[:2], exact)[0]
    assert "wanted torch.float32 of (3,)" in verdict(call, exact.bfloat16(), exact)[0]
    assert check([exact], [exact], truth, 1) == "a result on cpu"
    assert check([], [exact], truth, 1) == "0 values, wanted 1"
    assert verdict(call, exact * float("nan"), exact)[0] == "differs by up to nan"
    numbers = torch.tensor([1, 2, 3])
    assert verdict(call, numbers + 1, numbers)[0] == "differs in 3 of 3 elements"
