// Every place of a moment that holds an address of a transfer, in the order in which bursts reach memory; a copy of one
// comes in front of it.
#pragma once

#include "moment.h"

// With `to` an address becomes that of the transfer there which is in the place of its own in `from`; without, its label.
typedef struct Addresses {
    const Transfers *from, *to;
    const Tlb* tlb;
    uint32_t context;
    uint32_t before[TRANSFER_UNITS];  // the physical end of the unit's burst ahead
    uint32_t moved;                   // beats from the place of a window in the old moment to that in the new one
    int strange;                      // an address is not of any transfer, or of several
} Addresses;

// The transfer that an address is of, as how many came behind it; -1 if there is none, or they go to different places. One
// that begins a bus beat may be of any byte of it.
static inline int addresses_find(const Addresses* a, uint32_t address, int unit, int is_physical) {
    int64_t beat = address & LANE_MASK ? 0 : LANE_MASK;
    int found = -1;
    uint32_t moves = 0;
    for (uint32_t k = 0; k < a->from->most[unit]; ++k) {
        const Transfer *t = transfer_taken(a->from, unit, k), *u = transfer_taken(a->to, unit, k);
        uint32_t difference = is_physical ? t->difference : 0, low = physical(t->low, difference);
        int64_t length = t->high - t->low, place = (int64_t)address + beat - low;
        if (place < 0 || place >= length + beat || place % t->stride >= t->bytes + beat) continue;
        uint32_t by = physical(u->first, is_physical ? u->difference : 0) - physical(t->first, difference);
        if (found >= 0 && by != moves) return -1;
        found = k, moves = by;
    }
    return found;
}

// `bytes`: from there on; `alone`: no others are joined to them.
static inline void address_visit(
    Addresses* a, uint32_t* address, int unit, int is_physical, int live, uint32_t bytes, int alone) {
    if (!live) {
        if (!a->to) *address = 0;
        return;
    }
    if (a->to) {
        int back = addresses_find(a, *address, unit, is_physical);
        if (back < 0) {
            a->strange = 1;
            return;
        }
        const Transfer *t = transfer_taken(a->from, unit, back), *u = transfer_taken(a->to, unit, back);
        *address += physical(u->first, is_physical ? u->difference : 0);
        *address -= physical(t->first, is_physical ? t->difference : 0);
        return;
    }
    uint32_t place = *address;
    if (!is_physical) {
        const Translation* e = tlb_holds(a->tlb, a->context, place, place, transfer_access(unit));
        if (!e) {
            a->strange = 1;
            return;
        }
        place = physical(place, e->difference);
    }
    *address = place_label(place, bytes, alone, a->before[unit]);
    a->before[unit] = place + bytes;
}

// A window of a longest burst, in which beats from `position` to `last` come.
static inline void window_visit(
    Addresses* a, uint32_t* window, uint32_t place, uint32_t last, int unit, int live, int alone) {
    uint32_t address = *window << WINDOW_BITS | place << LANE_BITS;
    address_visit(a, &address, unit, 0, live, (last - place + 1) * BUS_BYTES, alone);
    *window = a->to ? address >> WINDOW_BITS : address;
    if (a->to) a->moved = (address >> LANE_BITS & BURST_MASK) - place;
}

// What a place in a window becomes with it: those of one that is split alone count from its begin.
static inline uint32_t place_visit(const Addresses* a, uint32_t place, uint32_t begin, int alone) {
    return a->to ? place + a->moved & BURST_MASK : alone ? place - begin : place;
}

// Of a burst in memory only the place counts: what it continues was seen when it came.
static inline void burst_visit(Addresses* a, Burst* b, int unit) {
    uint32_t address = b->address, start = b->start, bytes = b->address - b->start + b->beats * BUS_BYTES;
    if (a->to) {
        address_visit(a, &address, unit, 1, 1, 0, 1);
        address_visit(a, &start, unit, 1, 1, 0, 1);
    } else {
        address -= start;
        start = place_label(start, bytes, 1, 0) & 2 * PLACES - 1;
    }
    b->address = address, b->start = start;
}

// The end of the youngest burst, to see which one continues it.
static inline void end_visit(Addresses* a, uint64_t* end, int unit) {
    if (!a->to) {
        a->before[unit] = *end == DRAM_NOWHERE ? 0 : *end;
        *end = *end == DRAM_NOWHERE;
        return;
    }
    uint32_t last = *end - BUS_BYTES;
    int strange = a->strange;
    if (*end == DRAM_NOWHERE) return;
    address_visit(a, &last, unit, 1, 1, 1, 1);
    // Of a burst that was none of these it is known that none of these continues it.
    *end = a->strange > strange ? 1 : (uint64_t)last + BUS_BYTES;
    a->strange = strange;
}

