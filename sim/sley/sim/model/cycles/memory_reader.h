// The twin of sley.hw.memory.reader.
#pragma once

#include "queue.h"
#include "run.h"

#define MEMORY_READER_PORTS(IN, OUT)                                                                                \
    RUN_PORTS(IN, i) IN(o_ready, "o.ready") IN(request_ready, "request.ready")                                     \
    IN(response_valid, "response.valid") IN(response_error, "response.payload.error")                              \
    OUT(i_ready, "i.ready") OUT(o_valid, "o.valid") OUT(o_last, "o.payload.last?o.valid")                          \
    OUT(o_error, "o.payload.error?o.valid") OUT(request_valid, "request.valid")                                    \
    OUT(request_addr, "request.payload.payload.head.addr?request.valid")                                           \
    OUT(request_beats, "request.payload.payload.head.beats?request.valid")                                         \
    OUT(request_context, "request.payload.payload.head.context?request.valid")                                     \
    OUT(request_execute, "request.payload.payload.head.execute?request.valid")                                     \
    OUT(request_share, "~request.payload.payload.head.share?request.valid")                                        \
    OUT(response_ready, "response.ready") OUT(busy, "busy")

enum { READER_RUNS_RING = 128, READER_BEATS_RING = 256 };

// What the aligner knows of a run. `shared`, `shares`: a bus beat, with the run before and with the next one.
typedef struct AlignedRun {
    uint16_t data_last;
    uint8_t unaligned, extra, single, shared, shares;
} AlignedRun;

typedef struct ReadBeat {
    uint8_t last, error;
} ReadBeat;

STREAM_BUFFER(ReadBeat, ReadBuffer)

typedef struct MemoryReader {
    Run i;
    uint32_t i_valid, i_ready, o_valid, o_ready, o_last, o_error, request_valid, request_ready, request_addr, request_beats,
        request_context, request_execute, request_share, response_valid, response_error, response_ready, busy;

    // Requests: the burst in progress is at `position` of `window`, with so many `windows` to come behind it.
    uint32_t beats;  // bus beats that there is room for
    uint32_t active, window, position, windows, last, free, more, shares, offered, back_pressure;
    Run of;  // the run whose context and share the requests have
    // For the tick: a new run makes the burst longer, is accepted, begins requests of its own.
    uint32_t extends, issue, accept;

    uint32_t idle;  // nothing is in progress, and the outputs say so

    Queue runs, arrived;
    AlignedRun run_ring[READER_RUNS_RING];
    uint8_t error_ring[READER_BEATS_RING];

    // The aligner: the bus beat in which the next beat starts, the place in the run, and the beat that was joined.
    uint32_t current_valid, current_error, current_ended, inside, ends, left, joined_valid;
    ReadBeat joined;
    ReadBuffer out;
} MemoryReader;

// parameters: runs, beats
static void memory_reader_reset(MemoryReader* r, const uint32_t* parameters) {
    r->runs.depth = parameters[0];
    r->beats = r->arrived.depth = r->free = parameters[1];
}

static inline int memory_reader_rests(const MemoryReader* r) { return r->idle && !r->i_valid && !r->response_valid; }

static void memory_reader_outputs(MemoryReader* r) {
    if (memory_reader_rests(r)) return;
    r->response_ready = queue_ready(&r->arrived);
    r->o_valid = r->out.here;
    r->o_last = r->out.item.last;
    r->o_error = r->out.item.error;
    r->busy = r->active || !queue_empty(&r->runs) || r->joined_valid || r->o_valid;

    uint32_t final = r->windows == 0, room = r->free > BURST_MASK, run_ready = queue_ready(&r->runs);
    r->extends = 0;
    r->request_valid = 0;
    if (r->active) {
        uint32_t rest = r->last - r->position & BURST_MASK;
        r->request_beats = final ? rest : ~r->position & BURST_MASK;
        r->extends = r->back_pressure && r->more && r->i_valid && r->i.joins && run_ready && !r->offered &&
                     MAX_BURST >= JOINED_BEATS && rest < JOINED_BEATS - 1 && r->windows == (r->last < r->position) &&
                     !(CORES > 1 && r->of.share);
        r->request_valid = !r->extends && room;
        r->request_addr = (r->window << BURST_BITS | r->position) << LANE_BITS;
        r->request_context = r->of.context;
        r->request_execute = r->of.execute;
        r->request_share = r->of.share;
    }
    r->issue = r->request_valid && r->request_ready;
    r->i_ready = (!r->active || (final && room && r->request_ready) || r->extends) && run_ready;
    r->accept = r->i_valid && r->i_ready;
}

