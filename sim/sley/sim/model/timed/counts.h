// Performance counters, as sley.hw.counters counts them: which cycles they miss while they are frozen, too.
#pragma once

#include "abi.h"
#include "twin.h"

enum { CLASS_BITS = 4, CLASS_GROUPS = 5, CLASS_DELAY = 2 };

// Groups of classes: one of each group counts in every cycle, `CLASS_BITS` of `packed` tell which.
typedef struct Classes {
    uint64_t counts[CLASS_GROUPS][GROUP_COUNTERS];
    uint32_t pipeline[CLASS_DELAY];  // behind the events, the oldest last
    uint32_t packed, groups;         // what was counted in the last cycles,
    uint64_t run;                    // so many of them
} Classes;

static inline void classes_flush(Classes* c) {
    for (uint32_t group = 0; group < c->groups; ++group)
        c->counts[group][c->packed >> CLASS_BITS * group & GROUP_COUNTERS - 1] += c->run;
    c->run = 0;
}

static inline void classes_tick(Classes* c, uint32_t packed, int delays, int freeze) {
    uint32_t now = c->pipeline[delays - 1];
    if (!freeze) {
        if (now != c->packed) classes_flush(c), c->packed = now;
        ++c->run;
    }
    for (int k = delays - 1; k; --k) c->pipeline[k] = c->pipeline[k - 1];
    c->pipeline[0] = packed;
}

// What moved in a cycle: events as bits, and sums of bytes.
typedef struct Amounts {
    uint64_t counts[GROUP_COUNTERS];
    uint32_t events;  // of the cycle before
} Amounts;

static inline void amounts_tick(Amounts* a, uint32_t events, int freeze) {
    if (!freeze)
        for (uint32_t left = a->events; left; left &= left - 1) ++a->counts[__builtin_ctz(left)];
    a->events = events;
}
