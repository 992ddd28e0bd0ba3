"""How matrices lie in an array."""

from dataclasses import dataclass

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer


@dataclass(frozen=True)
class Stored:
    """A matrix, or a batch of them, in the last two axes of an array, as a GEMM takes it: in rows, the elements of each
    side by side.

    ``transposed``: these rows are the array's columns. ``row``, ``batch``: elements from one to the next, and from one
    matrix to the next.
    """

    transposed: bool
    row: int
    batch: int

    @classmethod
    def of(cls, name: str, array: Buffer) -> "Stored":
        """Raises ``BadRequest`` if neither rows nor columns lie so. ``name``: of the operand, for the message."""
        found = cls._of(array)
        if found is None:
            raise BadRequest(
                f"{name} is {array!r}; gemm takes matrices whose rows, or whose columns, have their elements side by "
                f"side, a stride of {array.dtype.itemsize} in one of the last two axes: give a copy, "
                f"device.array({name}.numpy())"
            )
        return found

    @classmethod
    def of_result(cls, array: Buffer) -> "Stored":
        """Raises ``BadRequest`` if its rows do not lie so."""
        found = cls._of(array)
        if found is None or found.transposed:
            raise BadRequest(
                f"out is {array!r}; gemm writes rows whose elements lie side by side, a stride of "
                f"{array.dtype.itemsize} in the last axis: give another array, or let gemm make one"
            )
        return found

    @classmethod
    def _of(cls, array: Buffer) -> "Stored | None":
        size = array.dtype.itemsize
        rows, columns = array.shape[-2:]
        *batch, down, across = (stride // size for stride in array.strides)
        if columns == 1 or across == 1:
            return cls(False, down, sum(batch))
        if rows == 1 or down == 1:
            return cls(True, across, sum(batch))
        return None
