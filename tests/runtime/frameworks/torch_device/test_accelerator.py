"""What PyTorch asks of any accelerator: ``torch.accelerator``, streams, pinned memory, profiles; one device alone."""

import pytest

from sley.abi.install import extra
from sley.driver import BadRequest

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")


def test_accelerator() -> None:
    """Its functions are those of ``torch.sley``."""
    assert torch.accelerator.current_accelerator().type == "sley"
    assert torch.accelerator.device_count() == 1
    before = torch.accelerator.memory_allocated()
    x = torch.ones(100_000, device="sley")
    torch.accelerator.synchronize()
    assert torch.accelerator.memory_allocated() - before > 300_000
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    assert torch.accelerator.memory_stats()["used"] == torch.sley.memory_allocated()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free < total
    torch.accelerator.empty_cache()
    assert x.sum().item() == 100_000


def test_streams() -> None:
    """Work inside goes to the stream; a stream that is set stays; events have cycles between them."""
    first = torch.sley.current_stream()
    with torch.sley.Stream() as own:
        assert torch.sley.current_stream() == own
        start, end = torch.sley.Event(), torch.sley.Event()
        start.record()
        x = torch.ones(64, 64, device="sley") @ torch.ones(64, 64, device="sley")
        end.record()
    assert torch.sley.current_stream() == first
    assert start.cycles(end) > 0
    torch.sley.synchronize()
    assert x[0, 0].item() == 64
    torch.sley.set_stream(own)
    assert torch.sley.current_stream() == own
    torch.sley.set_stream(first)
    assert torch.sley.current_stream() == first
    with pytest.raises(BadRequest, match=r"is no stream of torch\.sley: make one with torch\.sley\.Stream"):
        torch.sley.set_stream(torch.Stream(device="sley"))


def test_a_second_device_is_refused() -> None:
    """It is not the first one under another name."""
    for make in (
        lambda: torch.zeros(3, device="sley:1"),
        lambda: torch.ones(3, device="sley").to("sley:1"),
        lambda: torch.ones(3).to("sley:1"),
        lambda: torch.arange(3, device="sley:1"),
        lambda: torch.sley.synchronize(1),
        lambda: torch.sley.set_device(1),
    ):
        with pytest.raises(BadRequest, match=r"device sley:1; there is sley:0"):
            make()
    assert torch.zeros(3, device="sley:0").device == torch.device("sley:0")


def test_pinned_memory() -> None:
    """A loader with pinned memory gives batches, which move as all others."""
    values = torch.arange(12.0).reshape(6, 2)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(values), batch_size=4, pin_memory=True)
    found = [batch.to("sley", non_blocking=True).cpu() for (batch,) in loader]
    torch.testing.assert_close(torch.cat(found), values)


def test_profile() -> None:
    """Cycles of each operator, forward and backward; ranges under PyTorch's profiler."""
    x = torch.ones(8, 8, device="sley", requires_grad=True)
    with torch.profiler.profile() as ranges, torch.sley.profile() as found:
        torch.tanh(x @ x).sum().backward()
    assert found.calls["aten.mm.default"] == 3, "one forward and two backward"
    assert found.calls["aten.tanh_backward.default"] == 1
    assert found.cycles["aten.mm.default"] > 0
    assert found.table().row_count == len(found.cycles)
    assert any(event.key.startswith("sley::aten.tanh.default ") for event in ranges.key_averages())
