"""Writes the TTIR of all cases anew, with Triton: ``python tests/runtime/frameworks/triton/write_texts.py``."""

from typing import Any

import triton_bench_kernels
import triton_kernels
from triton_cases import BENCH, BENCH_FOLDER, CASES, FOLDER, Case, portable, structure


def text_of(case: Case) -> str:
    """Its TTIR from Triton's front end."""
    from sley.runtime.frameworks.from_triton.backend.front_end import ttir_of

    kernel: Any = getattr(triton_kernels, case.kernel)
    types = iter(case.types)
    signature = {name: "constexpr" if name in case.constants else next(types) for name in kernel.arg_names}
    return portable(ttir_of(kernel, signature, case.constants))


def bench_text(name: str) -> str:
    """The TTIR of a kernel of ``sley bench triton``, without places in its source."""
    from sley.runtime.frameworks.from_triton.backend.front_end import ttir_of

    kernel: Any = getattr(triton_bench_kernels, f"bench_{name}")
    types = {argument: "*bf16" if argument.endswith("_ptr") else "i32" for argument in kernel.arg_names}
    constants = BENCH[name]
    return structure(ttir_of(kernel, types | dict.fromkeys(constants, "constexpr"), constants)).strip() + "\n"


if __name__ == "__main__":
    for name in BENCH:
        (BENCH_FOLDER / f"{name}.ttir").write_text(bench_text(name))
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        (FOLDER / f"{case.name}.ttir").write_text(text_of(case))
