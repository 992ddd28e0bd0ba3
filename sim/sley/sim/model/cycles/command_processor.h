// The twin of sley.hw.command.processor: its parts and what is between them. Without the debug registers and counters.
#pragma once

#include "command_processor_state.h"

// Parameters: the numbers of the node and of that of memory; x of each core, then y.
static void command_processor_reset(CommandProcessor* c, const uint32_t* parameters) {
    static const uint32_t tags[PARTS] = {TAG_FETCH, TAG_LOAD, TAG_STORE, TAG_WORD, TAG_MESSAGE};
    uint32_t parts[1 + 2 * PARTS] = {PARTS}, asks[3] = {c->node = parameters[0], c->memory = parameters[1], TAG_FETCH};
    for (int k = 0; k < PARTS; ++k) parts[1 + k] = tags[k], parts[1 + PARTS + k] = 1;
    translated_port_reset(&c->port, parts);
    executor_reset(&c->executor, asks);
    asks[2] = TAG_WORD;
    word_access_reset(&c->words, asks);
    block_scheduler_reset(&c->scheduler, parameters + 2);
    copy_scheduler_reset(&c->copies, 0);
    uint32_t beats = COPY_READER_BURSTS * MAX_BURST, reader[2] = {READER_RUNS, beats};
    memory_reader_reset(&c->reader, reader);
    memory_writer_reset(&c->writer, 0);
}

// An answer of memory or of a core goes to the part with its tag.
static void command_processor_answer(CommandProcessor* c) {
    int valid = c->port.answer_valid && !c->port.answer.walk;
    uint32_t tag = valid ? c->port.answer.tag : TAG_TABLE;
    c->port.answer.data = c->answer[0];
    c->executor.response_valid = tag == TAG_FETCH;
    c->reader.response_valid = tag == TAG_LOAD;
    c->writer.response_valid = tag == TAG_STORE;
    c->words.response_valid = tag == TAG_WORD;
    c->scheduler.done_valid = tag == TAG_MESSAGE;
    if (!valid) return;
    c->executor.response_error = c->reader.response_error = c->writer.response_error = c->words.response_error =
        c->answer_error;
    c->scheduler.done_word = c->answer[0];
    if (tag == TAG_FETCH) memcpy(c->executor.response_data, c->answer, PACKET_LANES * sizeof(uint32_t));
    if (tag == TAG_WORD) memcpy(c->words.response_data, c->answer, PACKET_LANES * sizeof(uint32_t));
}

// Copies, and the reader and the writer of memory that they have.
static void command_processor_copies(CommandProcessor* c) {
    CopyEngine* e = &c->copies.engine;
    MemoryReader* r = &c->reader;
    MemoryWriter* w = &c->writer;
    r->i_valid = w->i_valid = 0;
    r->request_ready = !c->loads.full;
    w->request_ready = !c->stores.full;
    w->data_valid = e->buffer.here && e->flows;
    memory_reader_outputs(r);
    memory_writer_outputs(w);
    e->read_ready = r->i_ready;
    e->beat_valid = r->o_valid;
    e->beat_last = r->o_last;
    e->beat_error = r->o_error;
    e->write_ready = w->i_ready;
    e->data_ready = w->data_ready;
    e->writing = w->busy;
    e->write_refused = w->error;
    c->copies.abort = c->scheduler.abort = c->aborting;
    copy_scheduler_outputs(&c->copies);
    r->o_ready = e->beat_ready;
    if (e->read_valid) r->i = (Run){.addr = e->run_address, .bytes = e->run_bytes, .context = c->copies.context};
    if (e->write_valid) w->i = (Run){.addr = e->write_address, .bytes = e->write_bytes, .context = c->copies.context};
    r->i_valid = e->read_valid;
    w->i_valid = e->write_valid;
    r->accept = r->i_valid && r->i_ready;
    w->accept = w->i_valid && w->i_ready;
}

// An input that is compared with what it was: it is not written anew.
static inline void input(uint32_t* port, uint32_t value) {
    if (*port != value) *port = value;
}

