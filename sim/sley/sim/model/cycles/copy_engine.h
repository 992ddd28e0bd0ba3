// The twin of sley.hw.command.copy, with the splitter of its range and the source of a fill.
#pragma once

#include "abi.h"
#include "queue.h"

#define COPY_ENGINE_PORTS(IN, OUT)                                                                                 \
    IN(start, "start") IN(fill, "fill") IN(src, "src") IN(dst, "dst") IN(bytes, "bytes") IN(stop, "stop")         \
    IN(read_ready, "read.ready") IN(beat_valid, "beats.valid") IN(beat_last, "beats.payload.last")                \
    IN(beat_error, "beats.payload.error") IN(write_ready, "write.ready") IN(data_ready, "data.ready")             \
    IN(writing, "writing") IN(write_refused, "write_error")                                                       \
    OUT(requested, "requested") OUT(done, "done") OUT(error, "error?done") OUT(of_read, "of_read?done")           \
    OUT(left, "left") OUT(read_valid, "read.valid") OUT(run_address, "read.payload.addr?read.valid")              \
    OUT(run_bytes, "read.payload.bytes?read.valid") OUT(beat_ready, "beats.ready") OUT(write_valid, "write.valid") \
    OUT(write_address, "write.payload.addr?write.valid") OUT(write_bytes, "write.payload.bytes?write.valid")      \
    OUT(data_valid, "data.valid")

enum { CHUNK_BYTES = CHUNK_BEATS * BUS_BYTES, BUFFER_RING = 2 * COPY_BUFFER_BEATS };

typedef struct CopyEngine {
    uint32_t start, fill, src, dst, bytes, stop, read_ready, beat_valid, beat_last, beat_error, write_ready, data_ready;
    uint32_t writing, write_refused;
    uint32_t requested, done, error, of_read, left, read_valid, run_address, run_bytes, beat_ready;
    uint32_t write_valid, write_address, write_bytes, data_valid;

    uint32_t address, room, whole, splitting;  // of the splitter
    uint32_t fill_beats;                       // left in the run that is filled
    Queue buffer;
    uint8_t last[BUFFER_RING];                 // of the beats in the buffer
    uint32_t unwritten, only, complete, some_complete, flowing, flows, read_error, write_error, chunk_error, busy, stopped;
    uint32_t requesting_on, request_write_on, dropping, dropped, target, newest, write_room;
    uint32_t requesting, source_ready, arrives, arrived_last, arrived_error, leaves;  // in this cycle
} CopyEngine;

static void copy_engine_reset(CopyEngine* e, const uint32_t* parameters) { e->buffer.depth = COPY_BUFFER_BEATS; }

static void copy_engine_outputs(CopyEngine* e) {
    int failure = e->read_error || e->write_error || e->stopped;
    e->requesting = e->splitting && e->unwritten != MAX_CHUNKS && (!(failure || e->stop) || e->requesting_on);
    e->source_ready = !e->fill_beats;
    e->requested = e->requesting && (e->fill ? e->source_ready : e->read_ready);
    e->read_valid = e->requesting && !e->fill;
    e->run_address = e->address;
    e->run_bytes = e->whole ? e->room : e->left & (2 * CHUNK_BYTES - 1);

    int room = queue_ready(&e->buffer);
    e->beat_ready = !e->fill && room;
    e->arrives = room && (e->fill ? e->fill_beats != 0 : e->beat_valid);
    e->arrived_last = e->fill ? e->fill_beats == 1 : e->beat_last;
    e->arrived_error = e->fill ? 0 : e->beat_error;

    e->write_valid = e->some_complete && (!e->write_error || e->request_write_on);
    e->write_address = e->target;
    e->write_bytes = e->only ? e->newest : e->write_room;
    e->data_valid = e->buffer.here && e->flows;
    e->leaves = e->buffer.here && (e->flows ? e->data_ready : e->dropping);

    int rest = failure ? e->requesting_on || e->write_valid : e->splitting;
    e->done = e->busy && !rest && !e->unwritten && !e->flows && !e->writing;
    e->error = e->read_error ? e->read_error : e->write_error;
    e->of_read = e->read_error != 0;
}

static void copy_engine_tick(CopyEngine* e) {
    if (!e->busy && !e->start && !e->stop && !e->beat_valid && !e->write_refused && queue_empty(&e->buffer) && !e->dropped &&
        !e->fill_beats) {
        e->requesting_on = e->request_write_on = 0;
        e->dropping = ((e->read_error && !e->some_complete) || (e->write_error && !e->write_valid)) && !e->flows;
        return;
    }
    uint32_t requested = e->requested, write_requested = e->write_valid && e->write_ready, read_failed = e->read_error;
    uint32_t write_failed = e->write_error, flows = e->flows, some_complete = e->some_complete;
    int leaving = e->leaves && e->last[e->buffer.first % BUFFER_RING], retired = write_requested || e->dropped, completed = 0;

    e->requesting_on = e->requesting && !requested;
    e->request_write_on = e->write_valid && !e->write_ready;
    if (e->stop) e->stopped = 1;
    if (e->arrives) {
        uint32_t bad = e->chunk_error ? e->chunk_error : e->arrived_error;
        e->chunk_error = e->arrived_last ? 0 : bad;
        if (e->arrived_last) {
            completed = !bad && !read_failed;
            if (!read_failed) e->read_error = bad;
        }
    }
    e->dropping = ((read_failed && !some_complete) || (write_failed && !e->write_valid)) && !flows;
    e->dropped = leaving && !flows;
    e->some_complete = completed || (some_complete && !(write_requested && e->complete == 1));
    e->complete += (uint32_t)completed - write_requested;
    e->flows = write_requested || (flows && !(leaving && e->flowing == 1));
    e->flowing += write_requested - (uint32_t)(leaving && flows);
    if (requested != (uint32_t)retired) {
        e->only = retired ? e->unwritten == 2 : e->unwritten == 0;
        e->unwritten += retired ? -1u : 1;
    }
    if (requested) e->newest = e->run_bytes;
    if (write_requested) {
        e->target = (e->target & -CHUNK_BYTES) + CHUNK_BYTES;
        e->write_room = CHUNK_BYTES;
    }
    if (e->write_refused && !write_failed) e->write_error = e->write_refused;

    if (e->arrives) e->last[e->buffer.end % BUFFER_RING] = e->arrived_last;
    queue_tick(&e->buffer, e->arrives, e->leaves);

    // The source of a fill, and the splitter.
    if (e->source_ready) {
        if (e->requesting && e->fill) e->fill_beats = (e->run_bytes + BUS_BYTES - 1) / BUS_BYTES;
    } else if (e->arrives && e->fill) {
        --e->fill_beats;
    }
    if (requested) {
        e->address += e->run_bytes;
        e->left -= e->run_bytes;
        e->room = CHUNK_BYTES;
        e->splitting = e->whole;
        e->whole = e->left > CHUNK_BYTES;
    }
    if (e->done) e->busy = 0;
    if (e->start) {
        uint32_t first = CHUNK_BYTES - (e->dst & (CHUNK_BYTES - 1));
        e->address = e->src, e->left = e->bytes, e->room = first;
        e->splitting = e->bytes != 0;
        e->whole = e->bytes > first;
        e->busy = 1;
        e->stopped = e->read_error = e->write_error = e->chunk_error = e->complete = e->some_complete = 0;
        e->target = e->dst;
        e->write_room = first;
    }
}
