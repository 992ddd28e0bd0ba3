// What a VECTOR may be: the words of a chain decoded, and types of operands.
#pragma once

#include "codes.h"

typedef struct Chain {
    uint32_t binary, binary_operand, add, multiply, relu, integer_product, keep, other, function, multiply2, binary2, binary2_operand;
    uint32_t late[2], late_lanes[2], c_half, c_type, reduce, register_, silent;
} Chain;

// How many stages take a late operand, 0 or 1.
static int late_uses(const Chain* chain, int late) {
    uint32_t operand = OPERAND_LATE0 + late;
    return (chain->multiply == operand) + (chain->other == operand) + (chain->multiply2 == operand) +
           (chain->binary2_operand == operand) + (!late && chain->keep == KEEP_LATE0_NOT_ZERO);
}

static int late_is(const Chain* chain, uint32_t source, int broadcast) {
    for (int late = 0; late < 2; ++late) {
        if (!late_uses(chain, late) || chain->late[late] != source) continue;
        if (!broadcast || chain->late_lanes[late] == LANES_BROADCAST) return 1;
    }
    return 0;
}

static int uses_b(const Chain* chain) { return chain->binary_operand == OPERAND_B || late_is(chain, LATE_B, 0); }

// Whether an int32 x becomes fp32 in front of the product.
static int becomes_float(const Chain* chain, uint32_t out) {
    int product = chain->multiply && !chain->integer_product;
    return product || chain->function || chain->multiply2 || has(FLOAT_TYPES, out);
}

// Whether a chain goes with these types of a VECTOR.
static int types_are_legal(const Chain* chain, uint32_t dtype, uint32_t out) {
    return !chain->integer_product || (dtype == TYPE_INT32 && !has(FLOAT_TYPES, out));
}

// Returns whether the words are a chain of this chip.
static int chain_decode(const uint32_t* w, Chain* chain) {
    for (int k = 0; k < CHAIN_WORDS; ++k)
        if (w[k] & ~chain_masks[k]) return 0;
    *chain = (Chain){
        CHAIN_BINARY(w), CHAIN_BINARY_OPERAND(w), CHAIN_ADD(w), CHAIN_MULTIPLY(w), CHAIN_RELU(w),
        CHAIN_INTEGER_PRODUCT(w), CHAIN_KEEP(w), CHAIN_OTHER(w), CHAIN_FUNCTION(w), CHAIN_MULTIPLY2(w),
        CHAIN_BINARY2(w), CHAIN_BINARY2_OPERAND(w),
        {CHAIN_LATE0(w), CHAIN_LATE1(w)}, {CHAIN_LATE0_LANES(w), CHAIN_LATE1_LANES(w)}, CHAIN_C_HALF(w),
        CHAIN_C_TYPE(w), CHAIN_REDUCE(w), CHAIN_REGISTER(w), CHAIN_SILENT(w),
    };
    return has(BINARY_OPS, chain->binary) && has(ADDER_OPS, chain->binary2) &&
           has(ALLOWED_BINARY_OPERAND, chain->binary_operand) && has(ALLOWED_ADD, chain->add) &&
           has(ALLOWED_MULTIPLY, chain->multiply) && has(ALLOWED_OTHER, chain->other) &&
           has(ALLOWED_MULTIPLY2, chain->multiply2) && has(ALLOWED_BINARY2_OPERAND, chain->binary2_operand) &&
           has(CONDITIONS, chain->keep) && has(FUNCTIONS, chain->function) && has(LATES, chain->late[0]) &&
           has(LATES, chain->late[1]) && has(LANE_ORDERS, chain->late_lanes[0]) &&
           has(LANE_ORDERS, chain->late_lanes[1]) && has(REDUCTIONS, chain->reduce) &&
           !(chain->binary2 && has(FOLDS, chain->reduce)) && late_uses(chain, 0) < 2 && late_uses(chain, 1) < 2 &&
           !late_is(chain, LATE_A, 1) &&
           !(chain->integer_product && (!chain->multiply || chain->function || chain->multiply2));
}

// Whether rows of an operand can be of this type.
static int source_is_legal(uint32_t type, int in_scratchpad, uint32_t half, uint32_t dtype) {
    if (!has(VECTOR_TYPES, type) || (half && ELEMENTS == 1)) return 0;
    return has(BYTE_TYPES, type) || (in_scratchpad && dtype == TYPE_FP32 && !half);
}
