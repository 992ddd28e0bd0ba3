"""What Triton's compiler does for Sley: its own front end, passes on TTIR, and the text of that as the program.

TTIR is as far as Triton goes: what a kernel becomes depends on the numbers that it is launched with, so the rest is
done then.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget, Language

from sley.driver import BadRequest

TARGET = GPUTarget("sley", "1", 1)
"""Sley as Triton names targets. All chips have the same TTIR."""


@dataclass(frozen=True)
class SleyOptions:
    """What Triton's front end asks of a target, and options of launches that have no meaning here."""

    num_warps: int = 1
    num_ctas: int = 1
    num_stages: int = 2
    warp_size: int = 1
    maxnreg: int | None = None
    extern_libs: Any = None
    debug: bool = False
    sanitize_overflow: bool = False
    arch: str = "1"
    backend_name: str = "sley"
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    enable_fp_fusion: bool = False
    launch_cooperative_grid: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    ir_override: str | None = None

    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()


class SleyBackend(BaseBackend):
    """The compiler of the target."""

    binary_ext = "sley"
    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "sley")

    def hash(self) -> str:
        return "sley-1"

    def parse_options(self, options: dict[str, Any]) -> SleyOptions:
        known = SleyOptions.__dataclass_fields__
        return SleyOptions(**{name: value for name, value in options.items() if name in known and value is not None})

    def pack_metadata(self, metadata: Any) -> Any:
        return metadata

    def get_codegen_implementation(self, options: SleyOptions) -> dict[str, Any]:
        return {"min_dot_size": lambda first, second: (1, 1, 1), "convert_custom_types": None}

    def get_module_map(self) -> dict[str, ModuleType]:
        from sley.runtime.frameworks.from_triton.backend import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """TTIR is all that is needed."""

    def add_stages(self, stages: dict[str, Any], options: SleyOptions, language: Language) -> None:
        if language is not Language.TRITON:
            raise BadRequest("Sley takes kernels in Triton's language, not in Gluon's")
        stages["ttir"] = lambda module, metadata: simplified(module)
        stages["sley"] = lambda module, metadata: _finished(module, metadata)

    @staticmethod
    def parse_attr(description: str) -> list[Any]:
        return []

    @staticmethod
    def get_int_specialization(value: int, **options: Any) -> str:
        return ""

    @staticmethod
    def get_tensor_specialization(value: Any, **options: Any) -> str:
        return ""


def simplified(module: Any) -> Any:
    """TTIR with functions inlined, and what is computed twice, or always the same, once."""
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.ttir.add_triton_licm(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "ttir")
    return module


def _finished(module: Any, metadata: dict[str, Any]) -> bytes:
    """The text, and what Triton wants to know of a program."""
    metadata |= {"name": module.get_entry_func_name(), "shared": 0, "tmem_size": None}
    return str(module).encode()
