// The twin of sley.hw.core.matrix.accumulate: rows in flight through the array, to their accumulator rows.
#pragma once

#include "abi.h"
#include "twin.h"

enum { ISSUE_SLOTS = 1 << 32 - __builtin_clz(WRITE_LATENCY_BF16) };  // more than there are in flight

// What the streamer did in a cycle: a row was granted; so many MATMULs are complete with it.
typedef struct IssueSlot {
    uint32_t read, write;  // low bits of cycles
    uint32_t dest;
    uint8_t row, accumulate, lasts;
} IssueSlot;

// Types do not mix, so slots are read, and written, in the order in which they came.
typedef struct Accumulate {
    IssueSlot slots[ISSUE_SLOTS];
    uint32_t reading, writing, end;  // counts of slots
    uint32_t entering;               // bit k: a row is at the array's entry in k cycles

    const IssueSlot *read, *write;  // in this cycle, or none
} Accumulate;

static inline void accumulate_abort(Accumulate* a) { a->reading = a->writing = a->end = a->entering = 0; }

static inline int accumulate_idle(const Accumulate* a) { return a->writing == a->end; }

static inline IssueSlot* accumulate_slot(Accumulate* a, uint32_t count) { return &a->slots[count % ISSUE_SLOTS]; }

static inline void accumulate_outputs(Accumulate* a, int64_t now) {
    const IssueSlot *read = accumulate_slot(a, a->reading), *write = accumulate_slot(a, a->writing);
    a->read = a->reading != a->end && read->read == (uint32_t)now ? read : 0;
    a->write = a->writing != a->end && write->write == (uint32_t)now ? write : 0;
}

// A clock edge, but for the slot of this cycle.
static inline void accumulate_tick(Accumulate* a) {
    a->entering >>= 1;
    a->reading += a->read != 0;
    a->writing += a->write != 0;
}

// The slot of this cycle.
static inline void accumulate_issue(
    Accumulate* a, int64_t now, int row, int lasts, uint32_t dest, int accumulate, int bf16) {
    uint32_t read = now + (bf16 ? READ_LATENCY_BF16 : READ_LATENCY_INT8);
    uint32_t write = now + (bf16 ? WRITE_LATENCY_BF16 : WRITE_LATENCY_INT8);
    *accumulate_slot(a, a->end++) = (IssueSlot){read, write, dest, row, row & accumulate, lasts};
    a->entering |= row << (SRAM_READ - 1);
}
