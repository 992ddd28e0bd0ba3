"""Lines about the device in the code that Inductor generates."""

from __future__ import annotations

from torch._inductor.codegen.common import DeviceOpOverrides

from sley.runtime.frameworks.torch_device.storage import NAME


class Lines(DeviceOpOverrides):
    """Kernels run on the stream that is current, as operators do, so there is no number of one."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"{name} = lambda index: None"

    def set_device(self, device_idx: int) -> str:
        return f"torch.{NAME}.set_device({device_idx})"

    def synchronize(self) -> str:
        return f"torch.{NAME}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.{NAME}.device({device_idx})"
