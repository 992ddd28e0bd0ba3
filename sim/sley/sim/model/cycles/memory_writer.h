// The twin of sley.hw.memory.writer.
#pragma once

#include "queue.h"
#include "run.h"

#define MEMORY_WRITER_PORTS(IN, OUT)                                                                                   \
    RUN_PORTS(IN, i) IN(data_valid, "data.valid") IN(cut, "cut") IN(request_ready, "request.ready")                   \
    IN(response_valid, "response.valid") IN(response_error, "response.payload.error") IN(phase, "phase")              \
    OUT(i_ready, "i.ready") OUT(data_ready, "data.ready") OUT(request_valid, "request.valid") OUT(head, ".head")      \
    OUT(request_last, "request.payload.last?request.valid")                                                           \
    OUT(request_addr, "request.payload.payload.head.addr?.head")                                                      \
    OUT(request_beats, "request.payload.payload.head.beats?.head")                                                    \
    OUT(request_context, "request.payload.payload.head.context?.head") OUT(response_ready, "response.ready")          \
    OUT(busy, "busy") OUT(error, "error") OUT(pending, "pending") OUT(error_phase, "error_phase") OUT(sent, "sent")

enum { WRITER_RUNS_RING = 8 };

// What the sender knows of a run. `shares`: a bus beat with the next one.
typedef struct SentRun {
    uint32_t window;
    uint16_t windows, last, position;
    uint8_t more, shares, context, phase;
} SentRun;

typedef struct MemoryWriter {
    Run i;
    uint32_t i_valid, i_ready, data_valid, data_ready, cut, request_valid, request_ready, head, request_last, request_addr,
        request_beats, request_context, response_valid, response_error, response_ready, busy, error, phase, pending,
        error_phase, sent;

    // The aligner: bus beats of the run to come, and the one that was turned into place.
    uint32_t aligning, flush, last_data, extra, data_left, shares, shifted, shifted_shared, partial;
    uint32_t room, step, final, left_over, accept;  // for the tick

    Queue runs, beats;
    SentRun ring[WRITER_RUNS_RING];

    // The sender: the burst in progress is at `position` of `window`, with so many `windows` to come behind it.
    uint32_t active, last, windows, in_data, count, outstanding, head_sent, head_sent_phase;
    SentRun run;
    uint32_t extends, joins;  // for the tick

    uint32_t idle;  // nothing is in progress, and the outputs say so
    uint32_t waiting[2], unacknowledged[2], oldest, nothing;
} MemoryWriter;

static void memory_writer_reset(MemoryWriter* w, const uint32_t* parameters) {
    w->runs.depth = WRITER_RUNS;
    w->beats.depth = MAX_BURST + 2;
}

static inline void memory_writer_align(MemoryWriter* w) {
    w->final = w->flush || (w->last_data && !w->extra);
    w->room = !w->shifted || w->shifted_shared || queue_ready(&w->beats);
    w->step = w->aligning && w->room && (w->data_valid || w->flush);
    w->data_ready = w->aligning && w->room && !w->flush;
    w->i_ready = (!w->aligning || (w->step && w->final)) && queue_ready(&w->runs);
    w->accept = w->i_valid && w->i_ready;
    w->left_over = w->partial && !w->shifted && !w->aligning && w->cut;
}

static inline void memory_writer_send(MemoryWriter* w) {
    w->extends = w->active && w->run.more && w->windows == 0;
    w->joins = w->runs.here && (!w->active || w->extends);
    w->head = w->sent = w->request_last = 0;
    if (w->in_data) {
        w->request_valid = w->beats.here;
        w->request_last = w->count == 0;
        w->sent = w->request_valid && w->request_ready;
        return;
    }
    uint32_t full = w->outstanding + w->head_sent >= WRITER_BURSTS;
    w->request_beats = w->windows ? ~w->run.position & BURST_MASK : w->last - w->run.position & BURST_MASK;
    w->head = w->request_valid =
        w->active && !w->extends && w->beats.end - w->beats.first > w->request_beats && !full;
    w->request_addr = (w->run.window << BURST_BITS | w->run.position) << LANE_BITS;
    w->request_context = w->run.context;
}

