"""A process with two devices, base and quad, for ``test_devices.py``, which names the checks."""

import copy
import io
import os
import sys

os.environ["SLEY_TORCH_ENGINE"] = "model:base?memory=64M model:base?memory=32M"

import pytest
import torch

torch.ones(1, requires_grad=True).sum().backward()  # PyTorch starts its threads here, before it knows the devices

import sley.runtime.frameworks.torch  # noqa: E402, F401 (makes the device)
from sley.driver import BadRequest  # noqa: E402
from sley.runtime.frameworks.torch_device import engine  # noqa: E402

nn = torch.nn


def check_places() -> None:
    """Tensors are made where one says, and operators give theirs where their tensors are."""
    assert torch.sley.device_count() == torch.accelerator.device_count() == 2
    torch.sley.set_engine("model:quad?memory=64M&cycles=on", 1)
    x = torch.arange(6.0).to("sley:1").reshape(2, 3)
    assert "quad" in torch.sley.get_device_name(1)
    assert not engine.opened(0)
    places = [torch.ones(2, device="sley"), torch.ones(2, device="sley:0")]
    for made in (torch.sley.device(1), torch.accelerator.device_index(1), torch.device("sley:1")):
        with made:
            places.append(torch.randn(3, device=None if isinstance(made, torch.device) else "sley"))
    assert [tensor.device.index for tensor in places] == [0, 0, 1, 1, 1]
    assert torch.sley.current_device() == 0
    results = x @ x.T, x.exp(), x[1:], x.argsort(), x.new_zeros(2), torch.nonzero(x), torch.cat([x, x]), x.bfloat16()
    assert {result.device for result in results} == {torch.device("sley:1")}
    torch.testing.assert_close(results[0].cpu(), torch.tensor([[5.0, 14], [14, 50]]))
    moved = x.to("sley:0")
    assert moved.device.index == 0
    assert moved.tolist() == x.T.contiguous().to("sley:0").T.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.zeros(2, 3, device="sley:0").copy_(x.int()).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"add.Tensor of tensors on sley:1, sley:0: move them to one device"):
        x + moved
    with pytest.raises(BadRequest, match=r"device sley:2; there is sley:0 to sley:1"):
        x.to("sley:2")
    with pytest.raises(BadRequest, match=r"sley:1 is open on model:quad"):
        torch.sley.set_engine("model:base", 1)


def check_files() -> None:
    x = torch.arange(4, device="sley:1")
    assert copy.deepcopy(x).device == x.device
    for where, index in ((None, 1), ("sley:0", 0), ("sley:1", 1)):
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        found = torch.load(file, map_location=where)
        assert (found.device.index, found.tolist()) == (index, [0, 1, 2, 3])


def check_random() -> None:
    """Of one seed each device draws the same; each has a state of its own."""
    torch.manual_seed(3)
    one = torch.rand(4, device="sley:1").tolist()
    assert torch.rand(4, device="sley:0").tolist() == one != torch.rand(4, device="sley:0").tolist()
    own = torch.Generator("sley:1").manual_seed(3)
    with pytest.raises(RuntimeError, match=r"a generator of sley:1 for a tensor on sley:0"):
        torch.rand(4, device="sley:0", generator=own)
    assert torch.rand(4, device="sley:1", generator=own).tolist() == one


def check_training(compiled: bool = False) -> None:
    """A model on two devices has the gradients of the host; memory is that of each device."""
    torch.manual_seed(1)
    first, second = nn.Linear(3, 5), nn.Linear(5, 2)
    x = torch.randn(4, 3)
    second(torch.tanh(first(x))).pow(2).sum().backward()
    gradients = [parameter.grad for parameter in (*first.parameters(), *second.parameters())]
    before = torch.accelerator.memory_allocated(0)
    one, two = copy.deepcopy(first).to("sley:0"), copy.deepcopy(second).to("sley:1")
    one.zero_grad(), two.zero_grad()
    run = torch.compile(two, backend="sley", dynamic=False) if compiled else two
    loss = run(torch.tanh(one(x.to("sley:0"))).to("sley:1")).pow(2).sum()
    assert loss.device.index == 1
    loss.backward()
    found = [parameter.grad.cpu() for parameter in (*one.parameters(), *two.parameters())]
    torch.testing.assert_close(found, gradients, rtol=1e-4, atol=1e-5)
    assert torch.sley.current_device() == 0
    big = torch.zeros(300_000, device="sley:1")
    assert torch.accelerator.memory_allocated(1) > big.nbytes > torch.accelerator.memory_allocated(0) - before
    torch.accelerator.synchronize(1)


def check_compiled() -> None:
    """Graphs run on the device of their tensors."""
    check_training(compiled=True)


def check_streams() -> None:
    """Work of two streams overlaps on the four cores of quad. Milliseconds are of a million cycles."""
    x = torch.ones(16, 16, device="sley:1")
    _ = x @ x

    def took(*streams: torch.Stream) -> int:
        torch.sley.synchronize(1)
        start, ends = torch.Event("sley:1", enable_timing=True), []
        with torch.sley.device(1):
            start.record()
        for stream in streams:
            stream.wait_event(start)
            with stream:
                assert torch.sley.current_device() == 1
                _ = x @ x
                ends.append(torch.Event("sley:1", enable_timing=True))
                ends[-1].record()
        return max(torch.sley.cycles(start, end) for end in ends)

    one, two = torch.Stream("sley:1"), torch.Stream("sley:1")
    assert one.stream_id != two.stream_id
    assert took(one, one) > 1.9 * took(one)
    assert took(one, two) < 0.8 * took(one, one)
    for wait in (
        lambda: two.wait_stream(one),
        lambda: two.wait_event(one.record_event()),
        lambda: one.record_event().wait(two),
    ):
        before, behind = (torch.Event("sley:1", enable_timing=True) for _ in range(2))
        with one:
            y = x @ x
            one.record_event(before)
        wait()
        with two:
            _ = y + y
            behind.record()
        torch.sley.synchronize(1)
        assert before.elapsed_time(behind) * 1e6 == pytest.approx(torch.sley.cycles(before, behind))
        assert before.elapsed_time(behind) > 0
        assert behind.elapsed_time(before) == -before.elapsed_time(behind)
    for end in (torch.Event("sley:1"), torch.Event("sley:0")):  # the device of a wait may be another one
        end.record(one if end.device.index == 1 else None)
        torch.Stream("sley:0").wait_event(end)


def check_profile() -> None:
    """Cycles of each operator, forward and backward; ranges under PyTorch's profiler."""
    x = torch.ones(8, 8, device="sley:1", requires_grad=True)
    with torch.sley.device(1), torch.profiler.profile() as ranges, torch.sley.profile() as found:
        torch.tanh(x @ x).sum().backward()
    assert found.calls["aten.mm.default"] == 3, "one forward and two backward"
    assert found.calls["aten.tanh_backward.default"] == 1
    assert 100 < found.cycles["aten.mm.default"] < 100_000
    assert found.table().row_count == len(found.cycles)
    assert any(event.key.startswith("sley::aten.tanh.default ") for event in ranges.key_averages())


for name in sys.argv[1:]:
    globals()[f"check_{name}"]()
print("checked")
