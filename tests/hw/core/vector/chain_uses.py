"""Commands that use chains, written out."""

from vector_model import set_param, vector

from sley.abi.config import PRESETS
from sley.abi.faults import FaultCode
from sley.abi.instructions import Space
from sley.abi.types import WORD_TYPES
from sley.abi.vector.chains import WORDS, chain_parameter

NANO = PRESETS["nano"].replace(vector_chains=4)
NANO16 = NANO.replace(
    operand_types=("int8", "bf16"), vector_chains=15, vector_functions=("exp2", "reciprocal", "sigmoid", "round")
)


INT32, FP32 = WORD_TYPES


ACCUMULATORS = {"a_space": Space.ACCUMULATOR, "b_space": Space.ACCUMULATOR}


ILLEGAL = FaultCode.ILLEGAL_INSTRUCTION


def use(chain: int, a: int = 3, b: int = 70, rows: int = 2, **fields: int) -> dict:
    """A VECTOR with a chain, on accumulator rows unless the fields say otherwise."""
    return vector(a, b, rows, chain=chain, **ACCUMULATORS | fields)


def set_words(number: int, **values: int) -> list[dict]:
    """A chain from codes of its fields, with or without a meaning."""
    words = [
        layout.pack(**{name: value for name, value in values.items() if name in layout.fields}) for layout in WORDS
    ]
    return [set_param(chain_parameter(number, word), value) for word, value in enumerate(words)]
