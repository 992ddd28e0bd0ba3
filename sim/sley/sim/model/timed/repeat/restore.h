// A past moment as the present one of a chip.
#pragma once

#include "passages.h"

static inline void dram_restore(Dram* d, const Moment* m, uint64_t cycle) {
    uint64_t by = cycle - m->dram.cycle, parts = channel_parts(&d->timing);
    Dram was = *d;
    BurstQueue* queues[] = {&d->reads, &d->writes, &d->responses};
    const Burst* b = m->items;
    *d = m->dram;
    d->memory = was.memory;
    d->cycle = cycle;
    d->reads = was.reads, d->writes = was.writes, d->responses = was.responses;
    d->read_free += by, d->write_free += by;
    d->channels[0].end += by * parts;
    for (int k = 0; k < 3; ++k) {
        queues[k]->first = queues[k]->count = 0;
        for (uint32_t n = 0; n < m->bursts[k]; ++n, ++b) {
            Burst burst = *b;
            if (burst.earliest) burst.earliest += by;
            for (int piece = 0; piece < MAX_PIECES; ++piece) burst.ends[piece] += by * parts;
            queue_push(queues[k], burst);
        }
    }
}

// The queue of a unit with commands that the program has handed out now.
static inline void queue_restore(Core* core, const Follower* f, int unit) {
    UnitFront* front = &core->fronts[unit];
    Queue* q = &front->queue;
    UnitCommand* taken[] = {&core->load.command, &core->store.command, &core->matrix.command, &core->vector.command};
    uint32_t number = handed_head(f, core, unit), ring = sizeof front->items / sizeof *front->items;
    Execute* x = &core->sequencer.x;
    if (x->pending == UNIT_LOAD + (uint32_t)unit) x->command = handed_at(f, unit, f->count[unit] - 1)->command;
    if (front->i_valid) front->i = x->command;
    for (uint32_t n = q->first; n != q->end; ++n) front->items[n % ring] = handed_at(f, unit, number++)->command;
    if (q->here) front->o = front->items[q->first % ring];
    *taken[unit] = front->o;
}

// The chip as it was in a past moment, but for where the transfers of `f` go; 0 if that cannot be said.
// `m`: room for it.
static inline int moment_restore(
    const Passages* p, const Past* past, Moment* m, Follower* f, Chip* c, Dram* d, uint64_t cycle, const Counted* counted) {
    Core* live = &c->cores[0];
    past_read(p, past, m);
    Transfers from = m->transfers;
    for (int k = 0; k < UNITS_BEHIND; ++k) queue_restore(&m->core, f, k);
    follower_taken(f, &m->core);
    Addresses a = {.from = &from, .to = &f->transfers, .tlb = &live->path.port.tlb, .context = live->sequencer.context};
    moment_visit(&a, m);
    if (a.strange || f->depth != m->core.sequencer.x.depth) return 0;
    Core* core = &m->core;
    Sequencer* s = &core->sequencer;
    s->f = live->sequencer.f;
    s->l = live->sequencer.l;
    memcpy(s->beat_data, live->sequencer.beat_data, sizeof s->beat_data);
    s->launch_word = live->sequencer.launch_word;
    s->launch_address = live->sequencer.launch_address;
    memcpy(s->x.registers, f->registers, sizeof s->x.registers);
    for (uint32_t k = 1; k <= f->depth; ++k) s->x.frames[k].count = f->frames[k].count;
    if (s->x.state == X_LOOP) s->x.frames[f->depth + 1].count = f->frames[f->depth + 1].count;
    if (execute_decided(&s->x)) s->x.sequential = execute_following(&s->x);
    core->launch = live->launch;
    core->values = live->values, core->model = live->model;
    core->path.beats = live->path.beats;
    core->path.fetched = live->path.fetched;
    core->path.fetch = live->path.fetch;
    core->path.port.tlb = live->path.port.tlb;
    TranslatedPort* port = &core->path.port;
    if (port->port.buffer.here && port->looked) {
        translated_port_look(port);
        if (port->translates && !(port->tlb.hit && port->tlb.allowed)) return 0;
    }
    memcpy(core->counters.groups.counts, counted->classes, sizeof counted->classes);
    memcpy(core->counters.groups.sums, counted->sums, sizeof counted->sums);
    memcpy(m->counters.groups.counts, counted->bus_classes, sizeof counted->bus_classes);
    memcpy(m->counters.groups.sums, counted->bus_sums, sizeof counted->bus_sums);
    m->gateway.walker = c->gateway.walker;
    m->gateway.beats = c->gateway.beats, m->gateway.place = c->gateway.place;

    *live = *core;
    accumulate_outputs(&live->matrix.accumulate, live->matrix.now);
    c->requests = m->requests, c->responses = m->responses;
    c->gateway = m->gateway;
    c->counters = m->counters;
    memcpy(c->progressing, m->progressing, sizeof c->progressing);
    c->progress = counted->progress;
    c->written.first = 0, c->written.end = m->written;
    memset(c->written.at_bus, NO_BEAT, sizeof c->written.at_bus);
    c->command.time += cycle - d->cycle;
    dram_restore(d, m, cycle);
    return 1;
}
