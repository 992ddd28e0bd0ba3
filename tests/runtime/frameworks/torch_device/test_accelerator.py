"""What PyTorch asks of any accelerator: ``torch.accelerator``, memory, pinned memory, profiles, autocast."""

import gc

import pytest

from sley.abi.install import extra
from sley.driver import BadRequest, NoCycleCounts

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")


def test_accelerator() -> None:
    """Its functions are those of ``torch.sley``."""
    assert torch.accelerator.current_accelerator().type == "sley"
    assert torch.accelerator.device_count() == 1
    gc.collect()  # what other tests have left
    torch.sley.synchronize()
    before = torch.accelerator.memory_allocated()
    x = torch.ones(100_000, device="sley")
    torch.accelerator.synchronize()
    assert torch.accelerator.memory_allocated() - before > 300_000
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    assert torch.accelerator.memory_stats()["used"] == torch.sley.memory_allocated()
    assert torch.accelerator.max_memory_reserved() >= torch.accelerator.memory_reserved() > 300_000
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free < total
    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()
    assert torch.float32 in torch.accelerator.get_device_capability()["supported_dtypes"]
    assert x.sum().item() == 100_000


def test_memory_is_counted_from_a_reset() -> None:
    """Peaks fall to what is in use; sums begin with it."""
    kept = torch.ones(1000, device="sley")
    gone = torch.ones(300_000, device="sley")
    torch.sley.synchronize()
    del gone
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"] >= kept.nbytes
    assert stats["allocated_bytes.all.allocated"] == stats["allocated_bytes.all.current"]
    assert stats["reserved_bytes.all.peak"] == torch.accelerator.memory_reserved() < 1_200_000 + (64 << 20)
    gone = torch.empty(500_000, device="sley")
    del gone
    torch.sley.synchronize()
    found = torch.accelerator.memory_stats()
    assert torch.accelerator.max_memory_allocated() == stats["used"] + 2_000_000
    assert found["allocated_bytes.all.freed"] == 2_000_000
    assert found["allocated_bytes.all.current"] == stats["used"]


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
        with pytest.raises(RuntimeError, match=r"device sley:1; there is sley:0; torch\.sley\.set_engine"):
            torch.accelerator.set_device_index(1)
    with pytest.raises(BadRequest, match=r"an engine for sley:2; the next device is sley:1"):
        torch.sley.set_engine("model:base", 2)
    assert torch.zeros(3, device="sley:0").device == torch.device("sley:0")


def test_autocast() -> None:
    """Products in bfloat16, sums in float32; gradients have the type of the weights; another type is refused aloud."""
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(5, 3).to("sley"), torch.randn(4, 5, device="sley")
    with torch.autocast("sley"):
        assert torch.is_autocast_enabled("sley")
        y = layer(x)
        assert y.dtype is torch.bfloat16
        loss = torch.nn.functional.cross_entropy(y, torch.arange(4, device="sley") % 3)
        assert loss.dtype is torch.float32
        with torch.autocast("sley", enabled=False):
            assert layer(x).dtype is torch.float32
    loss.backward()
    assert layer.weight.grad.dtype is torch.float32
    torch.testing.assert_close(y.cpu().float(), layer(x).detach().cpu(), rtol=2e-2, atol=2e-2)
    with (
        pytest.warns(UserWarning, match="only supports dtypes of torch.bfloat16"),
        torch.autocast("sley", torch.float16),
    ):
        assert layer(x).dtype is torch.float32


def test_a_storage_comes_with_a_tensor() -> None:
    with pytest.raises(NotImplementedError, match=r"a storage of 8 bytes alone on sley: torch\.empty has one"):
        torch.UntypedStorage(8, device="sley")


def test_pinned_memory() -> None:
    """A loader with pinned memory gives batches, which move as all others."""
    assert torch.ones(2, pin_memory=True).to("sley").tolist() == [1, 1]
    values = torch.arange(12.0).reshape(6, 2)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(values), batch_size=4, pin_memory=True)
    found = [batch.to("sley", non_blocking=True).cpu() for (batch,) in loader]
    torch.testing.assert_close(torch.cat(found), values)


def test_a_profile_needs_cycles() -> None:
    with pytest.raises(NoCycleCounts), torch.sley.profile():
        pass
