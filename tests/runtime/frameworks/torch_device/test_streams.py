"""``torch.Stream`` and ``torch.Event`` on the hardware queues of the device."""

import pytest

from sley.abi.install import extra
from sley.driver import BadRequest, NoCycleCounts

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

from sley.runtime.frameworks.torch_device.engine import device  # noqa: E402


def test_work_goes_to_the_queue_of_its_stream() -> None:
    """Inside ``with``, and after ``set_stream``; other queues get none."""
    first = torch.accelerator.current_stream()
    assert first == torch.sley.current_stream() == torch.sley.default_stream()
    one, two = torch.Stream(device="sley"), torch.sley.Stream()
    assert len({first.stream_id, one.stream_id, two.stream_id}) == 3
    x = torch.ones(8, 8, device="sley")
    torch.sley.synchronize()
    with one:
        assert torch.sley.current_stream() == one
        assert device().stream is device().streams[one.stream_id]
        y = x @ x
        with torch.sley.stream(two), torch.sley.stream(None):
            z = x + x
            assert torch.accelerator.current_stream() == two
        assert torch.accelerator.current_stream() == one
        assert [queue.pending > 0 for queue in device().queues] == [
            number in (one.stream_id, two.stream_id) for number in range(len(device().queues))
        ]
        assert not one.query()
        one.synchronize()
        assert one.query()
    assert torch.accelerator.current_stream() == first
    torch.accelerator.synchronize()
    assert (y[0, 0].item(), z[0, 0].item()) == (8, 2)
    for own in (one, first):
        torch.sley.set_stream(own)
        assert torch.accelerator.current_stream() == own
    with pytest.raises(BadRequest, match=r"is no stream of the device sley: make one with torch\.sley\.Stream"):
        torch.sley.set_stream(3)


def test_events() -> None:
    """An event that is not recorded is over, and has no time; an engine without cycles refuses to say some."""
    start, end = (torch.Event(device="sley", enable_timing=True) for _ in range(2))
    assert start.query()
    with pytest.raises(ValueError, match="must be recorded before"):
        start.elapsed_time(end)
    own, timed = (torch.sley.Event(enable_timing=True) for _ in range(2))
    x = torch.ones(40, 40, device="sley")
    torch.sley.synchronize()
    own.record()
    start.record()
    for _ in range(3):
        x = x @ x * 0.025
    end.record()
    timed.record()
    assert not end.query()
    end.synchronize()
    assert end.query()
    with pytest.raises(NoCycleCounts):
        torch.sley.cycles(own, timed)
    with pytest.raises(NoCycleCounts):
        start.elapsed_time(end)


def test_a_stream_waits_for_another() -> None:
    """By ``wait_stream``, ``wait_event`` and ``Event.wait``: its work begins behind that of the other one."""
    one, two = torch.Stream(device="sley"), torch.Stream(device="sley")
    x = torch.ones(48, 48, device="sley")
    _ = x @ x, x + x
    torch.sley.synchronize()
    for wait in (
        lambda: two.wait_stream(one),
        lambda: two.wait_event(one.record_event()),
        lambda: one.record_event().wait(two),
    ):
        with one:
            y = x @ x
        wait()
        with two:
            z = y + y
            y.record_stream(two)
        torch.sley.synchronize()
        assert torch.equal(z.cpu(), torch.full((48, 48), 96.0))


def test_backward_runs_on_the_stream_of_forward() -> None:
    own = torch.Stream(device="sley")
    x = torch.ones(8, 8, device="sley", requires_grad=True)
    torch.sley.synchronize()
    with own:
        y = torch.tanh(x).sum()
    torch.sley.synchronize()
    y.backward()
    assert device().queues[own.stream_id].pending > 0
    torch.sley.synchronize()
    torch.testing.assert_close(x.grad.cpu(), 1 - torch.tanh(torch.ones(8, 8)) ** 2, rtol=1e-4, atol=1e-5)