static void command_processor_queues(CommandProcessor* c) {
    Executor* x = &c->executor;
    QueueRecords* r = &c->records;
    c->aborting = c->failed = x->pending = r->rings = r->rung = 0;
    for (int k = 0; k < QUEUES; ++k) {
        CommandQueue* q = &c->queues[k];
        uint32_t rung = c->rung >> k & 1;
        input(&q->doorbell_written, rung);
        if (rung) q->doorbell = c->doorbell;
        input(&x->queues[k].place.context, c->contexts[k]);
        if (!q->settled || rung || q->rings) {
            command_queue_outputs(q);
            x->queues[k] = (QueueView){{q->packet, q->nested, c->contexts[k]}, q->ahead, q->stays, q->read_next};
            r->errors[k] = (QueueError){q->code, q->address};
        }
        x->pending |= q->pending << k;
        r->rings |= q->rings << k;
        r->rung |= q->rung << k;
        c->aborting |= q->aborting << k;
        c->failed |= q->failed << k;
    }
}

static void command_processor_executes(CommandProcessor* c) {
    Executor* x = &c->executor;
    x->grid_valid = c->scheduler.o_valid;
    x->copied_valid = c->copies.o_valid;
    if (x->grid_valid) x->grid_result = (WorkResult){c->scheduler.o_queue, c->scheduler.o_fault};
    if (x->copied_valid) x->copy_result = c->copies.o;
    x->words_ready = c->words.i_ready;
    x->word_done = c->words.done;
    x->word_error = c->words.done ? c->words.error : 0;
    x->word[0] = c->words.value[0], x->word[1] = c->words.value[1];
    x->time[0] = (uint32_t)c->time, x->time[1] = (uint32_t)(c->time >> 32);
    x->stall = c->resetting;
    executor_outputs(x);

    c->words.i_valid = x->words_valid;
    if (x->words_valid) c->words.i = x->words;
    c->copies.i_valid = x->copy_valid;
    if (x->copy_valid) c->copies.i = x->copy;
    c->scheduler.i_valid = x->launch_valid;
    if (x->launch_valid) c->scheduler.i_queue = x->launch_queue, c->scheduler.i_grid = x->grid;
    c->scheduler.packet_valid = x->beat_valid;
    if (x->beat_valid) {
        c->scheduler.packet_index = x->beat_index;
        memcpy(c->scheduler.packet_data, x->beat_data, PACKET_LANES * sizeof(uint32_t));
    }
    c->scheduler.o_ready = x->grid_ready;
    c->copies.o_ready = x->copied_ready;
}

static Flit processor_flit(const CommandProcessor* c, uint32_t kind, uint32_t tag) {
    return (Flit){.dest = c->memory, .src = c->node, .kind = kind, .tag = tag};
}

static void command_processor_asks(CommandProcessor* c) {
    NodePort* port = &c->port.port;
    port->request_valid[PART_FETCH] = c->executor.request_valid;
    port->request_valid[PART_LOAD] = c->loads.here;
    port->request_valid[PART_STORE] = c->stores.here;
    port->request_valid[PART_WORD] = c->words.request_valid;
    port->request_valid[PART_MESSAGE] = c->scheduler.message_valid;
    for (int k = 0; k < PARTS; ++k) port->response_ready[k] = 1;
    port->response_ready[PART_LOAD] = c->reader.response_ready;
    if (c->executor.request_valid) port->request[PART_FETCH] = c->executor.request;
    if (c->loads.here) port->request[PART_LOAD] = c->loads.item;
    if (c->stores.here) port->request[PART_STORE] = c->stores.item;
    if (c->words.request_valid) {
        port->request[PART_WORD] = c->words.head;
        if (c->words.body) port->request[PART_WORD].last = c->words.last;
    }
    if (c->scheduler.message_valid) {
        const BlockScheduler* s = &c->scheduler;
        Flit* flit = &port->request[PART_MESSAGE];
        *flit = processor_flit(c, KIND_MESSAGE, TAG_MESSAGE);
        flit->dest = s->message_x | s->message_y << COORDINATE_BITS;
        flit->last = s->message_last;
        if (s->shows_head) flit->addr = s->head_address, flit->beats = s->head_beats;
    }
    translated_port_outputs(&c->port);
    c->executor.request_ready = port->request_ready[PART_FETCH];
    c->words.request_ready = port->request_ready[PART_WORD];
    c->scheduler.message_ready = port->request_ready[PART_MESSAGE];
    c->heads = c->port.out_valid && !c->inside;
    c->last = c->port.out.last;
}

