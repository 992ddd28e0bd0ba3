// Rows that WEIGHTS and MATMUL access.
#pragma once

#include "hooks.h"

// A weight that nobody wrote counts where an activation meets it that is not zero: the end of K is padded with zeros in
// the activations alone. Of bf16 it always counts, as 0 times something that is not a number is none.

static void weights_begin(Core* core, uint32_t count) {
    Weights* w = &core->sanitizer->weights;
    w->count = count, w->pc = core->sanitizer->pc, w->undefined = 0;
}

static void weights_row(Core* core, uint32_t r, int64_t row) {
    Weights* w = &core->sanitizer->weights;
    row_order(core, SPACE_SCRATCHPAD, row, 0);
    if (!enabled(core, SANITIZE_INIT)) return;
    const uint8_t* shadow = row_shadow(core, SPACE_SCRATCHPAD, row);
    w->rows[r] = (uint32_t)row;
    for (int e = 0; e < ELEMENTS; ++e) {
        uint8_t all = DEFINED;
        for (int n = 0; n < N; ++n) all &= shadow[n * ELEMENTS + e];
        w->missing[r * ELEMENTS + e] = all != DEFINED;
        w->undefined |= all != DEFINED;
    }
}

static void weights_check(Core* core, const uint8_t* activations, int is_bf16) {
    Weights* w = &core->sanitizer->weights;
    for (uint32_t k = 0; k < w->count * ELEMENTS; ++k) {
        if (!w->missing[k] || (!is_bf16 && !activations[k])) continue;
        report(core, (Report){.finding = FOUND_UNWRITTEN_WEIGHTS, .space = SPACE_SCRATCHPAD, .row = w->rows[k / ELEMENTS],
                              .address = k, .other_unit = UNIT_MATRIX, .other_pc = w->pc});
        w->undefined = 0;
        return;
    }
}

// Lanes of activations that meet neutral weights do not count.
static void matmul_rows(Core* core, const int64_t* rows, uint32_t sums, uint32_t count, int accumulate, int is_bf16) {
    const Weights* w = &core->sanitizer->weights;
    for (uint32_t r = 0; r < count; ++r) {
        row_read(core, SPACE_SCRATCHPAD, rows[r], 0, w->count * ELEMENTS);
        if (w->undefined) weights_check(core, core->scratchpad[rows[r]], is_bf16);
        if (accumulate) row_read(core, SPACE_ACCUMULATOR, sums + r, 0, ACCUMULATOR_ROW_BYTES);
        row_write(core, SPACE_ACCUMULATOR, sums + r, 0, ACCUMULATOR_ROW_BYTES);
    }
}
