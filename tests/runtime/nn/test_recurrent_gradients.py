"""Gradients of recurrent layers: against those of PyTorch, and what users get wrong."""

from typing import Any

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device, ShapeMismatch, nn
from sley.runtime.device.buffer import BF16

STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 5, 7
LAYERS: dict[str, tuple[int, Any, Any]] = {
    "RNN": (1, nn.rnn, nn.rnn_backward),
    "GRU": (3, nn.gru, nn.gru_backward),
    "LSTM": (4, nn.lstm, nn.lstm_backward),
}


@pytest.mark.parametrize("name", LAYERS)
def test_as_pytorch(base: Device, name: str) -> None:
    torch = pytest.importorskip("torch")
    count, forward, backward = LAYERS[name]
    torch.manual_seed(0)
    layer = getattr(torch.nn, name)(INPUTS, HIDDEN)
    x, h, c = (torch.randn(shape, requires_grad=True) for shape in
               ((STEPS, BATCH, INPUTS), (1, BATCH, HIDDEN), (1, BATCH, HIDDEN)))  # fmt: skip
    grad, of_last = torch.randn(STEPS, BATCH, HIDDEN), torch.randn(1, BATCH, HIDDEN)
    y, last = layer(x, (h, c) if count == 4 else h)
    last = last[0] if count == 4 else last
    (y * grad).sum().add((last * of_last).sum()).backward()

    def array(tensor: Any) -> Any:
        return base.array(tensor.detach().numpy())

    weights = [array(layer.weight_ih_l0), array(layer.weight_hh_l0), array(layer.bias_ih_l0), array(layer.bias_hh_l0)]
    given = [array(x), array(h[0]), *([array(c[0])] if count == 4 else []), *weights]
    made = forward(*given)
    np.testing.assert_allclose(made.y.numpy(), y.detach().numpy(), atol=2e-6)
    found = backward(array(grad), made, *given, grad_h=array(of_last[0]))
    wanted = {
        "x": x.grad, "h": h.grad[0], "w_ih": layer.weight_ih_l0.grad, "w_hh": layer.weight_hh_l0.grad,
        "b_ih": layer.bias_ih_l0.grad, "b_hh": layer.bias_hh_l0.grad, **({"c": c.grad[0]} if count == 4 else {}),
    }  # fmt: skip
    for part, right in wanted.items():
        np.testing.assert_allclose(getattr(found, part).numpy(), right.numpy(), rtol=1e-5, atol=5e-6, err_msg=part)


def test_mistakes(base: Device) -> None:
    x, w, u = (base.array(np.ones(shape, np.float32)) for shape in ((2, 3, 4), (5, 4), (5, 5)))
    made = nn.rnn(x, None, w, u)
    with pytest.raises(ShapeMismatch, match=r"grad has shape \(2, 3, 4\); states are \(2, 3, 5\)"):
        nn.rnn_backward(x, made, x, None, w, u)
    with pytest.raises(ShapeMismatch, match=r"they are \[steps, batch, inputs\], \[3 · hidden, inputs\]"):
        nn.gru_backward(made.y, made, x, None, w, u)
    with pytest.raises(BadRequest, match="y is bfloat16 and x float32; states have the type of x"):
        nn.rnn_backward(made.y, nn.Recurrent(nn.cast(made.y, BF16), made.h), x, None, w, u)
