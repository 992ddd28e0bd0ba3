// Accesses to local rows: whether they have an order, and whether what is read was written before.
#pragma once

#include "clocks.h"

static const uint8_t unit_of_agent[AGENTS] = {UNIT_SEQUENCER, UNIT_LOAD, UNIT_STORE, UNIT_MATRIX, UNIT_VECTOR, UNIT_MATRIX};

static uint8_t* row_shadow(Core* core, uint32_t space, int64_t row) {
    Sanitizer* s = core->sanitizer;
    int64_t index = row + (space == SPACE_ACCUMULATOR ? SCRATCHPAD_ROWS : 0);
    uint8_t* shadow = space == SPACE_ACCUMULATOR ? s->accumulator[row] : s->scratchpad[row];
    if (s->shadow_block[index] != s->block) {
        s->shadow_block[index] = s->block;
        memset(shadow, NOTHING, space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROW_BYTES : ROW_BYTES);
    }
    return shadow;
}

static Record* row_record(Core* core, uint32_t space, int64_t row) {
    Sanitizer* s = core->sanitizer;
    Record* record = &s->records[row + (space == SPACE_ACCUMULATOR ? SCRATCHPAD_ROWS : 0)];
    if (record->block != s->block) *record = (Record){s->block};
    return record;
}

static void row_raced(Core* core, uint32_t space, int64_t row, int writes, uint32_t other, uint32_t pc, int other_writes) {
    if (!enabled(core, SANITIZE_RACE)) return;
    report(core, (Report){.finding = FOUND_ROW_RACE, .writes = writes, .space = space, .row = (uint32_t)row,
                          .other_unit = unit_of_agent[other], .other_pc = pc, .other_writes = other_writes});
}

static inline void row_order(Core* core, uint32_t space, int64_t row, int writes) {
    Sanitizer* s = core->sanitizer;
    Record* record = row_record(core, space, row);
    if (record->written > s->now.at[record->writer])
        row_raced(core, space, row, writes, record->writer, record->write_pc, 1);
    if (!writes) {
        record->read[s->agent] = s->now.at[s->agent], record->read_pc[s->agent] = s->pc;
        return;
    }
    for (uint32_t a = 0; a < AGENTS; ++a) {
        if (record->read[a] > s->now.at[a]) row_raced(core, space, row, writes, a, record->read_pc[a], 0);
        record->read[a] = 0;
    }
    record->writer = s->agent, record->written = s->now.at[s->agent], record->write_pc = s->pc;
}

// Reports the first byte that is not DEFINED. What was reported counts as written, so that it is reported once.
static inline void row_check(Core* core, uint32_t space, int64_t row, int64_t first, int64_t count) {
    uint8_t* shadow = row_shadow(core, space, row) + first;
    uint8_t all = DEFINED;
    for (int64_t k = 0; k < count; ++k) all &= shadow[k];
    if (all == DEFINED) return;
    int64_t k = 0;
    while (shadow[k] == DEFINED) ++k;
    const Record* record = row_record(core, space, row);
    Report found = {.space = space, .row = (uint32_t)row, .address = (uint32_t)(first + k)};
    found.finding = shadow[k] == NOTHING     ? FOUND_UNWRITTEN_ROW
                    : shadow[k] == UNDEFINED ? FOUND_UNDEFINED_ROW
                                             : FOUND_DERIVED_ROW;
    if (shadow[k] != NOTHING)
        found.other_unit = unit_of_agent[record->writer], found.other_pc = record->write_pc, found.other_writes = 1;
    report(core, found);
    memset(shadow, DEFINED, count);
}

// The instruction reads these bytes of a row, and their values count.
static inline void row_read(Core* core, uint32_t space, int64_t row, int64_t first, int64_t count) {
    row_order(core, space, row, 0);
    if (enabled(core, SANITIZE_INIT)) row_check(core, space, row, first, count);
}

// The instruction writes these bytes of a row.
static inline void row_write(Core* core, uint32_t space, int64_t row, int64_t first, int64_t count) {
    row_order(core, space, row, 1);
    if (enabled(core, SANITIZE_INIT)) memset(row_shadow(core, space, row) + first, DEFINED, count);
}

static inline int64_t row_bytes(uint32_t space) { return space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROW_BYTES : ROW_BYTES; }

static void register_read(Core* core, uint32_t reg) {
    if (!enabled(core, SANITIZE_INIT) || core->sanitizer->registers[reg]) return;
    report(core, (Report){.finding = FOUND_UNWRITTEN_REGISTER, .row = reg});
}

static void register_write(Core* core, uint32_t reg) { core->sanitizer->registers[reg] = 1; }
