// DRAM behind an AXI4 manager, cycle by cycle. The rule is published in dram.py, which is the same in Python.
// BUS_BYTES: bytes of a beat on the memory bus.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "channels.h"

typedef struct {
    bool valid;
    uint8_t id;
    uint64_t address;
    uint8_t len, size, burst;
} AddressBeat;

// A burst in flight, or a response that waits for its time.
typedef struct {
    uint64_t address;
    uint64_t earliest;
    uint32_t beats, gap;
    uint8_t id, resp;
    uint64_t start, ends[MAX_PIECES];  // what the channels make of it
} Burst;

typedef struct {
    Burst* items;
    uint32_t room, first, count;
} BurstQueue;

typedef struct {
    // Outputs in the current cycle.
    bool awready, wready, bvalid, arready, rvalid, rlast;
    uint8_t bid, bresp, rid, rresp;
    uint64_t rdata[(BUS_BYTES + 7) / 8];
    // Set for good when the manager broke a rule.
    const char* violation;

    uint64_t bytes, cycle;
    DramTiming timing;
    bool channelled;  // the rule of channels applies
    Channel channels[MAX_CHANNELS];
    uint8_t* memory;
    BurstQueue reads, writes, responses;
    uint64_t read_end, write_end;    // address after the youngest burst
    uint64_t read_free, write_free;  // first cycle after the last beat of the burst served last
} Dram;

enum { DRAM_OKAY = 0, DRAM_DECERR = 3, DRAM_INCR = 1, DRAM_BOUNDARY = 4096 };
#define DRAM_NOWHERE (~(uint64_t)0)

static inline Burst* queue_head(BurstQueue* queue) { return &queue->items[queue->first]; }

static inline void queue_pop(BurstQueue* queue) {
    queue->first = (queue->first + 1) % queue->room;
    queue->count--;
}

static inline void queue_push(BurstQueue* queue, Burst burst) {
    if (queue->count == queue->room) {
        const uint32_t room = queue->room ? 2 * queue->room : 16;
        Burst* items = (Burst*)malloc(room * sizeof(Burst));
        if (!items) abort();
        for (uint32_t i = 0; i < queue->count; i++) items[i] = queue->items[(queue->first + i) % queue->room];
        free(queue->items);
        queue->items = items;
        queue->room = room;
        queue->first = 0;
    }
    queue->items[(queue->first + queue->count++) % queue->room] = burst;
}

// `memory` is null if there is not enough of it.
static inline void dram_create(Dram* dram, uint64_t bytes, DramTiming timing) {
    memset(dram, 0, sizeof *dram);
    dram->awready = dram->arready = true;
    dram->bytes = bytes;
    dram->timing = timing;
    dram->channelled = timing.bandwidth || timing.channels > 1 || timing.banks || timing.refresh;
    channels_reset(dram->channels);
    dram->memory = (uint8_t*)calloc(bytes, 1);
    dram->read_end = dram->write_end = DRAM_NOWHERE;
}

static inline void dram_destroy(Dram* dram) {
    free(dram->memory);
    free(dram->reads.items);
    free(dram->writes.items);
    free(dram->responses.items);
}

// Nothing is in flight, so a cycle without a new address changes nothing but the time.
static inline bool dram_idle(const Dram* dram) {
    return !(dram->reads.count || dram->writes.count || dram->responses.count);
}

static inline void dram_accept(Dram* dram, BurstQueue* queue, const AddressBeat* a, uint64_t* end, uint64_t earliest) {
    const uint64_t start = a->address & ~(uint64_t)(BUS_BYTES - 1);
    const uint64_t bytes = ((uint64_t)a->len + 1) * BUS_BYTES;
    if ((1u << a->size) != BUS_BYTES || a->burst != DRAM_INCR)
        dram->violation = "a burst that is not INCR or not of the full bus width";
    else if (start / DRAM_BOUNDARY != (start + bytes - 1) / DRAM_BOUNDARY)
        dram->violation = "a burst across a 4096-byte boundary";
    const uint32_t gap = *end == DRAM_NOWHERE || *end == start ? 0 : dram->timing.burst_gap;
    Burst burst = {.address = start, .earliest = earliest, .beats = a->len + 1u, .gap = gap, .id = a->id, .start = start};
    if (dram->channelled && !dram->violation)
        channels_schedule(dram->channels, &dram->timing, start, burst.beats, dram->cycle - 1, burst.ends);
    queue_push(queue, burst);
    *end = start + bytes;
}

