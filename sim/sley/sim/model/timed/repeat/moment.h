// All of a chip that changes while a block runs, and software says nothing.
#pragma once

#include "dram.h"
#include "follower.h"

enum { MOMENT_BURSTS = 192 };

typedef struct Moment {
    Transfers transfers;  // as far as they are on their way
    Core core;            // but for its program
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
} Moment;

// The places of a moment in front of the program of its core, and behind that up to the last burst.
typedef struct MomentPart {
    size_t begin, end;
} MomentPart;

enum { MOMENT_PARTS = 2 };

static inline void moment_parts(const Moment* m, MomentPart* parts) {
    size_t program = offsetof(Moment, core.sequencer.f.program), bursts = m->bursts[0] + m->bursts[1] + m->bursts[2];
    parts[0] = (MomentPart){offsetof(Moment, core), program};
    parts[1].begin = program + sizeof m->core.sequencer.f.program;
    parts[1].end = offsetof(Moment, items) + bursts * sizeof *m->items;
}

static inline void part_copy(Moment* to, const Moment* from, MomentPart part) {
    memcpy((uint8_t*)to + part.begin, (uint8_t*)from + part.begin, part.end - part.begin);
}

static inline void moment_copy(Moment* to, const Moment* from) {
    MomentPart parts[MOMENT_PARTS];
    moment_parts(from, parts);
    to->transfers = from->transfers;
    for (int k = 0; k < MOMENT_PARTS; ++k) part_copy(to, from, parts[k]);
}

static inline int moment_equal(const Moment* a, const Moment* b) {
    MomentPart parts[MOMENT_PARTS];
    moment_parts(a, parts);
    if (memcmp(a->bursts, b->bursts, sizeof a->bursts)) return 0;
    for (int k = 0; k < MOMENT_PARTS; ++k)
        if (memcmp((uint8_t*)a + parts[k].begin, (uint8_t*)b + parts[k].begin, parts[k].end - parts[k].begin)) return 0;
    return 1;
}

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
    uint32_t at = 0;
    counter_groups_settle(&c->cores[0].counters.groups);
    counter_groups_settle(&c->counters.groups);
    if (d->reads.count + d->writes.count + d->responses.count > MOMENT_BURSTS) return 0;
    size_t program = offsetof(Core, sequencer.f.program), behind = program + sizeof c->cores[0].sequencer.f.program;
    memcpy(&m->core, &c->cores[0], program);
    memcpy((uint8_t*)&m->core + behind, (uint8_t*)&c->cores[0] + behind, sizeof m->core - behind);
    m->requests = c->requests, m->responses = c->responses;
    m->gateway = c->gateway;
    m->counters = c->counters;
    memcpy(m->progressing, c->progressing, sizeof m->progressing);
    m->written = c->written.end - c->written.first;
    m->dram = *d;
    for (int k = 0; k < 3; ++k) {
        m->bursts[k] = queues[k]->count;
        for (uint32_t n = 0; n < queues[k]->count; ++n)
            m->items[at++] = queues[k]->items[(queues[k]->first + n) % queues[k]->room];
    }
    memset(&m->transfers, 0, sizeof m->transfers);
    for (int unit = 0; unit < TRANSFER_UNITS; ++unit) {
        uint32_t taken = m->transfers.taken[unit] = f->transfers.taken[unit] % TRANSFERS + TRANSFERS;
        uint32_t most = m->transfers.most[unit] = f->transfers.most[unit];
        for (uint32_t k = 1; k <= most; ++k) {
            uint32_t place = (taken - k) % TRANSFERS;
            m->transfers.known[unit][place] = f->transfers.known[unit][place];
        }
    }
    const Core* core = &c->cores[0];
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        const Handed* head = handed_at(f, k, handed_head(f, core, k));
        m->heads[k][0] = core->fronts[k].queue.here ? head->label : 0;
        m->heads[k][1] = core->fronts[k].queue.here ? head->rows : 0;
    }
    const Queue* targets = &core->load.queues.targets;
    uint32_t loads = handed_head(f, core, 0), waiting = targets->end - targets->first;
    memset(m->rows, 0, sizeof m->rows);
    for (uint32_t n = 0; n <= waiting && n < loads; ++n)
        m->rows[waiting - n] = handed_at(f, TRANSFER_LOAD, loads - 1 - n)->rows;
    for (int k = 0; k < UNITS_BEHIND; ++k) memset(m->core.fronts[k].items, 0, sizeof m->core.fronts[k].items);
    return 1;
}
