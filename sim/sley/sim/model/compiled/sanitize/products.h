// Rows that MATMUL accesses.
#pragma once

#include "hooks.h"

// Lanes of activations that meet neutral weights do not count.
static void matmul_rows(Core* core, const int64_t* rows, uint32_t sums, uint32_t count, int accumulate) {
    for (uint32_t r = 0; r < count; ++r) {
        row_read(core, SPACE_SCRATCHPAD, rows[r], 0, core->sanitizer->weight_bytes);
        if (accumulate) row_read(core, SPACE_ACCUMULATOR, sums + r, 0, ACCUMULATOR_ROW_BYTES);
        row_write(core, SPACE_ACCUMULATOR, sums + r, 0, ACCUMULATOR_ROW_BYTES);
    }
}
