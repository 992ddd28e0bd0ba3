// The twin of sley.hw.core.load.feed: makes rows of beats and fill values, and finds the faults.
#pragma once

#include "abi.h"
#include "affine.h"
#include "load_queues.h"
#include "load_target.h"
#include "permute.h"
#include "unit_params.h"

enum { FEED_IDLE, FEED_PLACE, FEED_COMPLETE, FEED_DIMS = 3, ROW_BEATS = ACCUMULATOR_ROW_BYTES / BUS_BYTES };

// A row, or a beat of one, or the end of a command.
typedef struct Placed {
    uint32_t row;
    uint8_t write, done, space, beats;
} Placed;

STREAM_BUFFER(Placed, PlacedBuffer)

typedef struct Beat {
    uint32_t valid, last, error;
} Beat;

typedef struct LoadFeed {
    uint32_t chunks, count2;  // the parameters
    Permute permute;
    LoadTarget target;
    Loops loops;
    uint32_t state, space, empty, permuted;
    uint32_t drained;  // no beat of this command is still to come
    uint32_t padded;   // the runs with data of this slab are behind
    uint32_t filled;   // the rest of this run has no bytes
    uint32_t index;    // of the next beat in an accumulator row
    uint32_t settled;  // all rows before this one have been placed or are on the way
    uint32_t dropped;
    Fault fault;

    int needs, reads, sinks, room;  // in this cycle
    uint32_t beat_ready;
} LoadFeed;

static void load_feed_clear(LoadFeed* f) {
    f->chunks = (uint32_t)param_infos[PARAM_CHUNKS].reset;
    f->count2 = (uint32_t)param_infos[PARAM_COUNT2].reset;
    load_target_clear(&f->target);
}

static void load_feed_reset(LoadFeed* f) {
    permute_reset(&f->permute);
    permute_outputs(&f->permute);
    load_feed_clear(f);
    load_target_drop(&f->target);
}

static inline int feed_busy(const LoadFeed* f) { return f->state != FEED_IDLE || !f->target.idle; }
static inline int feed_fault_allowed(const LoadFeed* f) { return !f->permuted || f->settled; }

// `room`: a row would be placed; `beat`: the ready of the beat depends on its error.
static inline void load_feed_outputs(LoadFeed* f, const LoadQueues* q, const Beat* beat, int room, int abort) {
    LoadTarget* t = &f->target;
    if (!t->idle) load_target_outputs(t, &f->permute, room);
    int requested = q->oldest && !first_run(q)->bad;
    f->needs = f->state == FEED_PLACE && !f->filled && requested && (f->permuted || !t->walk.outside);
    f->reads = f->needs && (!beat->valid || !beat->error || feed_fault_allowed(f));
    f->sinks = abort || (f->state == FEED_COMPLETE && !f->drained);
    f->room = f->permuted ? f->permute.i_ready : room;
    f->beat_ready = (f->reads && f->room) || (f->sinks && requested);
}

// Of a row outside of its memory, of a run or its beats, or of a command that cannot be executed.
static void load_feed_fault(LoadFeed* f, const LoadQueues* q, uint32_t error, int outside, int of_run, int bad_run) {
    static const uint8_t codes[] = {FAULT_BUS_ERROR, FAULT_BUS_ERROR, FAULT_PAGE_FAULT, FAULT_PERMISSION};
    const LoadTarget* t = &f->target;
    if (outside)
        f->fault = (Fault){1, FAULT_LOCAL_ADDRESS, t->pc, t->walk.position};
    else if (of_run)
        f->fault = (Fault){1, bad_run ? FAULT_BAD_ADDRESS : codes[error], t->pc, first_run(q)->addr};
    else {
        int illegal = feed_job(q)->illegal;
        f->fault = (Fault){1, illegal ? FAULT_ILLEGAL_INSTRUCTION : FAULT_BAD_PARAMETER, target_job(q)->pc, target_job(q)->row};
    }
}

static void load_feed_begin(LoadFeed* f, const FeedJob* job, int permutes) {
    f->state = job->work ? FEED_PLACE : FEED_COMPLETE;
    f->space = job->space;
    f->empty = f->filled = job->empty;
    f->permuted = permutes;
    f->drained = job->empty || !job->work;
    f->padded = f->index = 0;
    if (permutes) f->permute.flags = job->permutation;
    if (!job->work) return;
    static const uint32_t units[] = {1, INTERLEAVES ? 2 : 1, N, INTERLEAVES ? 2 * N : N};
    uint32_t unit = units[job->permutation], runs = ((job->runs & 0x1FFFF) + unit - 1) & ~(unit - 1);
    loops_start(&f->loops, (uint32_t[]){f->chunks, runs, f->count2}, FEED_DIMS);
}

// A row or beat is stored, or nothing; within a run the beats come first, within a slab the runs with data.
static inline void load_feed_advance(LoadFeed* f, const LoadQueues* q, int store, int row_done, int ended) {
    uint32_t last = f->loops.last;
    if (ended) {
        f->padded |= first_run(q)->slab_end;
        f->drained |= first_run(q)->final;
    }
    if (!store) return;
    ++f->index;
    f->filled |= ended;
    if (!row_done) return;
    f->index = 0;
    if (last & 1) f->filled = f->empty || (f->padded && !(last & 2));
    if ((last & 3) == 3) f->padded = 0;
    loops_step(&f->loops, FEED_DIMS);
}

