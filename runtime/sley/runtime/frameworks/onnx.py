"""ONNX models on a Sley device: ``prepare(model, "model:base").run(inputs)``, the interface of ONNX's backends."""

from sley.runtime.frameworks.from_onnx.backend import PreparedModel, SleyBackend, prepare, run_model, supports_device
from sley.runtime.frameworks.from_onnx.importer import read_model, supported

__all__ = ["PreparedModel", "SleyBackend", "prepare", "read_model", "run_model", "supported", "supports_device"]
