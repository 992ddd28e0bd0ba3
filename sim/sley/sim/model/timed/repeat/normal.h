// The normal form of a moment: two are the same if and only if all that follows takes the same time, as long as the program
// hands out commands with the same labels. What is not named here is compared as it is.
#pragma once

#include "normal_units.h"

// Data of answers is that of transfers, which decides nothing.
static inline void answers_normal(Network* n) {
    for (uint32_t k = 0; k < n->count; ++k) {
        Router* r = &n->routers[k];
        for (int side = 0; side < SIDES; ++side) {
            BUFFER_NORMAL(r->out[side]);
            r->out[side].item.data = r->out[side].spare.data = 0;
            if (!r->in_valid[side]) FORGET(r->in[side]);
            r->in[side].data = 0;
            if (!r->in_valid[side]) r->leaves[side] = 0;
        }
    }
}

static inline void requests_normal(Network* n) {
    for (uint32_t k = 0; k < n->count; ++k)
        for (int side = 0; side < SIDES; ++side)
            if (!n->routers[k].in_valid[side]) n->routers[k].leaves[side] = 0;
}

static inline int port_normal(MemoryGateway* g) {
    MemoryPort* p = &g->port;
    uint32_t core = nodes[NODE_CORE];
    int sound = g->walker.state == WALKER_IDLE && queue_empty(&g->walker.waiting) && !p->drain;
    sound &= !g->asking.inserting && !g->answering.inserting;
    for (uint32_t n = p->reads.first; n != p->reads.end; ++n) {
        const Requester* read = &p->read_ring[n & PORT_READS_RING - 1];
        sound &= read->src == core && read->tag == TAG_LOAD;
    }
    for (uint32_t n = p->writes.first; n != p->writes.end; ++n) {
        const Requester* write = &p->write_ring[n & PORT_WRITES_RING - 1];
        sound &= write->src == core && write->tag == TAG_STORE;
    }
    RING_NORMAL(p->read_ring, p->reads.first, p->reads.end);
    RING_NORMAL(p->write_ring, p->writes.first, p->writes.end);
    queue_normal(&p->reads);
    queue_normal(&p->writes);
    BUFFER_NORMAL(p->ar);
    BUFFER_NORMAL(p->aw);
    BUFFER_NORMAL(p->w);
    BUFFER_NORMAL(p->b);
    BUFFER_NORMAL(p->r);
    p->r.item.data = p->r.spare.data = p->r_data = 0;
    BUFFER_NORMAL(p->out);
    p->out.item.data = p->out.spare.data = 0;
    if (!p->response_valid) FORGET(p->response);
    p->response.data = 0;
    if (!g->response_valid) FORGET(g->response);
    g->response.data = 0;
    if (!p->read_comes) FORGET(p->read);
    if (!p->dropping) FORGET(p->dropped);
    FORGET(g->walker);
    FORGET(g->beats);
    FORGET(g->place);
    return sound;
}

static inline void reader_normal(MemoryReader* r) {
    RING_NORMAL(r->run_ring, r->runs.first, r->runs.end);
    RING_NORMAL(r->error_ring, r->arrived.first, r->arrived.end);
    queue_normal(&r->runs);
    queue_normal(&r->arrived);
    BUFFER_NORMAL(r->out);
    if (!r->i_valid) FORGET(r->i);
    if (!r->joined_valid) FORGET(r->joined);
    if (!r->active) r->position = r->windows = r->more = 0;
    if (!r->active && !r->shares) r->last = 0;
    if (!r->request_valid) r->request_beats = r->request_context = r->request_execute = r->request_share = 0;
}

static inline void writer_normal(MemoryWriter* w) {
    RING_NORMAL(w->ring, w->runs.first, w->runs.end);
    queue_normal(&w->runs);
    queue_normal(&w->beats);
    if (!w->i_valid) FORGET(w->i);
    if (!w->active) FORGET(w->run), w->last = w->windows = 0;
}

static inline void path_normal(CorePath* p) {
    TranslatedPort* port = &p->port;
    reader_normal(&p->fetch);
    reader_normal(&p->load);
    writer_normal(&p->store);
    FORGET(p->fetched);
    FORGET(p->beats);
    FORGET(port->tlb);
    if (!port->port.buffer.here) port->translates = port->looked = 0;
    if (!port->answer_valid) FORGET(port->answer), FORGET(port->port.answer);
    port->answer.data = port->port.answer.data = 0;
}

static inline void counters_normal(CounterGroups* g) {
    FORGET(g->counts);
    FORGET(g->sums);
    FORGET(g->since);
    g->time = 0;
    if (!g->some) FORGET(g->now);
}

// Returns 0 if a moment has something that no passage may begin or end with.
static inline int core_normal(Core* c, uint32_t (*heads)[2], uint32_t* rows) {
    int sound = sequencer_normal(&c->sequencer) && c->path.fetch.idle && !c->launch_valid;
    sound &= !c->invalidate && !c->unknown && !c->scrub.busy;
    FORGET(c->launch);
    FORGET(c->values);
    FORGET(c->model);
    for (int k = 0; k < UNITS_BEHIND; ++k) front_normal(&c->fronts[k], heads[k]);
    load_normal(&c->load, rows);
    sram_normal(&c->scratchpad);
    store_normal(&c->store);
    matrix_normal(&c->matrix);
    vector_normal(&c->vector);
    path_normal(&c->path);
    counters_normal(&c->counters.groups);
    return sound;
}

static inline void after(uint64_t* time, uint64_t now) { *time = *time > now ? *time - now : 0; }

static inline void dram_normal(Moment* m) {
    Dram* d = &m->dram;
    uint64_t now = d->cycle, parts = channel_parts(&d->timing);
    Burst* b = m->items;
    for (int queue = 0; queue < 3; ++queue)
        for (uint32_t n = 0; n < m->bursts[queue]; ++n, ++b) {
            uint64_t end = (b->start & PLACES - 1) % INTERLEAVE + b->address + b->beats * BUS_BYTES;
            uint64_t pieces = queue == 2 || !d->channelled ? 0 : (end + INTERLEAVE - 1) / INTERLEAVE;
            after(&b->earliest, now);
            for (uint64_t k = 0; k < MAX_PIECES; ++k) b->ends[k] = k < pieces ? b->ends[k] - now * parts : 0;
        }
    after(&d->channels[0].end, now * parts);
    // A burst begins at once from `burst_gap` cycles behind the last beat on.
    after(&d->read_free, now > d->timing.burst_gap ? now - d->timing.burst_gap : 0);
    after(&d->write_free, now > d->timing.burst_gap ? now - d->timing.burst_gap : 0);
    FORGET(d->rdata);
    FORGET(d->cycle);
    FORGET(d->reads);
    FORGET(d->writes);
    FORGET(d->responses);
    FORGET(d->memory);
}

// Replaces a moment by its normal form. What was followed up to it is in none.
static inline int moment_normal(Moment* m) {
    Tlb tlb = m->core.path.port.tlb;
    Addresses a = {.from = &m->transfers, .tlb = &tlb, .context = m->core.sequencer.context};
    moment_visit(&a, m);
    int sound = port_normal(&m->gateway);
    sound &= core_normal(&m->core, m->heads, m->rows);
    requests_normal(&m->requests);
    answers_normal(&m->responses);
    counters_normal(&m->counters.groups);
    dram_normal(m);
    return sound && !a.strange && !tlb.overlaps;
}
