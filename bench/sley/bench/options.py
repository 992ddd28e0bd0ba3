"""Options that several commands of ``sley bench`` have."""

from enum import StrEnum
from pathlib import Path
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
Count = Annotated[int, typer.Option("--candidates", "-c", min=1, help="Tilings to measure, the likeliest first.")]
Families = Annotated[list[str] | None, typer.Option("--family", "-f", help="Only this family; repeatable.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first layers of each family.")]
Shapes = Annotated[
    Path | None, typer.Option("--shapes", help="Your own list: CSV with family,layer,M,N,K,count.", dir_okay=False)
]
MaxMacs = Annotated[int, typer.Option("--max-macs", min=1, help="Larger products run on fewer rows M.")]

CANDIDATES = 8
"""Tilings of which the fastest is kept, unless told otherwise."""
