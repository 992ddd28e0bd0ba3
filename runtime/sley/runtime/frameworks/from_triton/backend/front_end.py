"""Triton's front end: from a function in Triton's language to the text of its TTIR."""

from __future__ import annotations

from typing import Any

from triton._C.libtriton import ir
from triton.compiler.compiler import ASTSource
from triton.tools.tensor_descriptor import TensorDescriptor

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.from_triton.backend.compiler import TARGET, SleyBackend, simplified

NAMES = {"float32": "fp32", "bfloat16": "bf16", "int8": "i8", "int32": "i32", "float16": "fp16", "bool": "i1"}
"""Elements of arrays as Triton names them."""


def ttir_of(kernel: Any, signature: dict[str, str], constants: dict[str, Any]) -> str:
    """The text of the TTIR of a ``@triton.jit`` function. ``signature``: types of its arguments as Triton names them,
    ``constexpr`` for those in ``constants``."""
    backend = SleyBackend(TARGET)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    source = ASTSource(kernel, signature, constants)
    generated = backend.get_codegen_implementation(options)
    module = source.make_ir(TARGET, options, generated, backend.get_module_map(), context)
    return str(simplified(module))


def type_of(name: str, value: Any) -> str:
    """The type of one. Raises ``BadRequest``."""
    if isinstance(value, Buffer):
        return "*" + NAMES.get(value.dtype.name, value.dtype.name)
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{NAMES.get(value.base.dtype.name, value.base.dtype.name)}{list(value.block_shape)}>"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(1 << 31) <= value < 1 << 31 else "i64"
    if isinstance(value, float):
        return "fp32"
    raise BadRequest(f"{name} is {value!r}; it is a device array or a number")
