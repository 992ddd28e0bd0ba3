// When a core need not be computed: if a cycle has changed nothing in it but the time, and nothing comes, no later one does.
#pragma once

#include "core.h"

enum { CORE_STILL_CYCLES = 16 };  // without a block and anything that comes or goes, from one look to the next; a power of 2

typedef struct CoreSleep {
    Core before;  // a cycle ago
    uint32_t still, asleep, stirs;
} CoreSleep;

// Whether a network or the command processor says something else than in the cycle before.
static inline int core_stirs(const Core* c, uint32_t cancel, uint32_t invalidate, uint32_t freeze) {
    return c->launch_valid | c->path.port.answer_valid || cancel != c->cancel || invalidate != c->invalidate || freeze != c->freeze;
}

// So many cycles of one that sleeps.
static inline void core_pass(Core* c, uint64_t cycles) {
    c->matrix.now += cycles;
    if (!c->freeze) c->counters.groups.time += cycles;
}

// After the clock edge of a cycle that was computed.
static inline void core_sleep_look(CoreSleep* s, const Core* c) {
    if (s->stirs || c->sequencer.running || !c->matrix.rests || c->path.port.out_valid || c->sequencer.done_valid) {
        s->still = 0;
        return;
    }
    uint32_t place = ++s->still % CORE_STILL_CYCLES;
    if (place == 0) memcpy(&s->before, c, sizeof s->before);
    if (place != 1 || s->still == 1) return;
    s->before.matrix.now = c->matrix.now;
    s->before.counters.groups.time = c->counters.groups.time;
    s->asleep = !memcmp(&s->before, c, sizeof s->before);
}
