// The twin of sley.hw.core.vector.kind: what a command of the vector unit is.
#pragma once

#include "chain_words.h"
#include "unit_params.h"

enum { VECTOR_COUNT_BITS = 16 };  // of the number of rows

typedef struct VectorKind {
    uint8_t set, vector, vrow, vfold;
    uint8_t chained;  // a VECTOR with a chain
    uint8_t too_many, empty;
    uint8_t refused;  // a fault, whatever the parameters and the chain are
    uint8_t runs;     // a VROW, or a VECTOR without a chain that has rows, and is no such fault
} VectorKind;

static inline int vector_flags_are_legal(uint32_t flags) {
    uint32_t dtype = FLAG(VECTOR_DTYPE, flags), out = FLAG(VECTOR_OUT, flags), half = FLAG(VECTOR_OUT_HALF, flags);
    int a = FLAG(VECTOR_A_SPACE, flags) == SPACE_SCRATCHPAD, b = FLAG(VECTOR_B_SPACE, flags) == SPACE_SCRATCHPAD;
    return has(SHORT_OPS, FLAG(VECTOR_B_OP, flags)) && has(WORD_TYPES, dtype) && has(WORD_TYPES | VECTOR_TYPES, out) &&
           FLAG(VECTOR_CHAIN, flags) <= CHAINS && !(half && (has(HALF_TYPES, out) || ELEMENTS == 1)) &&
           source_is_legal(FLAG(VECTOR_A_TYPE, flags), a, FLAG(VECTOR_A_HALF, flags), dtype) &&
           source_is_legal(FLAG(VECTOR_B_TYPE, flags), b, FLAG(VECTOR_B_HALF, flags), dtype);
}

static inline VectorKind vector_kind(const UnitCommand* command) {
    uint32_t op = command->op, flags = command->flags;
    VectorKind kind = {op == OP_SET, op == OP_VECTOR, op == OP_VROW, CHAINS && op == OP_VFOLD};
    kind.empty = !command->c;
    if (kind.vector) {
        kind.chained = FLAG(VECTOR_CHAIN, flags) != 0;
        kind.too_many = command->c >> VECTOR_COUNT_BITS != 0;
        kind.refused = kind.too_many || !vector_flags_are_legal(flags);
        kind.runs = !kind.refused && !kind.chained && !kind.empty;
    } else if (kind.vrow) {
        kind.refused = FLAG(VROW_ROW, flags) >= ROW_REGISTERS;
        kind.runs = !kind.refused;
    } else {
        kind.refused = !kind.set && !kind.vfold;
    }
    return kind;
}

// Whether a chain that is one of this chip goes with the flags of a VECTOR.
static inline int vector_chain_is_legal(const Chain* chain, uint32_t flags) {
    uint32_t dtype = FLAG(VECTOR_DTYPE, flags);
    int c_in_scratchpad = FLAG(VECTOR_B_SPACE, flags) == SPACE_ACCUMULATOR;
    return !(FLAG(VECTOR_B_OP, flags) | FLAG(VECTOR_BIAS, flags) | FLAG(VECTOR_SCALE, flags) | FLAG(VECTOR_RELU, flags)) &&
           types_are_legal(chain, dtype, FLAG(VECTOR_OUT, flags)) &&
           source_is_legal(chain->c_type, c_in_scratchpad, chain->c_half, dtype);
}
