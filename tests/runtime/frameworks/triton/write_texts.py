"""Writes the TTIR of all cases anew, with Triton: ``python tests/runtime/frameworks/triton/write_texts.py``."""

from typing import Any

import triton_kernels
from triton_cases import CASES, FOLDER, Case, portable


def text_of(case: Case) -> str:
    """Its TTIR from Triton's front end."""
    from sley.runtime.frameworks.from_triton.backend.front_end import ttir_of

    kernel: Any = getattr(triton_kernels, case.kernel)
    types = iter(case.types)
    signature = {name: "constexpr" if name in case.constants else next(types) for name in kernel.arg_names}
    return portable(ttir_of(kernel, signature, case.constants))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        (FOLDER / f"{case.name}.ttir").write_text(text_of(case))
