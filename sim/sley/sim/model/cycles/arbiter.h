// The twin of sley.hw.stream.arbiter: whose turn it is.
#pragma once

#include "twin.h"

enum { GRANT_MOST = 64 };

// Between packets those in `above` go first, lower ones before higher ones; within a packet `owner` alone is `eligible`.
typedef struct Grant {
    uint64_t above, eligible, owner, all;
    uint32_t count, most;  // packets in a row of the owner, and the greatest weight
    uint8_t weights[GRANT_MOST];
} Grant;

static inline void grant_reset(Grant* g, uint32_t n) {
    g->all = g->eligible = n < 64 ? (1ull << n) - 1 : ~0ull;
    g->most = 1;
    memset(g->weights, 1, sizeof g->weights);
}

static inline void grant_weight(Grant* g, uint32_t k, uint32_t weight) {
    g->weights[k] = weight;
    if (weight > g->most) g->most = weight;
}

// One bit of the requests, or none.
static inline uint64_t grant_choose(const Grant* g, uint64_t requests) {
    uint64_t eligible = requests & g->eligible, first = eligible & g->above;
    first = first ? first : eligible;
    return first & -first;
}

// The item of the granted one passes.
static inline void grant_moved(Grant* g, uint64_t grant, uint32_t last) {
    if (g->all == 1) return;
    uint32_t again = (grant & g->owner) != 0, weight = g->weights[__builtin_ctzll(grant)];
    uint32_t used = g->count + (g->eligible == g->all && g->count < g->most);
    uint32_t stays = !last || (again ? used < weight : weight > 1);
    g->above = (g->all & ~(grant - 1) & ~grant) | (stays ? grant : 0);
    g->count = again ? used : 1;
    g->owner = grant;
    g->eligible = last ? g->all : grant;
}
