"""Linear algebra by the names of BLAS: what ``sley.runtime.blas`` shows.

``gemm`` is planned by hand for each problem; the others are made of it and of the operators of ``sley.runtime.nn``.
"""

from sley.runtime.blas.factorizations import Factors, cholesky, qr
from sley.runtime.blas.matrices import gemv, ger, syrk, trsm
from sley.runtime.blas.vectors import asum, axpy, copy, dot, iamax, nrm2, scal, swap
from sley.runtime.nn.gemm import gemm

__all__ = [
    "Factors",
    "asum",
    "axpy",
    "cholesky",
    "copy",
    "dot",
    "gemm",
    "gemv",
    "ger",
    "iamax",
    "nrm2",
    "qr",
    "scal",
    "swap",
    "syrk",
    "trsm",
]
