"""Image classifiers of the onnx package, ``backend/test/data/light``: their graphs are whole, their weights stand-ins.

The stand-ins are one number for each array, and the outputs for them lie beside. Random weights are ours, with
moments that keep values in range; onnx's reference implementation says what they give, before a last softmax.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.examples.zoo.subject import Model, Subject

NAMES = {
    "resnet50": "ResNet-50: residual blocks of three convolutions",
    "densenet121": "DenseNet-121: each layer sees all before it",
    "squeezenet": "SqueezeNet: 1 x 1 and 3 x 3 side by side, few weights",
    "shufflenet": "ShuffleNet: grouped and depthwise convolutions, channels shuffled",
    "vgg19": "VGG-19: 16 large convolutions, three dense layers",
    "inception_v1": "Inception v1 (GoogLeNet): four branches a block",
    "inception_v2": "Inception v2: the same with batch norm",
    "alexnet": "AlexNet: five convolutions, three dense layers",
    "zfnet512": "ZFNet-512: AlexNet with more channels",
}
FILES = {"alexnet": "bvlc_alexnet"}
"""Names of files, where they differ."""


def load(name: str, weights: str) -> Subject:
    """Reads one. Raises ``BadRequest`` without onnx."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise BadRequest(f"{name} is in the package onnx ({error}): {extra('onnx')}") from None
    from sley.runtime.frameworks.from_onnx.importer import read_model

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    file = f"light_{FILES.get(name, name)}"
    model = onnx.load(folder / f"{file}.onnx")
    given = {entry.name for entry in model.graph.initializer}
    (image,) = (entry for entry in model.graph.input if entry.name not in given)
    shape = [side.dim_value for side in image.type.tensor_type.shape.dim]
    if weights == "random":
        _randomise(model)
        x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
        from onnx.reference import ReferenceEvaluator
        from onnx.version_converter import convert_version

        # The reference takes Softmax before opset 13 for that of 13, and Batch norm before 14 blends moments of x.
        modern = convert_version(model, 15)
        (wanted,) = ReferenceEvaluator(modern).run(None, {image.name: x})
        reference = "onnx's reference implementation"
    else:
        x = (np.arange(math.prod(shape)).reshape(shape) / math.prod(shape)).astype(np.float32)
        wanted = numpy_helper.to_array(onnx.load_tensor(folder / f"{file}_output_0.pb"))
        reference = "outputs in the package"
    return Subject(read_model(model), {image.name: x}, {model.graph.output[0].name: wanted}, reference)


def _randomise(model: Any) -> None:
    """Replaces stand-ins by random weights of the same shapes."""
    from onnx import TensorProto, helper, numpy_helper

    given = {entry.name: numpy_helper.to_array(entry) for entry in model.graph.initializer}
    users: dict[str, list[tuple[Any, int]]] = defaultdict(list)
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            users[name].append((node, place))
    random = np.random.default_rng(5)
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in given:
            kept.append(node)
            continue
        shape = tuple(given[node.input[0]].tolist())
        user, place = users[node.output[0]][0]
        while user.op_type == "Unsqueeze":
            user, place = users[user.output[0]][0]
        values = _values(random, user.op_type, place, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
        model.graph.input.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, shape))
    if kept[-1].op_type == "Softmax":  # of large logits it is 0 or 1, and says nothing of their errors
        model.graph.output[0].name = kept.pop().input[0]
    del model.graph.node[:]
    model.graph.node.extend(kept)


def _values(random: np.random.Generator, operator: str, place: int, shape: tuple[int, ...]) -> np.ndarray:
    """For an input of an operator: weights that keep the variance, scales around 1, shifts around 0."""
    noise = random.standard_normal(shape)
    if operator in ("Conv", "Gemm") and place == 1:
        return noise * math.sqrt(2 / math.prod(shape[1:]))
    if operator == "BatchNormalization" and place == 4:
        return random.uniform(0.5, 1.5, shape)
    if (operator == "BatchNormalization" and place == 1) or operator == "Mul":
        return 1 + noise / 10
    return noise / 10


MODELS = [
    Model(name, about, "`onnx`, test data", partial(load, name), ("package", "random")) for name, about in NAMES.items()
]
