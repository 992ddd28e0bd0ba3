// The twin of sley.hw.core.semaphores.
#pragma once

#include "abi.h"
#include "twin.h"

enum { WAITERS = 5, SIGNALLERS = 6 };

#define SEMAPHORES_PORTS(IN, OUT)                                                                              \
    IN(wait_valid[0], "wait[0].valid") IN(wait_valid[1], "wait[1].valid") IN(wait_valid[2], "wait[2].valid")  \
    IN(wait_valid[3], "wait[3].valid") IN(wait_valid[4], "wait[4].valid")                                     \
    IN(wait_set[0], "wait[0].payload") IN(wait_set[1], "wait[1].payload") IN(wait_set[2], "wait[2].payload")  \
    IN(wait_set[3], "wait[3].payload") IN(wait_set[4], "wait[4].payload")                                     \
    IN(signal_valid[0], "signal[0].valid") IN(signal_valid[1], "signal[1].valid")                             \
    IN(signal_valid[2], "signal[2].valid") IN(signal_valid[3], "signal[3].valid")                             \
    IN(signal_valid[4], "signal[4].valid") IN(signal_valid[5], "signal[5].valid")                             \
    IN(signal_set[0], "signal[0].payload") IN(signal_set[1], "signal[1].payload")                             \
    IN(signal_set[2], "signal[2].payload") IN(signal_set[3], "signal[3].payload")                             \
    IN(signal_set[4], "signal[4].payload") IN(signal_set[5], "signal[5].payload")                             \
    IN(clear, "clear")                                                                                        \
    OUT(wait_ready[0], "wait[0].ready") OUT(wait_ready[1], "wait[1].ready") OUT(wait_ready[2], "wait[2].ready") \
    OUT(wait_ready[3], "wait[3].ready") OUT(wait_ready[4], "wait[4].ready")                                   \
    OUT(signal_ready[0], "signal[0].ready") OUT(signal_ready[1], "signal[1].ready")                           \
    OUT(signal_ready[2], "signal[2].ready") OUT(signal_ready[3], "signal[3].ready")                           \
    OUT(signal_ready[4], "signal[4].ready") OUT(signal_ready[5], "signal[5].ready") OUT(some, "some")

typedef struct Semaphores {
    uint32_t wait_valid[WAITERS], wait_set[WAITERS], wait_ready[WAITERS];
    uint32_t signal_valid[SIGNALLERS], signal_set[SIGNALLERS], signal_ready[SIGNALLERS];
    uint32_t clear, some;

    uint8_t values[SEMAPHORES];
    uint32_t full;  // those at SEMAPHORE_MAX
} Semaphores;

static void semaphores_reset(Semaphores* s, const uint32_t* parameters) {}

// Of the sets without a refused semaphore those pass that share none with one of lower index.
static inline void grant_sets(const uint32_t* valid, const uint32_t* sets, uint32_t refused, int count, uint32_t* ready) {
    uint32_t claimed = 0;
    for (int k = 0; k < count; ++k) {
        int possible = valid[k] && !(sets[k] & refused);
        ready[k] = possible && !(sets[k] & claimed);
        if (possible) claimed |= sets[k];
    }
}

static void semaphores_outputs(Semaphores* s) {
    grant_sets(s->wait_valid, s->wait_set, ~s->some, WAITERS, s->wait_ready);
    grant_sets(s->signal_valid, s->signal_set, s->full, SIGNALLERS, s->signal_ready);
}

static void semaphores_tick(Semaphores* s) {
    uint32_t down = 0, up = 0;
    for (int k = 0; k < WAITERS; ++k)
        if (s->wait_ready[k]) down |= s->wait_set[k];
    for (int k = 0; k < SIGNALLERS; ++k)
        if (s->signal_ready[k]) up |= s->signal_set[k];
    if (s->clear) {
        memset(s->values, 0, sizeof s->values);
        s->some = s->full = 0;
        return;
    }
    for (uint32_t moved = down ^ up; moved; moved &= moved - 1) {
        int i = __builtin_ctz(moved);
        s->values[i] += up >> i & 1 ? 1 : -1;
        uint32_t bit = 1u << i;
        s->some = s->values[i] ? s->some | bit : s->some & ~bit;
        s->full = s->values[i] == SEMAPHORE_MAX ? s->full | bit : s->full & ~bit;
    }
}
