"""The backend interface of ONNX: ``prepare``, ``run_model``, ``run_node``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep, namedtupledict

from sley.runtime.device.device import Device
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.networks.compilation import CompiledNetwork, compile_network
from sley.runtime.networks.graph import Network
from sley.runtime.networks.registry import Handler

DEFAULT_ENGINE = "model:base?memory=256M"


class PreparedModel(BackendRep):
    """A model on a device, compiled for the shapes of its inputs when they come first.

    Attributes
    ----------
    folded: whether all results of the last run were known when the model was compiled: they depend on constants and
        shapes alone, so the device had nothing to do.
    """

    def __init__(
        self, network: Network, device: Device, precision: str, operators: Mapping[str, Handler] | None = None
    ) -> None:
        self.network, self.device, self.precision, self.operators = network, device, precision, operators
        self.folded = False
        self._compiled: dict[Any, CompiledNetwork] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs for inputs, in order or by name, in numpy arrays. Integers that shapes or axes depend on are taken as
        constants. Raises what ``compile_network`` raises."""
        names = list(self.network.inputs)
        given = inputs if isinstance(inputs, dict) else dict(zip(names, _listed(inputs), strict=False))
        arrays = {name: np.asarray(value) for name, value in given.items()}
        constants = {name: value for name, value in arrays.items() if name in shaping(self.network)}
        rest = {name: value for name, value in arrays.items() if name not in constants}
        key = (
            tuple((name, value.shape) for name, value in rest.items()),
            tuple((name, value.dtype.str, value.tobytes()) for name, value in constants.items()),
        )
        if key not in self._compiled:
            shapes = {name: value.shape for name, value in rest.items()}
            self._compiled[key] = compile_network(
                self.network,
                self.device,
                fold,
                shapes,
                known=constants,
                precision=self.precision,
                operators=self.operators,
            )
        compiled = self._compiled[key]
        found = compiled(**rest)
        self.folded = all(isinstance(value, np.ndarray) for value in compiled.outputs.values())
        outputs = namedtupledict("Outputs", list(self.network.outputs))
        result: tuple[Any, ...] = outputs(*(found[name] for name in self.network.outputs))
        return result


SHAPING = {
    "Reshape": (1,),
    "Expand": (1,),
    "Tile": (1,),
    "Slice": (1, 2, 3, 4),
    "Pad": (1, 2, 3),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    "Split": (1,),
    "TopK": (1,),
    "Resize": (1, 2, 3),
    "ConstantOfShape": (0,),
    "Range": (0, 1, 2),
    "OneHot": (1, 2),
    "CumSum": (1,),
    "Trilu": (1,),
    "Clip": (1, 2),
    "ReverseSequence": (1,),
    "ConvInteger": (1, 2, 3),
    "Upsample": (1,),
    "CenterCropPad": (1,),
    "Compress": (1,),
    "DFT": (1, 2),
    "STFT": (1, 3),
    "If": (0,),
    "Loop": (0, 1),
    "Dropout": (1, 2),
    "AffineGrid": (1,),
    "Col2Im": (1, 2),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    **{f"{name}Window": (0,) for name in ("Blackman", "Hamming", "Hann")},
    **{name: (1,) for name in ("Adagrad", "Adam", "Momentum")},
    **{name: (4,) for name in ("RNN", "GRU", "LSTM")},
    **{
        f"Reduce{kind}": (1,)
        for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    },
    **{name: (1,) for name in ("Conv", "ConvTranspose")},
    "QLinearConv": tuple(range(1, 9)),
}
"""Inputs that must be known when a network is compiled, by operator."""


def shaping(network: Network) -> set[str]:
    """Inputs of a network that must be known when it is compiled."""
    return {
        node.inputs[place]
        for node in network.nodes
        for place in SHAPING.get(node.operator, ())
        if place < len(node.inputs) and node.inputs[place] in network.inputs
    }


def _listed(inputs: Any) -> Sequence[NDArray[Any]]:
    return inputs if isinstance(inputs, list | tuple) else [inputs]


class SleyBackend(Backend):
    """Runs ONNX models on a Sley device; nothing is computed on the host but what depends on constants and shapes
    alone.
    """

    _devices: ClassVar[dict[str, Device]] = {}

    @classmethod
    def device(cls, engine: str) -> Device:
        """The device of an engine's URL, opened once."""
        if engine not in cls._devices:
            cls._devices[engine] = Device.open(engine)
        return cls._devices[engine]

    @classmethod
    def prepare(cls, model: ModelProto, device: str = DEFAULT_ENGINE, **kwargs: Any) -> PreparedModel:
        """A model for a device, "CPU" standing for the default engine; ``precision``: of products of float32;
        ``operators``: of one's own, as ``compile_network`` takes them."""
        engine = DEFAULT_ENGINE if device == "CPU" else device
        return PreparedModel(
            read_model(model), cls.device(engine), kwargs.get("precision", "highest"), kwargs.get("operators")
        )

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = DEFAULT_ENGINE, **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU" or device.partition(":")[0] in ("model", "fast", "rtl", "pysim")


prepare = SleyBackend.prepare
run_model = SleyBackend.run_model
supports_device = SleyBackend.supports_device
