// Rows that LOAD writes and STORE reads.
#pragma once

#include "hooks.h"

// A run that LOAD reads into rows of so many bytes: NULL if all is defined, else what is known of each byte.
static const uint8_t* loaded_run(Core* core, uint64_t address, uint64_t length, uint64_t row_bytes) {
    uint8_t* shadow = sanitizer_scratch(core, row_bytes);
    if (!bytes_load(core, address, length, shadow)) return 0;
    memset(shadow + length, DEFINED, row_bytes - length);
    return shadow;
}

// Room for what is known of the bytes of a unit of runs.
static uint8_t* loaded_unit(Core* core, uint64_t bytes) { return sanitizer_scratch(core, bytes); }

static void loaded_row(Core* core, uint32_t space, int64_t row, const uint8_t* shadow) {
    row_write(core, space, row, 0, row_bytes(space));
    if (shadow) memcpy(row_shadow(core, space, row), shadow, row_bytes(space));
}

// A part of a row that STORE copies, `to` the shadow of the run: it is written, or a copy of what LOAD found.
static void stored_row(Core* core, uint32_t space, int64_t row, int64_t count, uint8_t* to) {
    if (count > row_bytes(space)) count = row_bytes(space);
    row_order(core, space, row, 0);
    if (!enabled(core, SANITIZE_INIT)) {
        memset(to, DEFINED, count);
        return;
    }
    uint8_t* shadow = row_shadow(core, space, row);
    int64_t k = 0;
    while (k < count && shadow[k] & (DEFINED | UNDEFINED)) ++k;
    if (k < count) row_check(core, space, row, k, count - k);
    memcpy(to, shadow, count);
}