static void command_processor_outputs(CommandProcessor* c) {
    if (memcmp(c->executor.priorities, c->priorities, sizeof c->priorities)) {
        memcpy(c->executor.priorities, c->priorities, sizeof c->priorities);
        memcpy(c->scheduler.priorities, c->priorities, sizeof c->priorities);
        memcpy(c->copies.priorities, c->priorities, sizeof c->priorities);
    }
    command_processor_queues(c);
    command_processor_answer(c);
    command_processor_copies(c);
    word_access_outputs(&c->words);
    block_scheduler_outputs(&c->scheduler);
    command_processor_executes(c);
    command_processor_asks(c);

    QueueRecords* r = &c->records;
    r->time[0] = c->executor.time[0], r->time[1] = c->executor.time[1];
    r->doorbell = c->doorbell;
    r->owner = c->executor.owner;
    r->faulted = c->executor.faulted;
    if (r->faulted) r->fault = c->executor.fault;
    queue_records_outputs(r);
    c->interrupts.fence = c->executor.fence;
    c->shown_time[0] = (uint32_t)c->time, c->shown_time[1] = c->time_high;
    c->invalidating = c->spreading != 0;
    c->reset_request = c->control_written && c->reset;
}

static void command_processor_tick_queues(CommandProcessor* c) {
    const Executor* x = &c->executor;
    for (int k = 0; k < QUEUES; ++k) {
        CommandQueue* q = &c->queues[k];
        input(&q->event, (x->owner >> k & 1 ? x->event : 0) | (x->taken >> k & 1 ? EVENT_TAKE : 0));
        input(&q->posted, x->posted >> k & 1);
        input(&q->lost, x->lost >> k & 1);
        if (q->event) q->fault_code = x->fault.code, q->buffer = x->buffer, q->buffer_packets = x->buffer_packets;
        if (q->lost) q->lost_code = x->lost_code;
        command_queue_tick(q);
    }
}

static void command_processor_tick_requests(CommandProcessor* c) {
    const MemoryReader* r = &c->reader;
    const MemoryWriter* w = &c->writer;
    const NodePort* port = &c->port.port;
    if (r->request_valid | c->loads.here) {
        Flit flit = processor_flit(c, KIND_READ, TAG_LOAD);
        flit.addr = r->request_addr, flit.beats = r->request_beats, flit.context = r->request_context, flit.last = 1;
        FlitBuffer_tick(&c->loads, r->request_valid, flit, port->request_ready[PART_LOAD]);
    }
    if (w->request_valid | c->stores.here) {
        Flit flit = processor_flit(c, KIND_WRITE, TAG_STORE);
        flit.addr = w->request_addr, flit.beats = w->request_beats, flit.context = w->request_context;
        flit.last = w->request_last;
        FlitBuffer_tick(&c->stores, w->request_valid, flit, port->request_ready[PART_STORE]);
    }
}

static void command_processor_tick(CommandProcessor* c) {
    if (c->port.out_valid && c->port.out_ready) c->inside = !c->last;
    c->abort = c->aborting;
    if (c->time_read) c->time_high = (uint32_t)(c->time >> 32);
    if (c->invalidate_written) c->spreading = INVALIDATE_CYCLES;
    else if (c->spreading) --c->spreading;
    ++c->time;
    command_processor_tick_queues(c);
    command_processor_tick_requests(c);
    queue_records_tick(&c->records);
    interrupts_tick(&c->interrupts);
    executor_tick(&c->executor);
    block_scheduler_tick(&c->scheduler);
    copy_scheduler_tick(&c->copies);
    memory_reader_tick(&c->reader);
    memory_writer_tick(&c->writer);
    word_access_tick(&c->words);
    translated_port_tick(&c->port);
    c->port.invalidate = c->invalidate_written;
    c->port.invalidated = c->stale;
    c->contents = c->stale_contents;
}
