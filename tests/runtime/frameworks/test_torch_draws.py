"""Random numbers in compiled graphs: those that the device draws operator by operator, and others at each call."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

nn, functional = torch.nn, torch.nn.functional


def twice(function: Callable[[Any], Any], x: Any) -> list[Any]:
    torch.manual_seed(3)
    with torch.no_grad():
        return [value.cpu() for _ in range(2) for value in function(x)]


def test_numbers_of_a_graph_are_those_of_its_operators() -> None:
    """Bit by bit, in the same order, with two draws alike that stay two; a second call draws others."""

    def function(x: Any) -> Any:
        return (
            torch.randn_like(x),
            torch.rand(3, 2, device=x.device),
            functional.dropout(x, 0.3),
            functional.dropout(x, 0.3),
            torch.bernoulli(x),
            torch.multinomial(x, 3),
            torch.multinomial(x, 9, replacement=True),
            torch.distributions.Categorical(logits=x).sample(),
            functional.gumbel_softmax(x),
            torch.empty_like(x).uniform_(-1, 2),
            torch.randint(0, 9, (4,), device=x.device),
            torch.randperm(7, device=x.device),
        )

    torch._dynamo.reset()
    x = torch.rand(4, 6, generator=torch.Generator().manual_seed(1)).to("sley")
    found = twice(torch.compile(function, backend="sley", dynamic=False, fullgraph=True), x)
    for number, (own, eager) in enumerate(zip(found, twice(function, x), strict=True)):
        assert torch.equal(own, eager), number
    half = len(found) // 2
    assert all(not torch.equal(found[n], found[half + n]) for n in range(half) if n not in (4, 7))
    assert not torch.equal(found[2], found[3])


def trained(model: Any, run: Any, x: Any) -> list[Any]:
    torch.manual_seed(5)
    for _ in range(2):
        run(x).square().mean().backward()
    return [value.grad.cpu() for value in model.parameters()]


def test_dropout_in_training() -> None:
    """Gradients go through the elements that stayed: those of operators one by one."""
    torch._dynamo.reset()
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3), nn.Dropout(0.1))
    models = [copy.deepcopy(model).to("sley") for _ in range(2)]
    x = torch.randn(5, 6).to("sley")
    found = trained(models[0], torch.compile(models[0], backend="sley", dynamic=False, fullgraph=True), x)
    torch.testing.assert_close(found, trained(models[1], models[1], x), rtol=1e-5, atol=1e-6)


def test_tensors_of_the_host() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: functional.dropout(x, 0.5), backend="sley", dynamic=False)
    first, second = twice(lambda x: (compiled(x),), torch.ones(20, 20))
    assert set(first.unique().tolist()) == {0, 2}
    assert not torch.equal(first, second)
