// Of a command all that its timing depends on.
#pragma once

#include "../chip.h"

enum {
    WINDOW_BYTES = 1 << WINDOW_BITS,
    PLACES = WINDOW_BYTES < INTERLEAVE ? INTERLEAVE : WINDOW_BYTES,  // addresses alike modulo this are split alike
    FIT = WINDOW_BYTES < INTERLEAVE ? WINDOW_BYTES : INTERLEAVE,     // no burst is split within so many
};
enum { ROWS_TOGETHER = 1 << 30 };  // of a label of rows

// What timing can depend on of where bytes are that go behind others, which ended at `end`: whether they continue those, and
// their place, of which only that in a bus beat counts if they fit in where bursts are split, and are split `alone`.
static inline uint32_t place_label(uint32_t address, uint32_t bytes, int alone, uint32_t end) {
    int fits = alone && (address & FIT - 1) + bytes <= FIT;
    int continues = address >> LANE_BITS == (end + LANE_MASK) >> LANE_BITS;
    return (fits ? address & LANE_MASK : PLACES | (address & PLACES - 1)) | (continues ? 2 * PLACES : 0);
}

// Whether all runs of a transfer are in the same place, and no run joins the next one.
static inline int runs_alike(uint32_t bytes, uint32_t runs, uint32_t stride, uint32_t slabs, uint32_t stride2) {
    return (runs == 1 || (stride != bytes && !(stride & PLACES - 1))) && (slabs == 1 || !(stride2 & PLACES - 1));
}

// Parameters of which no twin reads more than whether a SET of them is a fault.
static inline int param_is_value(uint32_t param) {
    return param == PARAM_FILL || param == PARAM_EXCHANGE || (param >= PARAM_SPLAT0 && param <= PARAM_SPLAT3) ||
           param == PARAM_IOTA_BASE || param == PARAM_IOTA_ROW || param == PARAM_IOTA_LANE;
}

// What timing can depend on of the rows of the scratchpad from `low` to `high`: their bank, if they are in one.
static inline uint32_t rows_label(uint32_t base, int64_t low, int64_t high) {
    enum { BANK_ROWS = SCRATCHPAD_ROWS / SCRATCHPAD_BANKS };
    int together = low >= 0 && high < SCRATCHPAD_ROWS && low / BANK_ROWS == high / BANK_ROWS;
    return together ? ROWS_TOGETHER | (uint32_t)(low / BANK_ROWS) : base;
}

static inline uint32_t walk_label(const WalkJob* job) {
    if (!job->rows || job->empty) return job->base;
    int64_t low = job->base, high = job->base, left = job->rows;
    for (int k = 0; k < 3 && left > 1; ++k) {
        int64_t turns = k < 2 && job->counts[k] && job->counts[k] < left ? job->counts[k] : left;
        int64_t span = (turns - 1) * job->strides[k];
        *(span < 0 ? &low : &high) += span;
        left = (left + turns - 1) / turns;
    }
    return rows_label(job->base, low, high);
}

static inline uint32_t weights_label(const uint32_t* p, const UnitCommand* c) {
    return walk_label(&(WalkJob){c->a, c->c, {0, 0}, {p[PARAM_WEIGHT_STRIDE]}});
}

static inline uint32_t matmul_label(const uint32_t* p, const UnitCommand* c) {
    WalkJob job = {c->a, c->c, {p[PARAM_ACT_COUNT], p[PARAM_ACT_COUNT2]}};
    job.strides[0] = p[PARAM_ACT_STRIDE], job.strides[1] = p[PARAM_ACT_STRIDE2], job.strides[2] = p[PARAM_ACT_STRIDE3];
    return walk_label(&job);
}

// The same of a LOAD, whose rows are in the order of its chunks.
static inline uint32_t load_rows(const uint32_t* p, const UnitCommand* c) {
    if (FLAG(LOAD_SPACE, c->flags) != SPACE_SCRATCHPAD) return c->b;
    if (FLAG(LOAD_INTERLEAVE, c->flags) || FLAG(LOAD_TRANSPOSE, c->flags)) return c->b;
    uint64_t turns[] = {p[PARAM_CHUNKS], (uint64_t)c->c + p[PARAM_PAD_RUNS], p[PARAM_COUNT2]};
    int64_t strides[] = {(int32_t)p[PARAM_CHUNK_STRIDE], (int32_t)p[PARAM_LOCAL_STRIDE], (int32_t)p[PARAM_LOCAL_STRIDE2]};
    int64_t low = c->b, high = c->b;
    for (int k = 0; k < 3; ++k) {
        if (!turns[k] || turns[k] > 1 << 17) return c->b;
        int64_t span = (int64_t)(turns[k] - 1) * strides[k];
        *(span < 0 ? &low : &high) += span;
    }
    return rows_label(c->b, low, high);
}

// What timing can depend on of the value of a SET.
static inline uint32_t set_label(uint32_t unit, const UnitCommand* c) {
    uint32_t param = FLAG(SET_PARAM, c->flags);
    return param_is_value(param) ? set_is_bad(unit, param, c->a) : c->a;
}