// Without `data` only the time of a beat passes: somebody else writes memory.
static inline void dram_write_beat(Dram* dram, const void* data, const void* strobes, bool last) {
    Burst* head = queue_head(&dram->writes);
    if (last != (head->beats == 1)) dram->violation = "wlast is not on the last beat of the burst";
    if (head->address + BUS_BYTES > dram->bytes) {
        head->resp = DRAM_DECERR;
    } else if (data) {
        const uint8_t full = BUS_BYTES < 8 ? (1 << BUS_BYTES % 8) - 1 : 255;
        uint8_t strobe[(BUS_BYTES + 7) / 8];
        bool whole = true;
        memcpy(strobe, strobes, sizeof strobe);
        for (unsigned i = 0; i < sizeof strobe; i++) whole &= strobe[i] == full;
        for (unsigned byte = 0; !whole && byte < BUS_BYTES; byte++)
            if (strobe[byte / 8] >> (byte % 8) & 1)
                dram->memory[head->address + byte] = ((const uint8_t*)data)[byte];
        if (whole) memcpy(dram->memory + head->address, data, BUS_BYTES);
    }
    head->address += BUS_BYTES;
    head->gap = 0;
    if (!--head->beats) {
        const Burst response = {.earliest = dram->cycle - 1 + dram->timing.latency, .id = head->id, .resp = head->resp};
        queue_push(&dram->responses, response);
        queue_pop(&dram->writes);
        dram->write_free = dram->cycle;
    }
}

// Whether the channels have moved the next beat of a burst, which is then at hand after some cycles.
static inline bool dram_moved(const Dram* dram, const Burst* head, uint64_t after) {
    if (!dram->channelled) return true;
    return dram->cycle >= channels_moved(&dram->timing, head->ends, head->start, head->address) + after;
}

static inline void dram_offer(Dram* dram, Burst* head) {
    dram->rvalid = true;
    dram->rid = head->id;
    dram->rlast = head->beats == 1;
    head->gap = 0;
    const bool inside = head->address + BUS_BYTES <= dram->bytes;
    dram->rresp = inside ? DRAM_OKAY : DRAM_DECERR;
    if (inside)
        memcpy(dram->rdata, dram->memory + head->address, BUS_BYTES);
    else
        memset(dram->rdata, 0, BUS_BYTES);
}

// Ends the current cycle with these inputs; the outputs are then those of the next cycle.
static inline void dram_edge(Dram* dram, AddressBeat aw, bool wvalid, const void* wdata, const void* wstrb, bool wlast,
                             bool bready, AddressBeat ar, bool rready) {
    const uint64_t now = dram->cycle, next = ++dram->cycle;
    if (!(aw.valid || ar.valid) && dram_idle(dram)) return;

    if (wvalid && dram->wready) dram_write_beat(dram, wdata, wstrb, wlast);
    if (dram->bvalid && bready) queue_pop(&dram->responses);
    if (aw.valid && dram->awready) dram_accept(dram, &dram->writes, &aw, &dram->write_end, next);
    if (dram->rvalid && rready) {
        Burst* head = queue_head(&dram->reads);
        head->address += BUS_BYTES;
        head->earliest = 0;
        dram->rvalid = false;
        if (!--head->beats) {
            queue_pop(&dram->reads);
            dram->read_free = next;
        }
    }
    if (ar.valid && dram->arready) dram_accept(dram, &dram->reads, &ar, &dram->read_end, now + dram->timing.latency);

    dram->awready = dram->writes.count < dram->timing.depth;
    dram->arready = dram->reads.count < dram->timing.depth;
    dram->wready = false;
    if (dram->writes.count) {
        const Burst* head = queue_head(&dram->writes);
        dram->wready =
            next >= head->earliest && next >= dram->write_free + head->gap && dram_moved(dram, head, 0);
    }
    dram->bvalid = false;
    if (dram->responses.count) {
        const Burst* head = queue_head(&dram->responses);
        dram->bvalid = next >= head->earliest;
        dram->bid = head->id;
        dram->bresp = head->resp;
    }
    if (!dram->rvalid && dram->reads.count) {
        Burst* head = queue_head(&dram->reads);
        if (next >= head->earliest && next >= dram->read_free + head->gap &&
            dram_moved(dram, head, dram->timing.latency - 1))
            dram_offer(dram, head);
    }
}
