"""What a GEMM computes: sizes, where its matrices lie, element types, epilogue."""

from dataclasses import dataclass
from functools import cached_property

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.epilogue import PLAIN, Epilogue


@dataclass(frozen=True)
class Strides:
    """Elements of A, B and C from each of their rows in memory to the next one, and from product to product. Those of a
    row lie side by side."""

    lda: int
    ldb: int
    ldc: int
    batch_a: int
    batch_b: int
    batch_c: int


@dataclass(frozen=True)
class Problem:
    """C[i] = op(A[i]) @ op(B[i]) for ``batch`` products; A is M x K or, if ``trans_a``, K x M in memory; B is K x N or,
    if ``trans_b``, N x K. All are row-major, and dense unless ``strides`` are given; these are ``None`` if they say no
    more than that, so that there is one problem for one layout. An operand that is ``shared`` is the same for all
    products of the batch."""

    m: int
    n: int
    k: int
    dtype: ElementType = ElementType.INT8
    trans_a: bool = False
    trans_b: bool = False
    epilogue: Epilogue = PLAIN
    batch: int = 1
    share_a: bool = False
    share_b: bool = False
    strides: Strides | None = None

    def __post_init__(self) -> None:
        given, dense = self.strides, self._dense
        if given is None:
            return
        rows_a, rows_b = self.k if self.trans_a else self.m, self.n if self.trans_b else self.k
        meant = Strides(  # nothing follows a single row, or a single product
            given.lda if rows_a > 1 else dense.lda,
            given.ldb if rows_b > 1 else dense.ldb,
            given.ldc if self.m > 1 else dense.ldc,
            given.batch_a if self.batch > 1 and not self.share_a else dense.batch_a,
            given.batch_b if self.batch > 1 and not self.share_b else dense.batch_b,
            given.batch_c if self.batch > 1 else dense.batch_c,
        )
        object.__setattr__(self, "strides", None if meant == dense else meant)

    @cached_property
    def steps(self) -> Strides:
        """The strides, of dense arrays too; from product to product 0 for an operand that is shared."""
        return self.strides or self._dense

    @property
    def _dense(self) -> Strides:
        m, n, k = self.m, self.n, self.k
        return Strides(
            m if self.trans_a else k,
            k if self.trans_b else n,
            n,
            0 if self.share_a else m * k,
            0 if self.share_b else k * n,
            m * n,
        )

    @property
    def bytes(self) -> int:
        """Of an operand's element."""
        return self.dtype.bytes

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the result needs."""
        return self.batch * self.m * self.n * self.k

    @property
    def read_bytes(self) -> int:
        """Bytes of the operands, each once."""
        a, b = (1 if shared else self.batch for shared in (self.share_a, self.share_b))
        return (a * self.m + b * self.n) * self.k * self.bytes

    @property
    def written_bytes(self) -> int:
        return self.batch * self.m * self.n * self.epilogue.result.bytes

    @property
    def bias_bound(self) -> int | None:
        """The largest absolute value of a bias whose sums cannot wrap in int32; ``None`` for sums in fp32."""
        return (1 << 31) - 1 - self.k * 128 * 128 if self.dtype is ElementType.INT8 else None

    @property
    def swappable(self) -> bool:
        """Whether C^T = op(B)^T @ op(A)^T is a problem of the same kind: of one row, or of one column whose elements
        follow each other, C^T lies in memory like C. A bias and a row of factors go with
        columns."""
        return (self.m == 1 or (self.n == 1 and self.steps.ldc == 1)) and not self.epilogue.value_rows

    def swapped(self) -> "Problem":
        """C^T as a problem, whose first operand is B."""
        s = self.strides
        return Problem(
            self.n,
            self.m,
            self.k,
            self.dtype,
            not self.trans_b,
            not self.trans_a,
            self.epilogue,
            self.batch,
            self.share_b,
            self.share_a,
            None if s is None else Strides(s.ldb, s.lda, 1, s.batch_b, s.batch_a, s.batch_c),
        )


def weight_rows(config: ChipConfig, problem: Problem) -> int:
    """Rows of weights that the first fold takes: all of the array's, unless K is shorter than a fold."""
    deep = config.fold_depth(problem.dtype)
    return -(-min(problem.k, deep) * config.array // deep)


def weight_cycles(config: ChipConfig, problem: Problem) -> int:
    """Cycles for the weights of a column tile to enter the array, and the least from one tile's MATMUL to the next
    one's. int8 takes one more to fill the rest of the array, and 3 at the least; bf16 fills it row by row."""
    rows = weight_rows(config, problem)
    return config.array if problem.dtype is ElementType.BF16 else min(max(rows + 1, 3), config.array)


@dataclass(frozen=True)
class Bound:
    """Cycles that no chip of this size can beat, by what limits it."""

    compute: int
    read: int
    write: int

    @property
    def beats(self) -> int:
        """Of the busier channel of the memory bus."""
        return max(self.read, self.write)

    @property
    def cycles(self) -> int:
        return max(self.compute, self.read, self.write)


def lower_bound(config: ChipConfig, problem: Problem) -> Bound:
    """Peak rate of the arrays; every operand byte over the memory bus once; every result byte once."""
    peak = config.cores * config.array * config.fold_depth(problem.dtype)
    return Bound(
        -(-problem.macs // peak),
        -(-problem.read_bytes // config.bus_bytes),
        -(-problem.written_bytes // config.bus_bytes),
    )
