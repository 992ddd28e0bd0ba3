"""Cycles of a small network: two layers of 256 bf16 features with hardswish between, a batch of 64.

``python examples/changes/network.py [engine]``: by default the exact model of ``base``.
"""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from sley.runtime import Device
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.networks.compilation import compile_network

ENGINE = "model:base?cycles=on&memory=16M"
BATCH, FEATURES = 64, 256


def network(activation: str) -> object:
    """Its model, of ONNX."""
    random = np.random.default_rng(1)
    weights = [random.standard_normal((FEATURES, FEATURES)).astype(np.float32) / 16 for _ in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node(activation, ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w1"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [BATCH, FEATURES]) for name in "xy"]
    known = [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(weights)]
    graph = helper.make_graph(nodes, "changes", ends[:1], ends[1:], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def cycles(engine: str, activation: str = "HardSwish", **options: object) -> int:
    """Of a run whose programs are on the device, from its doorbell to its fence."""
    with Device.open(engine) as device:
        compiled = compile_network(read_model(network(activation)), device, fold, precision="medium", **options)
        compiled(np.random.default_rng(2).standard_normal((BATCH, FEATURES)).astype(np.float32))
        with compiled.stream.timed() as timing:
            compiled.launch()
        return timing.cycles


if __name__ == "__main__":
    print(f"{cycles(*sys.argv[1:2] or [ENGINE]):,} cycles")