static inline int memory_writer_rests(const MemoryWriter* w) { return w->idle && !w->i_valid && !w->response_valid; }

static void memory_writer_outputs(MemoryWriter* w) {
    if (memory_writer_rests(w)) return;
    w->response_ready = 1;
    w->error = w->response_valid ? w->response_error : 0;
    memory_writer_align(w);
    memory_writer_send(w);
    w->nothing = w->pending = 0;
    for (uint32_t k = 0; k < 2; ++k) {
        uint32_t nothing = !w->unacknowledged[k] && !(w->head_sent && w->head_sent_phase == k);
        w->nothing |= nothing << k;
        w->pending |= (w->waiting[k] || (w->active && w->run.phase == k) || !nothing) << k;
    }
    w->busy = w->pending != 0;
    w->error_phase = w->oldest ^ (w->nothing >> w->oldest & 1);
}

static inline void memory_writer_tick_align(MemoryWriter* w) {
    uint32_t push = ((w->shifted && !w->shifted_shared) || w->left_over) && queue_ready(&w->beats);
    if (w->room) {
        if (w->shifted) w->partial = w->shifted_shared;
        w->shifted = w->step;
        w->shifted_shared = w->final && w->shares;
    }
    if (w->left_over && push) w->partial = 0;
    if (w->step) {
        w->aligning = !w->final;
        w->flush = w->last_data;
        w->last_data = w->data_left == 1;
        w->data_left = w->data_left - 1 & 0xFFFF >> LANE_BITS;
    }
    if (w->accept) {
        uint32_t reach = run_reach(&w->i);
        w->aligning = 1;
        w->flush = 0;
        w->data_left = run_data_last(&w->i);
        w->last_data = w->i.bytes <= BUS_BYTES;
        w->extra = reach_end(reach) < run_offset(&w->i);
        w->shares = w->i.more && reach_end(reach) != LANE_MASK;
        w->ring[w->runs.end & WRITER_RUNS_RING - 1] =
            (SentRun){run_window(&w->i), reach_windows(reach), reach_last(reach), run_position(&w->i),
                      w->i.more,         w->shares,            w->i.context,      w->phase};
    }
    queue_tick(&w->beats, push, w->sent);
}

static inline void memory_writer_tick_send(MemoryWriter* w) {
    uint32_t head = w->head && w->request_ready;
    if (w->sent) {
        w->in_data = w->count != 0;
        --w->count;
    }
    w->outstanding += w->head_sent - w->response_valid;
    if (w->head_sent) ++w->unacknowledged[w->head_sent_phase];
    if (w->response_valid) --w->unacknowledged[w->error_phase];
    if (w->nothing >> w->oldest & 1 && w->nothing != 3) w->oldest = !w->oldest;
    w->head_sent = head;
    w->head_sent_phase = w->run.phase;
    if (w->accept) ++w->waiting[w->phase];
    if (head) {
        w->in_data = 1;
        w->count = w->request_beats;
        w->active = w->windows != 0;
        --w->windows;
        ++w->run.window;
        w->run.position = 0;
    } else if (w->joins) {
        const SentRun* run = &w->ring[w->runs.first & WRITER_RUNS_RING - 1];
        --w->waiting[run->phase];
        // A run behind the last bus beat of a window counts its windows from the next one.
        w->windows = run->windows + (w->active && w->last == BURST_MASK && !w->run.shares);
        w->last = run->last;
        if (w->active) {
            w->run.more = run->more;
            w->run.shares = run->shares;
        } else {
            w->run = *run;
        }
        w->active = 1;
    } else if (w->extends && w->cut && queue_empty(&w->runs)) {
        w->run.more = 0;
    }
    queue_tick(&w->runs, w->accept, w->joins);
}

static void memory_writer_tick(MemoryWriter* w) {
    if (memory_writer_rests(w)) return;
    w->idle = !w->busy && !w->i_valid && !w->response_valid && !w->partial;
    if (w->idle) return;
    memory_writer_tick_align(w);
    memory_writer_tick_send(w);
}
