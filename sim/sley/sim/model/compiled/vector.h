// What VECTOR, VROW and VFOLD compute.
#pragma once

#include "chain.h"

typedef struct Walk {
    int64_t first, stride;
    int broadcast;  // a row serves N rows
    uint32_t space;
} Walk;

static inline int64_t walk_row(const Walk* walk, int64_t r) {
    return walk->first + (walk->broadcast ? r / N : r) * walk->stride;
}

#ifdef SANITIZE
#include "sanitize/operands.h"
#endif

// The chain of a VECTOR; returns 0 if it or the flags mean nothing on this chip.
static int vector_chain(const Core* core, Word w, Chain* chain) {
    uint32_t dtype = VECTOR_DTYPE(w), out = VECTOR_OUT(w), number = VECTOR_CHAIN(w), op = VECTOR_B_OP(w);
    if (!has(WORD_TYPES, dtype) || !has(WORD_TYPES | VECTOR_TYPES, out)) return 0;
    if (VECTOR_OUT_HALF(w) && (has(HALF_TYPES, out) || ELEMENTS == 1)) return 0;
    if (!source_is_legal(VECTOR_A_TYPE(w), VECTOR_A_SPACE(w) == SPACE_SCRATCHPAD, VECTOR_A_HALF(w), dtype)) return 0;
    if (!source_is_legal(VECTOR_B_TYPE(w), VECTOR_B_SPACE(w) == SPACE_SCRATCHPAD, VECTOR_B_HALF(w), dtype)) return 0;
    if (!number) {
        if (!has(SHORT_OPS, op)) return 0;
        *chain = (Chain){.binary = op, .relu = VECTOR_RELU(w)};
        if (op) chain->binary_operand = OPERAND_B;
        if (VECTOR_BIAS(w)) chain->add = OPERAND_ROW0;
        if (VECTOR_SCALE(w)) chain->multiply = OPERAND_ROW1;
        return 1;
    }
    if (number > CHAINS || op || VECTOR_BIAS(w) || VECTOR_SCALE(w) || VECTOR_RELU(w)) return 0;
    if (!chain_decode(core->chains[number], chain) || !types_are_legal(chain, dtype, out)) return 0;
    return source_is_legal(chain->c_type, VECTOR_B_SPACE(w) == SPACE_ACCUMULATOR, chain->c_half, dtype);
}

// The words of a row that is read.
static void source_row(const Core* core, int64_t row, uint32_t space, uint32_t half, uint32_t type, uint32_t dtype,
                       uint32_t* to) {
    if (space == SPACE_ACCUMULATOR) {
        memcpy(to, core->accumulator[row], ACCUMULATOR_ROW_BYTES);
        return;
    }
    const uint8_t* from = core->scratchpad[row];
    if (has(HALF_TYPES, type)) {
        const uint16_t* halves = (const uint16_t*)from;
        if (type == TYPE_BF16)
            for (int n = 0; n < N; ++n) to[n] = from_bf16(halves[n]);
        else
            for (int n = 0; n < N; ++n) to[n] = from_fp16(halves[n]);
        return;
    }
    for (int n = 0; n < N; ++n) {
        int32_t value = type == TYPE_UINT8 ? from[half * N + n] : (int8_t)from[half * N + n];
        to[n] = dtype == TYPE_FP32 ? from_int32(value) : (uint32_t)value;
    }
}

static void write_row(Core* core, int64_t row, uint32_t half, uint32_t out, const uint32_t* x, int is_float) {
    if (out == TYPE_FP32) {
        memcpy(core->accumulator[row], x, ACCUMULATOR_ROW_BYTES);
    } else if (out == TYPE_INT32) {
        for (int n = 0; n < N; ++n) core->accumulator[row][n] = is_float ? (uint32_t)to_int32(x[n]) : x[n];
    } else if (has(HALF_TYPES, out)) {
        uint16_t* to = (uint16_t*)core->scratchpad[row];
        if (out == TYPE_BF16)
            for (int n = 0; n < N; ++n) to[n] = to_bf16(x[n]);
        else
            for (int n = 0; n < N; ++n) to[n] = to_fp16(x[n]);
    } else {
        uint8_t* to = core->scratchpad[row] + half * N;
        int32_t low = out == TYPE_UINT8 ? 0 : -128, high = out == TYPE_UINT8 ? 255 : 127;
        for (int n = 0; n < N; ++n) to[n] = (uint8_t)clip(is_float ? to_int32(x[n]) : (int32_t)x[n], low, high);
    }
}

