// The twin of sley.hw.core.matrix.accumulate: rows in flight through the array, to their accumulator rows.
#pragma once

#include "abi.h"
#include "twin.h"

enum { ISSUE_SLOTS = WRITE_LATENCY_BF16 + 2 };

// What the streamer did in a cycle: a row was granted; so many MATMULs are complete with it.
typedef struct IssueSlot {
    int64_t read, write;  // cycles
    uint32_t dest;
    uint8_t row, accumulate, lasts;
} IssueSlot;

// Types do not mix, so slots are read, and written, in the order in which they came.
typedef struct Accumulate {
    IssueSlot slots[ISSUE_SLOTS];
    uint32_t reading, writing, end;
    uint8_t entering;  // bit k: a row is at the array's entry in k cycles

    const IssueSlot *read, *write;  // in this cycle, or none
} Accumulate;

static inline void accumulate_abort(Accumulate* a) { a->reading = a->writing = a->end = a->entering = 0; }

static inline int accumulate_idle(const Accumulate* a) { return a->writing == a->end; }

static inline void accumulate_outputs(Accumulate* a, int64_t now) {
    a->read = a->write = 0;
    if (a->reading != a->end && a->slots[a->reading].read == now) a->read = &a->slots[a->reading];
    if (a->writing != a->end && a->slots[a->writing].write == now) a->write = &a->slots[a->writing];
}

static inline uint32_t accumulate_behind(uint32_t place) { return place + 1 == ISSUE_SLOTS ? 0 : place + 1; }

// A clock edge, but for the slot of this cycle.
static inline void accumulate_tick(Accumulate* a) {
    a->entering >>= 1;
    if (a->read) a->reading = accumulate_behind(a->reading);
    if (a->write) a->writing = accumulate_behind(a->writing);
}

// The slot of this cycle.
static inline void accumulate_issue(
    Accumulate* a, int64_t now, int row, int lasts, uint32_t dest, int accumulate, int bf16) {
    a->slots[a->end] = (IssueSlot){
        now + (bf16 ? READ_LATENCY_BF16 : READ_LATENCY_INT8),
        now + (bf16 ? WRITE_LATENCY_BF16 : WRITE_LATENCY_INT8), dest, row, row && accumulate, lasts};
    a->end = accumulate_behind(a->end);
    a->entering |= row << (SRAM_READ - 1);
}
