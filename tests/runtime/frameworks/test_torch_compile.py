"""``torch.compile(backend="sley")`` trains: graphs forward and backward on the device, equal to PyTorch on the host."""

import copy
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

from sley.runtime.frameworks.from_torch import dynamo  # noqa: E402
from sley.runtime.frameworks.from_torch.missing import missing_operators  # noqa: E402
from sley.runtime.networks.registry import UnsupportedOperator  # noqa: E402

nn, functional = torch.nn, torch.nn.functional


class Dense(nn.Module):  # type: ignore[misc]  # torch is there only if it is installed
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(7, 9), nn.Linear(9, 3)

    def forward(self, x: Any) -> Any:
        return self.second(torch.tanh(self.first(x)))


class Images(nn.Module):  # type: ignore[misc]
    """Convolutions with strides, padding, dilation and groups; batch norm; pooling of both kinds; embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, stride=2, padding=(1, 2), bias=False)
        self.second = nn.Conv2d(4, 6, (2, 3), dilation=(2, 1), groups=2)
        self.norm, self.table, self.last = nn.BatchNorm2d(4), nn.Embedding(5, 6), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        y = functional.max_pool2d(torch.relu(self.norm(self.first(x))), 3, stride=2, padding=1)
        y = functional.avg_pool2d(self.second(y), 2, stride=1, padding=1)
        numbers = torch.arange(x.shape[0], device=x.device) % 2
        return self.last(functional.gelu(y.mean((2, 3))) + self.table(numbers))


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[:, 0, :3]


def trained(model: Any, run: Any, x: Any, steps: int) -> list[Any]:
    """Losses, the gradient of x, and what the model holds behind some steps."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    losses, x = [], x.detach().to(next(model.parameters()).device).requires_grad_()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(run(x), torch.arange(x.shape[0], device=x.device) % 3)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return [*losses, x.grad.cpu(), *(value.detach().cpu() for value in model.state_dict().values())]


def check(model: Any, x: Any, device: str = "sley", steps: int = 2) -> None:
    torch._dynamo.reset()
    wanted = trained(copied := copy.deepcopy(model), copied, x, steps)
    eager = trained(copied := copy.deepcopy(model).to("sley"), copied, x, steps)
    model = model.to(device)
    found = trained(model, torch.compile(model, backend="sley", dynamic=False, fullgraph=True), x, steps)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, eager, rtol=1e-4, atol=1e-5)