static int unit_vector(Core* core, const Command* command) {
    const int64_t* p = core->params[UNIT_VECTOR];
    Word w = command->word;
    Chain chain;
    int64_t rows = command->c;
    if (!vector_chain(core, w, &chain)) return fail(core, FAULT_ILLEGAL_INSTRUCTION, UNIT_VECTOR, command->pc, 0);
    if (!rows) return 0;
    uint32_t dtype = VECTOR_DTYPE(w), out = VECTOR_OUT(w), b_space = VECTOR_B_SPACE(w);
    uint32_t c_space = b_space == SPACE_SCRATCHPAD ? SPACE_ACCUMULATOR : SPACE_SCRATCHPAD;
    uint32_t out_space = has(WORD_TYPES, out) ? SPACE_ACCUMULATOR : SPACE_SCRATCHPAD;
    enum { A, B, C, OUT, WALKS };
    int used[WALKS] = {1, uses_b(&chain), late_is(&chain, LATE_C, 0), !chain.silent};
    Walk walks[WALKS] = {
        {command->a, p[PARAM_A_STRIDE], 0, VECTOR_A_SPACE(w)},
        {p[PARAM_B_ROW], p[PARAM_B_STRIDE], late_is(&chain, LATE_B, 1), b_space},
        {p[PARAM_C_ROW], p[PARAM_C_STRIDE], late_is(&chain, LATE_C, 1), c_space},
        {command->b, p[PARAM_OUT_STRIDE], 0, out_space},
    };
    uint32_t halves[3] = {VECTOR_A_HALF(w), VECTOR_B_HALF(w), chain.c_half};
    uint32_t types[3] = {VECTOR_A_TYPE(w), VECTOR_B_TYPE(w), chain.c_type};
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < WALKS; ++k) {
            int64_t row = walk_row(&walks[k], r);
            int64_t limit = walks[k].space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS;
            if (used[k] && outside(row, limit)) return fail(core, FAULT_LOCAL_ADDRESS, UNIT_VECTOR, command->pc, row);
        }
    HOOK(vector_registers(core, &chain);)
    HOOK(const uint8_t* derived = vector_sources(core, &chain, walks, used, rows, halves, types);)
    int64_t count = rows * N;
    uint32_t* x = core_scratch(core, 7 * count * sizeof *x);
    uint32_t* sources[3] = {x + count, x + 2 * count, x + 3 * count};
    for (int k = A; k <= C; ++k)
        for (int64_t r = 0; used[k] && r < rows; ++r)
            source_row(core, walk_row(&walks[k], r), walks[k].space, halves[k], types[k], dtype, sources[k] + r * N);
    memcpy(x, sources[A], count * sizeof *x);
    Operands in = {sources[A], sources[B], sources[C], rows};
    int is_float = chain_rows(core, &chain, &in, x, x + 4 * count, dtype, out);
    reduce_rows(core, &chain, x, rows, is_float);
    for (int64_t r = 0; used[OUT] && r < rows; ++r) {
        int64_t row = walk_row(&walks[OUT], r);
        write_row(core, row, VECTOR_OUT_HALF(w), out, x + r * N, is_float);
        HOOK(vector_output(core, out_space, row, VECTOR_OUT_HALF(w), out, derived ? derived + r * N : 0);)
    }
    return 0;
}

static int unit_vrow(Core* core, const Command* command) {
    uint32_t reg = VROW_ROW(command->word);
    if (reg >= ROW_REGISTERS) return fail(core, FAULT_ILLEGAL_INSTRUCTION, UNIT_VECTOR, command->pc, 0);
    if (VROW_SPLAT(command->word)) {
        for (int n = 0; n < N; ++n) core->rows[reg][n] = command->a;
        HOOK(register_write(core, reg);)
        return 0;
    }
    if (command->a >= ACCUMULATOR_ROWS) return fail(core, FAULT_LOCAL_ADDRESS, UNIT_VECTOR, command->pc, command->a);
    memcpy(core->rows[reg], core->accumulator[command->a], ACCUMULATOR_ROW_BYTES);
    HOOK(row_read(core, SPACE_ACCUMULATOR, command->a, 0, ACCUMULATOR_ROW_BYTES);)
    HOOK(register_write(core, reg);)
    return 0;
}

static int unit_vfold(Core* core, const Command* command) {
    uint32_t kind = VFOLD_REDUCE(command->word), dtype = VFOLD_DTYPE(command->word);
    if (!CHAINS || !has(FOLDS, kind) || !has(WORD_TYPES, dtype))
        return fail(core, FAULT_ILLEGAL_INSTRUCTION, UNIT_VECTOR, command->pc, 0);
    fold(core, VFOLD_ROW(command->word), kind, dtype == TYPE_FP32);
    HOOK(register_write(core, VFOLD_ROW(command->word));)
    return 0;
}
