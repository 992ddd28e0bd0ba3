// The bytes that come for the sequencer, as the aligner of its reader gives them out.
#pragma once

#include "memory_reader.h"

enum { FETCHED_BEATS = READER_BEATS_RING, FETCHED_RUNS = 8 };

typedef struct FetchedRun {
    uint32_t offset, beats;
} FetchedRun;

typedef struct Fetched {
    uint8_t beats[FETCHED_BEATS][BUS_BYTES];
    FetchedRun runs[FETCHED_RUNS];
    uint32_t end, base, first_run, end_run, given;  // bus beats that came, of runs that left; runs; beats of this one
} Fetched;

// A run is asked for.
static inline void fetched_ask(Fetched* f, const Run* run) {
    uint32_t offset = run_offset(run);
    f->runs[f->end_run++ % FETCHED_RUNS] = (FetchedRun){offset, (offset + run->bytes + BUS_BYTES - 1) / BUS_BYTES};
}

static inline void fetched_arrive(Fetched* f, const uint8_t* beat) { memcpy(f->beats[f->end++ % FETCHED_BEATS], beat, BUS_BYTES); }

// The beat that the reader offers.
static inline void fetched_give(const Fetched* f, void* to) {
    uint32_t offset = f->runs[f->first_run % FETCHED_RUNS].offset, place = f->base + f->given;
    memcpy(to, f->beats[place % FETCHED_BEATS] + offset, BUS_BYTES - offset);
    memcpy((uint8_t*)to + BUS_BYTES - offset, f->beats[(place + 1) % FETCHED_BEATS], offset);
}

static inline void fetched_take(Fetched* f, uint32_t last) {
    ++f->given;
    if (!last) return;
    f->base += f->runs[f->first_run++ % FETCHED_RUNS].beats;
    f->given = 0;
}
