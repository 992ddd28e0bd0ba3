"""A process without a compiler of C++, for ``test_devices.py``: what works there, and what the warning says."""

import warnings

import pytest
import torch

from sley.driver import NoCycleCounts

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import sley.runtime.frameworks.torch  # noqa: F401 (makes the device)
(text,) = [str(warning.message) for warning in said if "part in C++" in str(warning.message)]
assert "no C++ compiler: there is none of g++, clang++, c++" in text
assert "apt install g++" in text
assert "torch.Generator(device='sley'), torch.Stream" in text

x = torch.ones(8, 8, device="sley", requires_grad=True)
(x @ x).tanh().sum().backward()
assert x.grad.device == torch.device("sley:0")
torch.manual_seed(7)
first = torch.randn(3, device="sley").tolist()
state = torch.sley.get_rng_state()
second = torch.randn(3, device="sley").tolist()
torch.sley.set_rng_state(state)
assert torch.randn(3, device="sley").tolist() == second
torch.manual_seed(7)
assert torch.randn(3, device="sley").tolist() == first != second

own, other = torch.sley.Stream(), torch.sley.Stream()
start, end = torch.sley.Event(enable_timing=True), torch.sley.Event(enable_timing=True)
assert end.query()
with own:
    assert torch.sley.current_stream() == own != torch.sley.default_stream()
    start.record()
    y = x @ x
    end.record()
other.wait_stream(own)
assert not own.query()
with pytest.raises(NoCycleCounts):
    torch.sley.cycles(start, end)
assert own.query()
torch.sley.set_stream(other)
assert torch.sley.current_stream() == other
torch.accelerator.synchronize()
assert y[0, 0].item() == 8

with pytest.raises(torch.sley.NoNativePart, match="a second device needs a part in C"):
    torch.sley.set_engine("model:base", 1)
with pytest.raises(NotImplementedError, match="PrivateUse1HooksInterface"):
    torch.Generator(device="sley")
print("checked", first)
