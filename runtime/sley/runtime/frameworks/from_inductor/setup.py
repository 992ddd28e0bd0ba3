"""The device ``sley`` among the devices that Inductor generates code for."""

from __future__ import annotations

from torch._dynamo import trace_rules
from torch._dynamo.device_interface import register_interface_for_device
from torch._inductor.codegen.common import register_device_op_overrides

from sley.runtime.frameworks.from_inductor import entry
from sley.runtime.frameworks.from_inductor.interface import SleyInterface
from sley.runtime.frameworks.from_inductor.lines import Lines
from sley.runtime.frameworks.torch_device.storage import NAME


def register() -> None:
    """Makes ``torch.compile(model)`` generate Triton kernels for tensors of the device."""
    for portion in ("sley.abi", "sley.driver", "sley.runtime", "sley.sim"):
        trace_rules.add(portion)  # operators of the device are no frames to compile
    register_interface_for_device(NAME, SleyInterface)
    register_device_op_overrides(NAME, Lines())
    entry.register()
