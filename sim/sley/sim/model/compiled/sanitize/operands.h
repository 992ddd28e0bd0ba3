// Rows and row registers that VECTOR accesses.
#pragma once

#include "hooks.h"

// The bytes of a row that an operand of this type takes.
static void vector_row(Core* core, uint32_t space, int64_t row, uint32_t half, uint32_t type, int writes) {
    int64_t first = 0, count = row_bytes(space);
    if (space == SPACE_SCRATCHPAD && !has(HALF_TYPES, type)) first = half * N, count = N;
    if (writes) row_write(core, space, row, first, count);
    else row_read(core, space, row, first, count);
}

// Operand A, B or C. A that is replaced at once is not read for its values.
static void vector_source(Core* core, const Chain* chain, const Walk* walk, int operand, int64_t rows,
                          const uint32_t* halves, const uint32_t* types) {
    if (!operand && chain->binary == BINARY_SECOND && chain->binary_operand != OPERAND_X && !late_is(chain, LATE_A, 0))
        return;
    for (int64_t r = 0; r < rows; r += walk->broadcast ? N : 1)
        vector_row(core, walk->space, walk_row(walk, r), halves[operand], types[operand], 0);
}

static void vector_registers(Core* core, const Chain* chain) {
    const uint32_t operands[] = {
        chain->binary ? chain->binary_operand : 0,   chain->add, chain->multiply, chain->keep ? chain->other : 0,
        chain->multiply2, chain->binary2 ? chain->binary2_operand : 0,
    };
    for (uint32_t k = 0; k < sizeof operands / sizeof *operands; ++k) {
        uint32_t reg = operands[k] - OPERAND_ROW0;
        if (operands[k] >= OPERAND_ROW0 && reg < ROW_REGISTERS) register_read(core, reg);
    }
    if (chain->reduce == REDUCE_LAST) register_write(core, chain->register_);
}
