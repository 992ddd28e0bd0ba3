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
    uint32_t heads[UNITS_BEHIND][2];  // labels of the commands at the outputs of queues, and of their rows
    uint32_t rows[COMMAND_RING];      // of loads that have not begun to be placed, and in front of them the one that has
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
    const Core* core = &c->cores[0];
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        const Handed* head = handed_at(f, k, handed_head(f, core, k));
        m->heads[k][0] = core->fronts[k].queue.here ? head->label : 0;
        m->heads[k][1] = core->fronts[k].queue.here ? head->rows : 0;
    }
    const Queue* targets = &core->load.queues.targets;
    uint32_t loads = handed_head(f, core, 0), waiting = targets->end - targets->first;
    memset(m->rows, 0, sizeof m->rows);
    for (uint32_t n = 0; n <= waiting && n < loads; ++n) m->rows[waiting - n] = handed_at(f, 0, loads - 1 - n)->rows;
    for (int k = 0; k < UNITS_BEHIND; ++k) memset(m->core.fronts[k].items, 0, sizeof m->core.fronts[k].items);
    return 1;
}
