// What WEIGHTS and MATMUL compute.
#pragma once

#include "core.h"
#include "float32.h"

#ifdef SANITIZE
#include "sanitize/products.h"
#endif

static int check_type(Core* core, const Command* command, uint32_t type) {
    return has(OPERAND_TYPES, type) ? 0 : fail(core, FAULT_ILLEGAL_INSTRUCTION, UNIT_MATRIX, command->pc, 0);
}

static int unit_weights(Core* core, const Command* command) {
    uint32_t type = WEIGHTS_DTYPE(command->word);
    if (command->c < 1 || command->c > N) return fail(core, FAULT_BAD_PARAMETER, UNIT_MATRIX, command->pc, command->c);
    if (check_type(core, command, type)) return 1;
    int64_t stride = core->params[UNIT_MATRIX][PARAM_WEIGHT_STRIDE];
    for (uint32_t r = 0; r < command->c; ++r) {
        int64_t row = command->a + r * stride;
        if (outside(row, SCRATCHPAD_ROWS)) return fail(core, FAULT_LOCAL_ADDRESS, UNIT_MATRIX, command->pc, row);
    }
    HOOK(weights_begin(core, command->c);)
    for (uint32_t r = 0; r < N; ++r) {
        if (r < command->c) {
            memcpy(core->weights[r], core->scratchpad[command->a + r * stride], ROW_BYTES);
            HOOK(weights_row(core, r, command->a + r * stride);)
        } else {
            // The neutral lane: 0, and of bf16 -0, whose product with +0 changes no sum.
            for (uint32_t b = 0; b < ROW_BYTES; ++b) core->weights[r][b] = type == TYPE_BF16 && b & 1 ? 0x80 : 0;
        }
    }
    return 0;
}

// A row of the array's columns, and several rows side by side, whose additions need not wait for each other.
typedef float Floats __attribute__((vector_size(4 * N), aligned(4)));
typedef uint32_t Words __attribute__((vector_size(4 * N), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(4 * N), aligned(4)));
#define ROWS_AT_ONCE 4
#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < rows; ++r)

// Sums of one pass are integers below 2^24, which fp32 holds exactly.
static inline void int8_rows(const int8_t* const* activations, const Floats* weights, Integers* sums, int rows,
                             int accumulate) {
    Floats pass[ROWS_AT_ONCE] = {0};
    for (int k = 0; k < N * ELEMENTS; ++k)
        EACH_ROW pass[r] += (float)activations[r][k] * weights[k];
    for (int r = 0; r < rows; ++r) {
        Integers sum = __builtin_convertvector(pass[r], Integers);
        sums[r] = accumulate ? (Integers)((Words)sums[r] + (Words)sum) : sum;
    }
}

#if HAS_BF16
static inline Words flush_words(Words x) { return x & ((Words)((x & INFINITE) != 0) | SIGN); }

// NaNs become the canonical one at the end: what is added to one does not change that it is one.
static inline void bf16_rows(const uint16_t* const* activations, const Floats* weights, Words* sums, int rows,
                             int accumulate) {
    Words sum[ROWS_AT_ONCE] = {0};
    for (int r = 0; accumulate && r < rows; ++r) sum[r] = flush_words(sums[r]);
    for (int k = 0; k < N; ++k)
        EACH_ROW {
            Words product = flush_words((Words)(as_float(from_bf16(activations[r][k])) * weights[k]));
            sum[r] = flush_words((Words)((Floats)sum[r] + (Floats)product));
        }
    for (int r = 0; r < rows; ++r) {
        Words nan = (Words)((sum[r] & MAGNITUDE) > INFINITE);
        sums[r] = (sum[r] & ~nan) | (nan & NOT_A_NUMBER);
    }
}
#endif

static int unit_matmul(Core* core, const Command* command) {
    const int64_t* p = core->params[UNIT_MATRIX];
    uint32_t count = command->c, type = MATMUL_DTYPE(command->word), accumulate = MATMUL_ACCUMULATE(command->word);
    if (check_type(core, command, type)) return 1;
    if (!count) return 0;
    int64_t last = (int64_t)command->b + count - 1;
    if (last >= ACCUMULATOR_ROWS) {
        int64_t first = command->b > ACCUMULATOR_ROWS ? command->b : ACCUMULATOR_ROWS;
        return fail(core, FAULT_LOCAL_ADDRESS, UNIT_MATRIX, command->pc, first);
    }
    int64_t inner = p[PARAM_ACT_COUNT] ? p[PARAM_ACT_COUNT] : count;
    int64_t middle = p[PARAM_ACT_COUNT2] ? p[PARAM_ACT_COUNT2] : count;
    int64_t* rows = core_scratch(core, count * sizeof *rows);
    for (int64_t r = 0, i = 0, j = 0, k = 0; r < count; ++r) {
        rows[r] = command->a + i * p[PARAM_ACT_STRIDE] + j * p[PARAM_ACT_STRIDE2] + k * p[PARAM_ACT_STRIDE3];
        if (outside(rows[r], SCRATCHPAD_ROWS))
            return fail(core, FAULT_LOCAL_ADDRESS, UNIT_MATRIX, command->pc, rows[r]);
        if (++i < inner) continue;
        i = 0;
        if (++j < middle) continue;
        j = 0, ++k;
    }
    HOOK(matmul_rows(core, rows, command->b, count, accumulate, type == TYPE_BF16);)
    int is_bf16 = type == TYPE_BF16;
    Floats weights[N * ELEMENTS];
    for (int k = 0; k < N; ++k) {
        float* row = (float*)&weights[is_bf16 ? k : k * ELEMENTS];
        const int8_t* bytes = (const int8_t*)core->weights[k];
        const uint16_t* halves = (const uint16_t*)core->weights[k];
        if (is_bf16)
            for (int n = 0; n < N; ++n) row[n] = as_float(from_bf16(halves[n]));
        else
            for (int e = 0; e < ELEMENTS; ++e)
                for (int n = 0; n < N; ++n) row[e * N + n] = bytes[n * ELEMENTS + e];
    }
    for (uint32_t r = 0; r < count; r += ROWS_AT_ONCE) {
        const void* activations[ROWS_AT_ONCE] = {0};
        int at_once = count - r < ROWS_AT_ONCE ? (int)(count - r) : ROWS_AT_ONCE;
        for (int k = 0; k < at_once; ++k) activations[k] = core->scratchpad[rows[r + k]];
        void* sums = core->accumulator[command->b + r];
#if HAS_BF16
        if (is_bf16) {
            if (at_once == ROWS_AT_ONCE) bf16_rows((void*)activations, weights, sums, ROWS_AT_ONCE, accumulate);
            else bf16_rows((void*)activations, weights, sums, at_once, accumulate);
            continue;
        }
#endif
        if (at_once == ROWS_AT_ONCE) int8_rows((void*)activations, weights, sums, ROWS_AT_ONCE, accumulate);
        else int8_rows((void*)activations, weights, sums, at_once, accumulate);
    }
    return 0;
}