static inline void flit_visit(Addresses* a, Flit* f, int is_physical, int live) {
    if (!live) {
        if (!a->to) memset(f, 0, sizeof *f);
        return;
    }
    int loads = f->kind == KIND_READ && f->tag == TAG_LOAD, stores = f->kind == KIND_WRITE && f->tag == TAG_STORE;
    uint32_t bytes = (f->beats + 1) * BUS_BYTES;
    if (loads | stores) address_visit(a, &f->addr, loads ? TRANSFER_LOAD : TRANSFER_STORE, is_physical, 1, bytes, 1);
    else a->strange |= f->addr != 0;
}

static inline void flits_visit(Addresses* a, FlitBuffer* b, int is_physical) {
    flit_visit(a, &b->item, is_physical, b->here);
    flit_visit(a, &b->spare, is_physical, b->full);
}

static inline void router_visit(Addresses* a, Router* r) {
    for (int side = 0; side < SIDES; ++side) flits_visit(a, &r->out[side], 1);
    for (int side = 0; side < SIDES; ++side) flit_visit(a, &r->in[side], 1, r->in_valid[side]);
}

// From memory to the core.
static inline void requests_visit(Addresses* a, Network* n) {
    const Router* memory = network_at(n, nodes[NODE_MEMORY]);
    for (uint32_t away = 0; away < MESH_PLACES; ++away)
        for (uint32_t k = 0; k < n->count; ++k) {
            Router* r = &n->routers[k];
            uint32_t x = r->x > memory->x ? r->x - memory->x : memory->x - r->x;
            uint32_t y = r->y > memory->y ? r->y - memory->y : memory->y - r->y;
            if (x + y == away) router_visit(a, r);
        }
}

static inline void dram_visit(Addresses* a, Moment* m) {
    Burst* b = m->items;
    for (int queue = 0; queue < 2; ++queue) {
        int unit = queue ? TRANSFER_STORE : TRANSFER_LOAD;
        end_visit(a, queue ? &m->dram.write_end : &m->dram.read_end, unit);
        for (uint32_t n = 0; n < m->bursts[queue]; ++n, ++b) {
            burst_visit(a, b, unit);
        }
    }
}

static inline void port_visit(Addresses* a, MemoryGateway* g) {
    MemoryPort* p = &g->port;
    address_visit(a, &p->ar.item.addr, TRANSFER_LOAD, 1, p->ar.here, (p->ar.item.len + 1) * BUS_BYTES, 1);
    address_visit(a, &p->ar.spare.addr, TRANSFER_LOAD, 1, p->ar.full, (p->ar.spare.len + 1) * BUS_BYTES, 1);
    address_visit(a, &p->aw.item.addr, TRANSFER_STORE, 1, p->aw.here, (p->aw.item.len + 1) * BUS_BYTES, 1);
    address_visit(a, &p->aw.spare.addr, TRANSFER_STORE, 1, p->aw.full, (p->aw.spare.len + 1) * BUS_BYTES, 1);
    address_visit(a, &p->read_addr, TRANSFER_LOAD, 1, p->read_comes, (p->read.beats + 1) * BUS_BYTES, 1);
    flit_visit(a, &p->request, 1, p->request_valid);
    flit_visit(a, &g->request, 1, g->request_valid);
}

static inline void reader_visit(Addresses* a, MemoryReader* r) {
    int alone = r->active && !r->windows && !r->more;
    window_visit(a, &r->window, r->active ? r->position : r->last, r->last, TRANSFER_LOAD, r->active || r->shares, alone);
    uint32_t begin = r->position;
    r->last = place_visit(a, r->last, begin, alone);
    r->position = place_visit(a, r->position, begin, alone);
}

static inline void writer_visit(Addresses* a, MemoryWriter* w) {
    SentRun* now = &w->run;
    int alone = w->active && !w->windows && !now->more, joins = w->active && now->more;
    window_visit(a, &now->window, now->position, w->last, TRANSFER_STORE, w->active, alone);
    uint32_t begin = now->position;
    if (!a->to) now->last = now->windows = 0;
    w->last = place_visit(a, w->last, begin, alone);
    now->position = place_visit(a, now->position, begin, alone);
    for (uint32_t n = w->runs.first; n != w->runs.end; ++n) {
        SentRun* run = &w->ring[n & WRITER_RUNS_RING - 1];
        alone = !joins && !run->more && !run->windows;
        joins = run->more;
        window_visit(a, &run->window, run->position, run->last, TRANSFER_STORE, 1, alone);
        begin = run->position;
        run->last = place_visit(a, run->last, begin, alone);
        run->position = place_visit(a, run->position, begin, alone);
    }
    address_visit(a, &w->i.addr, TRANSFER_STORE, 0, w->i_valid, w->i.bytes, !joins && !w->i.more);
}

