// The twin of sley.hw.core.store.reads: reads the rows of each run, beat by beat, into a queue for the writer.
#pragma once

#include "abi.h"
#include "queue.h"

enum { BEATS_AHEAD = 8, RUNS_AHEAD = 8, STORE_RING = 16, BEATS_OF_ROW = ACCUMULATOR_ROW_BYTES / BUS_BYTES };
enum { ROWS_MOST = SCRATCHPAD_ROWS > ACCUMULATOR_ROWS ? SCRATCHPAD_ROWS : ACCUMULATOR_ROWS };

typedef struct StoreReads {
    uint32_t space, stride, last_beat;  // of all runs
    Queue starts, beats;
    uint32_t rows[STORE_RING];  // the first one of each run

    uint32_t active;
    uint32_t row;
    uint32_t index;  // of the beat in the accumulator row
    uint32_t ahead;  // the number of the next beat of this run
    uint32_t last;
    uint32_t room;
    uint32_t arriving;  // bit k: data of a read comes in k + 1 cycles
} StoreReads;

static void store_reads_reset(StoreReads* r) {
    r->room = r->beats.depth = BEATS_AHEAD;
    r->starts.depth = RUNS_AHEAD;
}

static inline int reads_ask(const StoreReads* r) { return r->active && r->room; }
static inline int reads_taken(const StoreReads* r) { return !r->active && r->room == BEATS_AHEAD; }
static inline int reads_rest(const StoreReads* r) { return reads_taken(r) && queue_empty(&r->starts); }

// `start`: a run's first row has been put into the ring; `granted`: the read is; `ready`: the writer takes a beat.
static inline void store_reads_tick(StoreReads* r, int start, int granted, int ready) {
    int moved = r->beats.here && ready, next = !r->active || (granted && r->last);
    if ((r->arriving & 1) | moved | r->beats.count) queue_tick(&r->beats, r->arriving & 1, moved);
    r->arriving = r->arriving >> 1 | (uint32_t)granted << (SRAM_READ - 1);
    r->room += moved - granted;
    if (next) {
        r->active = r->starts.here;
        r->row = r->rows[r->starts.first % STORE_RING];
        r->index = 0;
        r->ahead = 1;
        r->last = !r->last_beat;
    } else if (granted) {
        r->last = r->ahead++ == r->last_beat;
        if (r->space == SPACE_SCRATCHPAD || ++r->index == BEATS_OF_ROW) {
            r->row = (r->row + r->stride) % ROWS_MOST;
            r->index = 0;
        }
    }
    if (start | r->starts.count | r->starts.here) queue_tick(&r->starts, start, next & r->starts.here);
}
