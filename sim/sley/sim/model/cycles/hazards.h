// The twin of sley.hw.core.matrix.hazards: from which cycle on a MATMUL that accumulates may issue rows.
// Without bf16 `blocked` of the gateware means nothing while no first row waits, and is another then.
#pragma once

#include "abi.h"
#include "twin.h"

enum { HAZARD_PLACES = HAS_BF16 ? 16 : 2 };

#define HAZARDS_PORTS(IN, OUT)                                                                               \
    IN(start, "start") IN(begin, "begin") IN(end, "end") IN(accumulate, "accumulate") IN(bf16, "bf16")      \
    IN(last, "last") OUT(blocked, "blocked") OUT(full, "full")

typedef struct HazardPlace {
    uint32_t begin, end, hazard;
    int64_t until;  // cycles before it are less than `hazard` behind its last row
} HazardPlace;

typedef struct Hazards {
    uint32_t start, begin, end, accumulate, bf16, last, blocked, full;

    HazardPlace places[HAZARD_PLACES];
    uint32_t place;  // of the next MATMUL
    int64_t free;    // the last one that started may issue its first row in this cycle
    int64_t now;     // of the block alone
} Hazards;

static inline void hazards_abort(Hazards* h) { memset(h, 0, sizeof *h); }

// There is no place for another MATMUL. Without bf16 the last two are enough.
static inline int hazards_full(const Hazards* h, int64_t now) { return HAS_BF16 && now < h->places[h->place].until; }

// The MATMUL that started last issues its last row, or ends without.
static inline void hazards_end(Hazards* h, int64_t now) {
    HazardPlace* last = &h->places[(h->place ? h->place : HAZARD_PLACES) - 1];
    last->until = now + last->hazard;
}

// A MATMUL starts that writes the rows from `begin` to before `end`; those before it have ended.
static inline void hazards_start(Hazards* h, uint32_t begin, uint32_t end, int accumulate, int bf16) {
    h->free = 0;
    for (int k = 0; accumulate && k < HAZARD_PLACES; ++k) {
        const HazardPlace* other = &h->places[k];
        int64_t free = other->until + 1 - (int64_t)(other->end - begin);
        if (other->until && other->begin < end && begin < other->end && free > h->free) h->free = free;
    }
    h->places[h->place] = (HazardPlace){begin, end, bf16 ? HAZARD_CYCLES_BF16 : HAZARD_CYCLES_INT8, 0};
    if (++h->place == HAZARD_PLACES) h->place = 0;
}

static void hazards_reset(Hazards* h, const uint32_t* parameters) { memset(h, 0, sizeof *h); }

static void hazards_outputs(Hazards* h) {
    h->blocked = h->now < h->free;
    h->full = hazards_full(h, h->now);
}

static void hazards_tick(Hazards* h) {
    if (h->last) hazards_end(h, h->now);
    if (h->start) hazards_start(h, h->begin, h->end, h->accumulate, h->bf16);
    ++h->now;
}