static inline Placed load_feed_row(const LoadFeed* f, int done) {
    uint32_t beats = (f->filled ? 0xFF : 1) << f->index & ((1 << ROW_BEATS) - 1);
    return (Placed){f->target.walk.position, 1, done, f->space, beats};
}

// A cycle in which a command that is not permuted places a row, or waits for a beat, and nothing else: most of them.
// Returns whether it is one.
static inline int load_feed_plain(LoadFeed* f, LoadQueues* q, const Beat* beat, int room, Placed* placed, int* given) {
    LoadTarget* t = &f->target;
    if (f->state != FEED_PLACE || !t->idle || f->permuted || f->dropped || t->walk.outside) return 0;
    if (!f->filled && q->oldest && (first_run(q)->bad || (beat->valid && beat->error))) return 0;
    int full = f->filled || (f->needs && beat->valid), store = full && room;
    int row_end = f->filled || !f->space || f->index == ROW_BEATS - 1, row_done = store && row_end;
    if (row_done && loops_end(&f->loops, FEED_DIMS)) return 0;
    *given = full;
    *placed = load_feed_row(f, 0);
    f->fault.valid = q->pop_feed = q->pop_target = 0;
    q->pop_run = beat->valid && f->beat_ready && beat->last;
    if (row_done) load_target_step(t, f->loops.last);
    load_feed_advance(f, q, store, row_done, q->pop_run);
    f->settled = !store;
    return 1;
}

// What goes to the memories in this cycle, if anything; `room`: it is taken.
static inline int load_feed_tick(LoadFeed* f, LoadQueues* q, const Beat* beat, int room, int abort, Placed* placed) {
    int given = 0;
    if (!abort && load_feed_plain(f, q, beat, room, placed, &given)) return given;
    LoadTarget* t = &f->target;
    Permute* p = &f->permute;
    const PendingRun* run = first_run(q);
    uint32_t last = f->loops.last;
    int placing = f->state == FEED_PLACE, completing = f->state == FEED_COMPLETE, idle = t->idle;
    int row_outside = t->walk.outside && !f->permuted, can_place = placing && !row_outside;
    int moves = beat->valid && f->beat_ready, ended = moves && beat->last, sound = beat->valid && !beat->error;
    int full = (can_place && f->filled) || (f->needs && sound), store = full && f->room;
    int row_end = f->filled || !f->space || f->index == ROW_BEATS - 1, row_done = store && row_end;
    int ends = row_done && loops_end(&f->loops, FEED_DIMS);
    int completes = completing && f->drained && idle && room, leaves = ends || completes;

    const FeedJob* job = feed_job(q);
    int permutes = job->work && job->permutation;
    int passes = !idle && !job->work && !job->bad && !job->illegal;
    int admits = idle || (t->ready && (passes || (permutes && p->flags == job->permutation)));
    int open = admits && (ends || completes || f->state == FEED_IDLE), take = open && q->feeds.here && !abort;
    int follow = take && (permutes || passes);
    q->pop_feed = q->feeds.here && (open || abort);

    if (idle) {
        given = placing ? full && !f->permuted : completing && f->drained;
        *placed = placing ? load_feed_row(f, ends) : (Placed){.done = 1};
    } else {
        given = t->valid;
        *placed = (Placed){t->walk.position, t->work && !t->walk.outside && !t->dropping, t->done, SPACE_SCRATCHPAD};
    }
    if (abort) given = 0;

    int needs_run = !f->filled && q->oldest, bad_run = needs_run && run->bad, fails = 0, faults = 0;
    int lost = t->astray && t->none && placing && f->permuted && !leaves, drops = lost;
    if (t->astray && !abort) {
        faults = 1;
        fails = lost;
    } else if (placing && !abort && feed_fault_allowed(f)) {
        if (bad_run || (moves && beat->error)) {
            fails = 1;
            drops = f->permuted;
        } else if (row_outside && (f->filled || needs_run))
            fails = 1;
    }
    f->fault.valid = 0;
    if (fails || faults || (take && !passes && (job->illegal || job->bad))) {
        int outside = (t->valid && !idle && t->walk.outside) || (placing && row_outside && !bad_run);
        load_feed_fault(f, q, beat->error, outside, placing && !full, bad_run);
    }
    int settled = t->none && !p->complete && !store && !take;

    p->i_valid = full && f->permuted;
    int permuting = p->i_valid || !p->idle || f->dropped;
    if (permuting) {
        p->i_last = last & 1;
        p->i_tag = last >> 1;
        p->o_ready = t->active && t->work && room;
        permute_tick(p);
        if (f->dropped) permute_clear(p);
    }
    load_target_tick(t, q, p->idle, permuted_last(p), row_done, last, take && !follow, follow, f->dropped || abort);
    if (permuting) permute_outputs(p);
    q->pop_target = (q->pop_target || abort) && q->targets.here;
    // A bad run only leaves, and is its command's last one.
    q->pop_run = ended || (f->sinks && q->oldest && run->bad);
    if (q->pop_run && !ended) f->drained = 1;
    load_feed_advance(f, q, store, row_done, ended);
    if (leaves || abort) f->state = FEED_IDLE;
    if (q->pop_feed && job->param == PARAM_CHUNKS) f->chunks = job->runs;
    if (q->pop_feed && job->param == PARAM_COUNT2) f->count2 = job->runs;
    if (take && !passes) load_feed_begin(f, job, permutes);
    if (fails) f->state = FEED_COMPLETE;
    f->settled = settled;
    f->dropped = drops || abort;
    return given;
}