// Whether a run that comes joins the last one that the writer has.
static inline int writer_joins(const MemoryWriter* w) {
    if (queue_empty(&w->runs)) return w->active && w->run.more;
    return w->ring[w->runs.end - 1 & WRITER_RUNS_RING - 1].more;
}

static inline void path_visit(Addresses* a, CorePath* p) {
    NodePort* port = &p->port.port;
    MemoryReader* r = &p->load;
    MemoryWriter* w = &p->store;
    flit_visit(a, &p->port.out, 1, p->port.out_valid);
    flits_visit(a, &p->port.buffer, 1);
    flit_visit(a, &port->out, 0, port->out_valid);
    flits_visit(a, &port->buffer, 0);
    for (uint32_t k = 0; k < CORE_PARTS; ++k) {
        flit_visit(a, &port->request[k], 0, port->request_valid[k]);
        flits_visit(a, &p->requests[k], 0);
    }
    address_visit(a, &r->request_addr, TRANSFER_LOAD, 0, r->request_valid, (r->request_beats + 1) * BUS_BYTES, 1);
    reader_visit(a, r);
    address_visit(a, &r->i.addr, TRANSFER_LOAD, 0, r->i_valid, r->i.bytes, !r->i.more && !r->more);
    address_visit(a, &w->request_addr, TRANSFER_STORE, 0, w->head, (w->request_beats + 1) * BUS_BYTES, 1);
    writer_visit(a, w);
}

// `joins`: a run that comes joins the one before it.
static inline void load_visit(Addresses* a, LoadUnit* u, int joins) {
    LoadQueues* q = &u->queues;
    LoadRequest* r = &u->request;
    for (uint32_t n = q->first_run; n != q->pending.end; ++n) {
        PendingRun* run = &q->runs[n % RUN_RING];
        a->strange |= run->bad;
        address_visit(a, &run->addr, TRANSFER_LOAD, 0, a->to != 0, 0, 1);
    }
    const Run *first = &r->runs.item, *second = &r->runs.spare;
    int alike = runs_alike(r->bytes, r->loops.count[0], r->strides[0], r->loops.count[1], r->strides[1]);
    address_visit(a, &r->runs.item.addr, TRANSFER_LOAD, 0, r->runs.here, first->bytes, !joins && !first->more);
    address_visit(a, &r->runs.spare.addr, TRANSFER_LOAD, 0, r->runs.full, second->bytes, !first->more && !second->more);
    a->strange |= r->active && r->by_list;
    address_visit(a, &r->addresses.position, TRANSFER_LOAD, 0, r->active, r->bytes, alike);
    address_visit(a, &r->addresses.begin[1], TRANSFER_LOAD, 0, r->active && a->to, 0, 1);
}

static inline int store_run_visit(Addresses* a, StoreRun* run, uint32_t bytes, int live, int joins) {
    address_visit(a, &run->addr, TRANSFER_STORE, 0, live, bytes, !joins && !run->more);
    return run->more;
}

static inline void store_visit(Addresses* a, StoreUnit* u, int joins) {
    int alike = runs_alike(u->length, u->loops.count[0], u->strides[0], u->loops.count[1], u->strides[1]);
    int asks = u->preparing || u->checking;
    for (uint32_t n = u->queue.first; n != u->queue.end; ++n)
        joins = store_run_visit(a, &u->runs[n % STORE_RING], u->length, 1, joins);
    if (u->run_valid) u->run = u->runs[u->queue.first % STORE_RING];
    a->strange |= (asks && u->by_list) || u->searching || u->failed;
    address_visit(a, &u->addresses.position, TRANSFER_STORE, 0, asks, u->length, alike);
    address_visit(a, &u->addresses.begin[1], TRANSFER_STORE, 0, asks && a->to, 0, 1);
    address_visit(a, &u->memory_start, TRANSFER_STORE, 0, !u->idle && u->stores && a->to, 0, 1);
    for (uint32_t n = u->incomplete.first; n != u->incomplete.end; ++n) {
        Incomplete* i = &u->commands[n % STORE_RING];
        a->strange |= i->failure != 0;
        address_visit(a, &i->address, TRANSFER_STORE, 0, i->stores && a->to, 0, 1);
    }
}

static inline void moment_visit(Addresses* a, Moment* m) {
    dram_visit(a, m);
    port_visit(a, &m->gateway);
    requests_visit(a, &m->requests);
    path_visit(a, &m->core.path);
    load_visit(a, &m->core.load, m->core.path.load.more);
    store_visit(a, &m->core.store, writer_joins(&m->core.path.store));
}
