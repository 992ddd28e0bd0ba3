// Rows and row registers that VECTOR accesses.
//
// Rows of which something is not defined give results that are not: a program may take more rows than count, and store
// those that do. It is reported where it counts: in what leaves by STORE, in products, and in what is reduced.
#pragma once

#include "hooks.h"

// The bytes of a row that an operand of this type takes.
static void vector_bytes(uint32_t space, uint32_t half, uint32_t type, int64_t* first, int64_t* count) {
    *first = 0, *count = row_bytes(space);
    if (space == SPACE_SCRATCHPAD && !has(HALF_TYPES, type)) *first = half * N, *count = N;
}

static void vector_output(Core* core, uint32_t space, int64_t row, uint32_t half, uint32_t type, const uint8_t* derived) {
    int64_t first, count;
    vector_bytes(space, half, type, &first, &count);
    row_write(core, space, row, first, count);
    if (!derived || !enabled(core, SANITIZE_INIT)) return;
    uint8_t* shadow = row_shadow(core, space, row) + first;
    for (int64_t k = 0; k < count; ++k) shadow[k] = derived[k * N / count] ? DERIVED : DEFINED;
}

// What an instruction takes of an operand.
typedef struct Source {
    const Walk* walk;
    uint32_t half, type;
    int broadcast, own;  // lanes
} Source;

// Returns whether all that a row has for the operand is defined; with `derived`, marks lanes of which it is not.
static int vector_row(Core* core, const Source* source, int64_t r, uint8_t* derived) {
    int64_t first, count, row = walk_row(source->walk, r), missing = 0;
    vector_bytes(source->walk->space, source->half, source->type, &first, &count);
    const uint8_t* shadow = row_shadow(core, source->walk->space, row) + first;
    int64_t from = source->broadcast ? r % N * count / N : 0, to = source->broadcast ? from + count / N : count;
    for (int64_t k = from; k < to; ++k) missing |= shadow[k] != DEFINED;
    if (!derived || !missing) return !missing;
    for (int64_t n = 0; n < N; ++n) {
        if (!source->own) derived[n] = 1;
        else
            for (int64_t k = n * count / N; k < (n + 1) * count / N; ++k) derived[n] |= shadow[k] != DEFINED;
    }
    return 0;
}

static int vector_lanes_are(const Chain* chain, uint32_t which, uint32_t lanes) {
    for (int late = 0; late < 2; ++late)
        if (late_uses(chain, late) && chain->late[late] == which && chain->late_lanes[late] == lanes) return 1;
    return 0;
}

// Looks at all operands. Returns a byte for each lane of each row of the result that is made of something undefined, or
// NULL if none is.
static const uint8_t* vector_sources(Core* core, const Chain* chain, const Walk* walks, const int* used, int64_t rows,
                                     const uint32_t* halves, const uint32_t* types) {
    static const uint32_t late[3] = {LATE_A, LATE_B, LATE_C};
    Source sources[3];
    int count = 0, defined = 1;
    for (int k = 0; k < 3; ++k) {
        // A that is replaced at once is not read for its values.
        int replaced = !k && chain->binary == BINARY_SECOND && chain->binary_operand != OPERAND_X && !late_is(chain, LATE_A, 0);
        if (!used[k] || replaced) continue;
        int exchanged = vector_lanes_are(chain, late[k], LANES_EXCHANGE);
        sources[count++] = (Source){&walks[k], halves[k], types[k], walks[k].broadcast, !walks[k].broadcast && !exchanged};
        for (int64_t r = 0; r < rows; r += walks[k].broadcast ? N : 1)
            row_order(core, walks[k].space, walk_row(&walks[k], r), 0);
    }
    if (!enabled(core, SANITIZE_INIT)) return 0;
    int reduces = chain->reduce != 0, last = chain->reduce == REDUCE_LAST;
    for (int k = 0; k < count; ++k)
        for (int64_t r = 0; r < rows; ++r) {
            if (vector_row(core, &sources[k], r, 0)) continue;
            defined = 0;
            if (!reduces || (last && r < rows - 1)) continue;
            int64_t first, size;
            vector_bytes(sources[k].walk->space, sources[k].half, sources[k].type, &first, &size);
            row_check(core, sources[k].walk->space, walk_row(sources[k].walk, r), first, size);
        }
    if (defined || chain->silent) return 0;
    uint8_t* derived = sanitizer_scratch(core, rows * N);
    memset(derived, 0, rows * N);
    for (int k = 0; k < count; ++k)
        for (int64_t r = 0; r < rows; ++r) vector_row(core, &sources[k], r, derived + r * N);
    return derived;
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