static inline void memory_reader_ask(MemoryReader* r) {
    uint32_t final = r->windows == 0, shared = r->i.joins && r->shares, at_window_end = r->last == BURST_MASK;
    uint32_t fresh = !r->active || (r->issue && final), reach = run_reach(&r->i);
    // Windows of a run that shares count from the bus beat behind that.
    if (r->extends) reach += ((r->windows & 1) || (at_window_end && !shared)) << WINDOW_BITS;
    else if (at_window_end && shared) reach -= 1u << WINDOW_BITS;
    reach &= 0x1FFFF;

    if (r->request_valid && !r->request_ready) r->back_pressure = CROWDED_REQUESTS;
    else if (r->free == r->beats) r->back_pressure = 0;
    else if (r->issue && r->back_pressure) --r->back_pressure;
    r->offered = r->request_valid && !r->request_ready;
    if (fresh) {
        r->of.context = r->i.context;
        r->of.execute = r->i.execute;
        r->of.share = r->i.share;
    }
    if (r->issue) r->free -= r->request_beats + 1;

    uint32_t further = run_offset(&r->i) + r->i.bytes > BUS_BYTES;
    uint32_t begins = r->accept && !r->extends && (!shared || further);
    if (begins) {
        if (!shared) {
            r->window = run_window(&r->i);
            r->position = run_position(&r->i);
        } else {
            r->window += at_window_end;
            r->position = r->last + 1 & BURST_MASK;
        }
    } else if (r->issue && !final) {
        ++r->window;
        r->position = 0;
    }
    if (!r->active || r->extends || (r->issue && final)) r->windows = reach_windows(reach);
    else if (r->issue) --r->windows;
    if (begins) r->active = 1;
    else if (r->issue && final) r->active = 0;
    if (!r->accept) return;

    uint32_t end = reach_end(reach), offset = run_offset(&r->i);
    r->more = r->i.more;
    r->last = reach_last(reach);
    AlignedRun* run = &r->run_ring[r->runs.end & READER_RUNS_RING - 1];
    run->unaligned = offset != 0;
    run->extra = end < offset;
    run->data_last = run_data_last(&r->i);
    run->single = r->i.bytes <= BUS_BYTES;
    run->shared = shared;
    run->shares = r->shares = r->i.more && end != LANE_MASK;
}

static void memory_reader_tick(MemoryReader* r) {
    if (memory_reader_rests(r)) return;
    r->idle = !r->busy && !r->i_valid && !r->response_valid && r->free == r->beats;
    if (r->idle) {
        r->offered = r->back_pressure = 0;
        return;
    }
    uint32_t run_here = r->runs.here, bus_here = r->arrived.here, joins = !r->joined_valid || !r->out.full;
    const AlignedRun* run = &r->run_ring[r->runs.first & READER_RUNS_RING - 1];
    uint32_t error = r->error_ring[r->arrived.first & READER_BEATS_RING - 1];

    memory_reader_ask(r);

    uint32_t move = 0, run_leaves = 0, wants = !r->current_valid, comes = r->joined_valid;
    uint32_t unneeded = run_here && r->current_ended && !run->shared;
    ReadBeat joined = r->joined, beat = joined;
    uint32_t ended = 0, used = 0;
    if (unneeded) {
        wants = 1;
    } else if (run_here && r->current_valid && joins) {
        uint32_t final = r->inside ? r->ends : run->single;
        uint32_t needs_next = run->unaligned && (!final || run->extra);
        move = bus_here || !needs_next;
        if (move) {
            uint32_t stays = final && run->shares;
            run_leaves = final;
            wants = !stays || run->extra;
            beat.last = final;
            beat.error = r->current_error || !needs_next ? r->current_error : error;
            uint32_t following = (r->inside ? r->left : run->data_last) - 1 & 0xFFFF >> LANE_BITS;
            r->inside = !final;
            r->ends = following == 0;
            r->left = following;
            ended = stays;
            used = final && run->extra && !run->shares;
        }
    }
    if (wants) {
        r->current_valid = bus_here && !used;
        r->current_error = error;
        r->current_ended = 0;
    }
    if (move) r->current_ended = ended;
    if (joins) {
        r->joined_valid = move;
        r->joined = beat;
    }
    ReadBuffer_tick(&r->out, comes, joined, r->o_ready);
    uint32_t freed = bus_here && wants, arrives = r->response_valid && r->response_ready;
    r->free += freed;
    if (arrives) r->error_ring[r->arrived.end & READER_BEATS_RING - 1] = r->response_error;
    queue_tick(&r->arrived, arrives, freed);
    prefetch_tick(&r->runs, r->accept, run_leaves);
}