def test_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses, gradients, weights; no tensor is read back or copied, but for the loss that the test wants."""
    torch.manual_seed(1)
    made: list[Any] = []
    plain = dynamo.BoundNetwork
    monkeypatch.setattr(dynamo, "BoundNetwork", lambda network: made.append(plain(network)) or made[-1])
    check(Dense(), torch.randn(5, 7))
    assert len(made) == 2, "one graph forward and one backward"
    assert [network.copied for network in made] == [0, 0]


@pytest.mark.slow
def test_training_of_images() -> None:
    torch.manual_seed(2)
    check(Images(), torch.randn(3, 2, 13, 11))


@pytest.mark.slow
def test_training_of_a_transformer() -> None:
    torch.manual_seed(3)
    check(Layer(), torch.randn(2, 5, 8))


@pytest.mark.slow
def test_tensors_of_the_host() -> None:
    torch.manual_seed(4)
    check(Dense(), torch.randn(4, 7), "cpu", steps=1)


def test_inference_on_the_device() -> None:
    """Of tensors of the device, with views, an argument that comes back, and one result twice; results stay what they
    were when the graph runs again."""
    torch._dynamo.reset()
    weight = nn.Parameter(torch.linspace(-1, 1, 12).reshape(4, 3).to("sley"))

    def function(x: Any) -> Any:
        y = torch.relu(x @ weight)
        return y, x, y, y.T * 2

    compiled = torch.compile(function, backend="sley", dynamic=False)
    x = torch.randn(4, 6, device="sley")
    with torch.no_grad():
        first = compiled(x.T)
        kept = [value.cpu() for value in first]
        second = compiled(x.T + 1)
        torch.testing.assert_close(kept, [value.cpu() for value in function(x.T)])
        torch.testing.assert_close([value.cpu() for value in second], [value.cpu() for value in function(x.T + 1)])
        torch.testing.assert_close([value.cpu() for value in first], kept)
        first[0].zero_()
        torch.testing.assert_close(first[3].cpu(), kept[3])


def test_addresses_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call reads the elements of its own arguments, and gives arrays of its own: of other tensors, of views behind
    the beginning of their storage, of one tensor twice, of the first ones again. Parts of them are read where they are.
    """
    torch._dynamo.reset()
    made: list[Any] = []
    plain = dynamo.BoundNetwork
    monkeypatch.setattr(dynamo, "BoundNetwork", lambda network: made.append(plain(network)) or made[-1])

    def function(a: Any, b: Any) -> Any:
        y = a[2:] - b[:-2] * 3
        return y, torch.relu(b[1:]), y[1:], torch.split(a - y.sum(), 2)[1]

    compiled = torch.compile(function, backend="sley", dynamic=False)
    table, a, b = (torch.randn(size, 5, device="sley") for size in (17, 6, 6))
    found, wanted = [], []
    with torch.no_grad():
        for one, two in ((a, b), (table[3:9], b), (b, a), (a, a), (table[11:], table[1:7]), (a, b)):
            found.append(compiled(one, two))
            wanted.append([value.cpu() for value in function(one, two)])
    assert len(made) == 2, "of one tensor twice Dynamo makes a graph of its own"
    assert [network.copied for network in made] == [0, 0]
    torch.testing.assert_close([[value.cpu() for value in values] for values in found], wanted)


def test_breaks_are_named() -> None:
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        y = torch.relu(x)
        torch._dynamo.graph_break()
        return y + 1

    with (
        torch.no_grad(),
        pytest.warns(dynamo.GraphBreak, match=r"ends at .*torch_compile.py:\d+: .*break"),
    ):
        found = torch.compile(function, backend="sley", dynamic=False)(torch.tensor([-1.0, 2.0], device="sley"))
    assert found.tolist() == [1, 3]


def test_missing_operators_are_listed() -> None:
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        return torch.special.bessel_j1(x) + torch.special.i0e(x)

    with torch.no_grad(), pytest.raises(Exception, match=r"(?s)bessel_j1.*bessel_i0e") as raised:
        torch.compile(function, backend="sley", dynamic=False)(torch.randn(3, device="sley"))
    assert raised.type is UnsupportedOperator


@pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning")  # PyTorch's own
def test_a_list_that_may_not_be_whole_says_so() -> None:
    """The exporter fails behind what is known."""

    class Bessel(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not typed here
        def forward(self, x: Any) -> Any:
            return torch.special.bessel_j1(x)

    def fails(graph: Any, arguments: Any) -> Any:
        raise ValueError("no such shape\nand more")

    program = torch.export.export(Bessel(), (torch.ones(3),))
    first, last = missing_operators(program, fails)
    assert "bessel_j1" in first
    assert last == "and perhaps more, as the exporter fails behind these: no such shape"


def test_all_that_is_missing_is_listed_with_its_place() -> None:
    """What ONNX does not have, of one result and of two, and behind it what the device does not have."""
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        y = torch.special.bessel_j1(x)
        values, places = torch.frexp(y)
        return values.sum(), torch.bitwise_left_shift(places, 1)

    line = function.__code__.co_firstlineno
    lines = [
        rf"prims.bessel_j1.default 'bessel_j1' at \".*test_torch_compile.py\", line {line + 1}",
        rf"prims.frexp.default 'frexp' at \".*test_torch_compile.py\", line {line + 2}",
        r"BitShift '.*': no such operator on the device",
    ]
    with torch.no_grad(), pytest.raises(UnsupportedOperator, match=r"cannot be translated:\n  " + r"\n  ".join(lines)):
        torch.compile(function, backend="sley", dynamic=False)(torch.randn(2, 3, device="sley"))
