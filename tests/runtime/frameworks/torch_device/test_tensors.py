"""Tensors on the device ``sley``: views, copies, types, files, memory; needs the extra ``torch``."""

import copy
import io
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
sley_torch = pytest.importorskip("sley.runtime.frameworks.torch")
GENERATOR = torch.Generator().manual_seed(3)


def pair(*shape: int) -> tuple[Any, Any]:
    x = torch.randn(shape, generator=GENERATOR)
    return x.clone(), x.to("sley")


def same(found: Any, wanted: Any) -> None:
    assert found.device.type == "sley"
    assert found.dtype == wanted.dtype
    assert torch.equal(found.cpu(), wanted)


WRITES = {
    "slice": lambda x: x[1:, 2].mul_(3),
    "steps": lambda x: x[::2, ::3].add_(1),
    "transposed": lambda x: x.t()[2].fill_(7),
    "strided": lambda x: x.as_strided((2, 3), (7, 2), 1).copy_(torch.ones(3, device=x.device)),
    "column": lambda x: x.view(-1)[4::5].zero_(),
    "diagonal": lambda x: x.diagonal().neg_(),
    "all of it": lambda x: x.relu_(),
    "all of it, turned": lambda x: x.t().mul_(torch.arange(5.0, device=x.device)),
    "over itself": lambda x: x[1:].copy_(x[:-1].clone() + x[1:]),
    "out": lambda x: torch.mul(x[0], 2, out=x[3]),
    "by index": lambda x: x.index_put_((torch.tensor([2, 0], device=x.device),), torch.zeros((), device=x.device)),
    "unfolded": lambda x: x[0].unfold(0, 3, 3)[1].add_(5),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_through_views(name: str) -> None:
    """What is written through a view is in the tensor, and in views that were there before."""
    x, y = pair(5, 7)
    seen, own = x.t(), y.t()
    WRITES[name](x)
    WRITES[name](y)
    same(y, x)
    same(own.contiguous(), seen.contiguous())


def test_expanded() -> None:
    """Elements that are there more than once are read right by what adds, gathers and multiplies, and not written."""
    x, y = pair(4, 1)
    wide, own = x.expand(4, 3), y.expand(4, 3)
    torch.testing.assert_close(own.sum().cpu(), wide.sum())
    torch.testing.assert_close(own.cumsum(1).cpu(), wide.cumsum(1))
    torch.testing.assert_close((own.t() @ own).cpu(), wide.t() @ wide)
    same(own[[1, 3]], wide[[1, 3]])
    same(own.contiguous(), wide.contiguous())
    with pytest.raises(RuntimeError, match="more than one of its elements is one place"):
        own.fill_(1)


def test_types() -> None:
    """int64 is int32 on the device; others are refused by name, and values that do not fit by value."""
    numbers = torch.tensor([5, -(2**31), 2**31 - 1])
    same(numbers.to("sley"), numbers)
    with pytest.raises(OverflowError, match=str(2**31)):
        torch.tensor([1, 2**31]).to("sley")
    with pytest.raises(OverflowError, match="keeps integers in 32 bits"):
        torch.full((2,), 2**40, device="sley")
    for dtype in (torch.float64, torch.float16, torch.complex64, torch.uint8, torch.int16):
        with pytest.raises(torch.sley.UnsupportedDtype, match=f"{dtype} on the device sley"):
            torch.ones(2, dtype=dtype).to("sley")
    with pytest.raises(torch.sley.UnsupportedDtype, match="does not reinterpret"):
        torch.ones(2, device="sley").view(torch.int32) + 1
    same(torch.tensor([1.7, -1.7, 0.0]).to("sley").to(torch.int32), torch.tensor([1, -1, 0], dtype=torch.int32))
    same(torch.tensor([1, 0, 3]).to("sley").bool(), torch.tensor([True, False, True]))
    assert (torch.ones(2, dtype=torch.bfloat16, device="sley") + torch.ones(2, device="sley")).dtype is torch.float32


def test_integers() -> None:
    """Quotients and remainders of all of int32, exactly."""
    x = torch.tensor([7, -7, 2**31 - 1, -(2**31), 123456789, 5, 0])
    for y in (torch.tensor([2, 2, 3, 7, -10007, -9, 4]), torch.tensor([-3, 5, -1, 2**31 - 1, 11, 6, -1])):
        for mode in ("floor", "trunc"):
            same(torch.div(x.to("sley"), y.to("sley"), rounding_mode=mode), torch.div(x, y, rounding_mode=mode))
        same(x.to("sley") % y.to("sley"), x % y)


def test_indices_are_checked() -> None:
    x = torch.arange(5.0, device="sley")
    same(x[torch.tensor([-1, 0], device="sley")], torch.tensor([4.0, 0.0]))
    for number in (5, -6):
        with pytest.raises(IndexError, match=f"index {number} is out of bounds for dimension with size 5"):
            x[torch.tensor([0, number], device="sley")]
    same(x[x > 2], torch.tensor([3.0, 4.0]))


def test_files_and_copies() -> None:
    x, y = pair(3, 4)
    numbers = torch.arange(6, device="sley")
    file = io.BytesIO()
    torch.save({"y": y, "part": y[1], "numbers": numbers, "narrow": y.bfloat16()}, file)
    file.seek(0)
    found = torch.load(file)
    same(found["y"], x)
    same(found["numbers"], torch.arange(6))
    same(found["narrow"], x.bfloat16())
    found["part"].zero_()
    assert not found["y"][1].any()  # views stay views
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu")["y"], x)
    other = copy.deepcopy(y)
    other.zero_()
    same(y, x)


def test_text() -> None:
    assert "device='sley:0'" in repr(torch.tensor([1.5, 2.0]).to("sley"))
    assert "1.5000, 2.0000" in repr(torch.tensor([1.5, 2.0]).to("sley"))


def test_memory() -> None:
    torch.sley.empty_cache()
    before = torch.sley.memory_allocated()
    x = torch.empty(1 << 16, device="sley")
    view = x[5:]
    assert torch.sley.memory_allocated() >= before + (1 << 18)
    del x
    assert torch.sley.memory_allocated() >= before + (1 << 18)  # the view keeps it
    del view
    torch.sley.empty_cache()
    assert torch.sley.memory_allocated() <= before
    assert torch.sley.device_count() == 1
    assert torch.accelerator.current_accelerator() == torch.device("sley")


def test_streams() -> None:
    """Work goes to the stream that is current; events order it, and time it."""
    x = torch.ones(1000, device="sley")
    start, end, stream = torch.sley.Event(), torch.sley.Event(), torch.sley.Stream()
    start.record()
    stream.wait_event(start)
    with torch.sley.stream(stream):
        assert torch.sley.current_stream() == stream
        y = x * 2
        end.record()
    assert torch.sley.current_stream() == torch.sley.default_stream()
    torch.sley.current_stream().wait_stream(stream)
    same(y + 1, torch.full((1000,), 3.0))
    end.synchronize()
    assert end.query()
    torch.sley.synchronize()
