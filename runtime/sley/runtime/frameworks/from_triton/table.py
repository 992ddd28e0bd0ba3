"""The page of operations of TTIR: ``python -m sley.runtime.frameworks.from_triton.table docs/reference/triton.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from sley.runtime.frameworks.from_triton import plan
from sley.runtime.frameworks.from_triton.conversion import LOWERINGS, NOTES
from sley.runtime.frameworks.from_triton.floats import DIFFERENCES
from sley.runtime.frameworks.from_triton.refusal import REASONS

COMMAND = f"python -m {plan.__package__}.table docs/reference/triton.md"
HEAD = f"""# Triton operations

What of TTIR, Triton's IR, a [Triton kernel](../guides/triton.md) may have, as `{COMMAND}`
writes it; do not edit. Everything else is refused, with the line of the kernel.

| operation | what it becomes |
|---|---|
"""
LOOPS = {
    "scf.yield": "what a region hands on",
    "tt.return": "the end of the kernel",
    "cf.br": "as `scf.if`",
    "cf.cond_br": "as `scf.if`",
    "tt.func": "the kernel",
}
"""What the regions that are converted are made of."""


def page() -> str:
    """The text of the page."""
    notes = {**NOTES, **DIFFERENCES, **LOOPS}
    rows = [f"| `{name}` | {notes[name]} |" for name in sorted({*LOWERINGS, *LOOPS})]
    refused = [f"| `{name}` | {reason} |" for name, reason in sorted(REASONS.items())]
    middle = "\n\n## Refused, and why\n\n| operation | reason |\n|---|---|\n"
    return HEAD + "\n".join(rows) + middle + "\n".join(refused) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
