"""Options that several commands of ``sley bench`` have."""

from enum import StrEnum
from typing import Annotated

import typer

OperandName = StrEnum("OperandName", {"INT8": "int8", "BF16": "bf16"})
ResultName = StrEnum("ResultName", {"INT32": "int32", "FP32": "float32", "INT8": "int8", "BF16": "bfloat16"})

ENGINE_NAMES = ("--engine", "--device", "-e")
"""One option: simulators are engines, a board is a device, and a URL opens either."""
Engine = Annotated[
    str, typer.Option(*ENGINE_NAMES, help="Engine URL, for example fast:base, pysim:nano, model:quad?memory=128M.")
]
DType = Annotated[OperandName, typer.Option("--dtype", help="Type of A and B.")]
ResultType = Annotated[
    ResultName | None, typer.Option("--result", help="Type of C; default int32, or float32 for bf16.")
]
