"""What ``sley.runtime`` shows, and what importing it costs."""

import subprocess
import sys

import numpy as np

import sley.runtime
from sley.runtime import Client, Device

HEAVY = {"amaranth", "matplotlib", "sklearn", "triton", "typer", "rich"}


def test_every_name_is_there() -> None:
    for name in sley.runtime.__all__:
        value = getattr(sley.runtime, name)
        assert value.__doc__, f"{name} has no docstring"


def test_the_import_is_light() -> None:
    code = f"import sys, sley.runtime; print(sorted({HEAVY} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_arrays_streams_and_graphs_are_of_their_device(device: Device) -> None:
    array = device.array(np.zeros(3, np.int8))
    assert Device.of(array) is Device.of(array[1:]) is array.device is device.stream.device is device
    assert isinstance(device, Client)
    assert [stream.queue for stream in device.streams] == list(device.queues)
