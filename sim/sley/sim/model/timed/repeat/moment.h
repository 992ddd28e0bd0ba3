// All of a chip that changes while a block runs, and software says nothing.
#pragma once

#include "dram.h"
#include "follower.h"

enum { MOMENT_BURSTS = 192 };

typedef struct Moment {
    Core core;
    Network requests, responses;
    MemoryGateway gateway;
    BusCounters counters;
    uint32_t progressing[PROGRESS_DELAYS];
    uint32_t heads[UNITS_BEHIND];  // labels of the commands at the outputs of queues
    uint32_t written;  // beats at the bus, which have no data
    Dram dram;
    uint32_t bursts[3];  // of reads, writes, responses, in this order
    Burst items[MOMENT_BURSTS];
    Transfers transfers;
} Moment;

// Counts so far are those of classes, too.
static inline void counter_groups_settle(CounterGroups* g) {
    for (int k = 0; k < g->groups; ++k) {
        g->counts[k][g->classes[k]] += g->time - g->since[k];
        g->since[k] = g->time;
    }
}

// Returns 0 if more is in flight than there is room for.
static inline int moment_take(Moment* m, Chip* c, Dram* d, const Follower* f) {
    const BurstQueue* queues[] = {&d->reads, &d->writes, &d->responses};
    uint32_t at = 0, before = m->bursts[0] + m->bursts[1] + m->bursts[2];
    counter_groups_settle(&c->cores[0].counters.groups);
    counter_groups_settle(&c->counters.groups);
    if (d->reads.count + d->writes.count + d->responses.count > MOMENT_BURSTS) return 0;
    m->core = c->cores[0];
    m->requests = c->requests, m->responses = c->responses;
    m->gateway = c->gateway;
    m->counters = c->counters;
    memcpy(m->progressing, c->progressing, sizeof m->progressing);
    m->written = c->written.end - c->written.first;
    m->dram = *d;
    for (int k = 0; k < 3; ++k) {
        m->bursts[k] = queues[k]->count;
        for (uint32_t n = 0; n < queues[k]->count; ++n) m->items[at++] = queues[k]->items[(queues[k]->first + n) % queues[k]->room];
    }
    if (before > at) memset(m->items + at, 0, (before - at) * sizeof *m->items);
    m->transfers = f->transfers;
    for (int k = 0; k < UNITS_BEHIND; ++k) m->heads[k] = c->cores[0].fronts[k].queue.here ? handed_at(f, k, handed_head(f, &c->cores[0], k))->label : 0;
    for (int k = 0; k < UNITS_BEHIND; ++k) memset(m->core.fronts[k].items, 0, sizeof m->core.fronts[k].items);
    return 1;
}
