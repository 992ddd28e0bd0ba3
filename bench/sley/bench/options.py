"""Options that several commands of ``sley bench`` have."""

from enum import StrEnum
from typing import Annotated

import typer

OperandName = StrEnum("OperandName", {"INT8": "int8", "BF16": "bf16"})
ResultName = StrEnum("ResultName", {"INT32": "int32", "FP32": "float32", "INT8": "int8", "BF16": "bfloat16"})

DType = Annotated[OperandName, typer.Option("--dtype", help="Type of A and B.")]
ResultType = Annotated[
    ResultName | None, typer.Option("--result", help="Type of C; default int32, or float32 for bf16.")
]
TransA = Annotated[bool, typer.Option("--trans-a", help="A is stored as K x M.")]
TransB = Annotated[bool, typer.Option("--trans-b", help="B is stored as N x K.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Products in one call.")]
