"""Writes every generated file of the repository: ``python -m sley.abi.export DIRECTORY`` (``docs/reference``).

With ``--check`` it writes nothing and fails if a file differs from what it would write.
"""

import argparse
import sys
from pathlib import Path

from sley.abi.config import preset
from sley.abi.export.c_header import c_header
from sley.abi.export.markdown import (
    counters_page,
    faults_page,
    instructions_page,
    packets_page,
    registers_page,
    types_page,
)
from sley.abi.export.systemrdl import systemrdl
from sley.abi.registers import RegisterMap

PRESET = "base"


def generated_files() -> dict[str, str]:
    """Contents by file name."""
    registers = RegisterMap(preset(PRESET))
    return {
        "registers.md": registers_page(registers),
        "packets.md": packets_page(),
        "instructions.md": instructions_page(),
        "types.md": types_page(),
        "faults.md": faults_page(),
        "counters.md": counters_page(),
        "sley.rdl": systemrdl(registers),
        "sley.h": c_header(registers),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sley.abi.export", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    stale = []
    for name, text in generated_files().items():
        path = options.directory / name
        if options.check:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    if stale:
        print(f"out of date: {', '.join(stale)}; run python -m sley.abi.export {options.directory}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
