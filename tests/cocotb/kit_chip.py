"""The smallest chip with everything that a softmax needs."""

from sley.abi.config import preset

KIT = preset("nano").replace(
    name="kit",
    operand_types=("int8", "bf16"),
    vector_chains=4,
    vector_functions=("exp2", "reciprocal"),
    program_words=512,
)
