// What a core counts in a cycle.
#pragma once

static inline uint32_t core_sequencer_events(const Sequencer* s, const Semaphores* m) {
    uint32_t waits = s->wait_valid && !m->wait_ready[0], signals = s->signal_valid && !m->signal_ready[SIGNAL_SEQUENCER];
    return s->event_launch << SEQUENCER_CYCLE_LAUNCH | s->event_fetch << SEQUENCER_CYCLE_FETCH |
           s->event_queue[0] << SEQUENCER_CYCLE_LOAD_QUEUE | s->event_queue[1] << SEQUENCER_CYCLE_STORE_QUEUE |
           s->event_queue[2] << SEQUENCER_CYCLE_MATRIX_QUEUE | s->event_queue[3] << SEQUENCER_CYCLE_VECTOR_QUEUE |
           waits << SEQUENCER_CYCLE_SYNC_WAIT | signals << SEQUENCER_CYCLE_SYNC_SIGNAL |
           s->event_end << SEQUENCER_CYCLE_END | s->event_report << SEQUENCER_CYCLE_REPORT |
           s->event_execute << SEQUENCER_CYCLE_EXECUTE;
}

// Requests that a memory refuses.
static inline uint32_t refused(const SramRequests* requests, int port) { return requests->valid[port] && !requests->ready[port]; }

// Requests that it grants, of ports from `first` to before `end`.
static inline uint32_t granted(const SramRequests* requests, int first, int end) {
    uint32_t count = 0;
    for (int k = first; k < end; ++k) count += requests->valid[k] && requests->ready[k];
    return count;
}

static inline void core_count(Core* c) {
    CoreCounters* counters = &c->counters;
    const Sequencer* s = &c->sequencer;
    const Semaphores* m = &c->semaphores;
    const LoadUnit* load = &c->load;
    const StoreUnit* store = &c->store;
    const CorePath* p = &c->path;
    const SramRequests *read = &c->scratchpad.read, *write = &c->scratchpad.write;
    const SramRequests *sums = &c->accumulator.read, *sums_write = &c->accumulator.write;
    uint32_t signals = 0, waits = 0, commands = 0, running = s->running;
    for (int k = 0; k < SIGNALLERS; ++k) signals |= (m->signal_valid[k] && !m->signal_ready[k]) << k;
    const uint32_t working[] = {load->busy, store->busy, c->matrix.events >> MATRIX_COMMAND & 1, c->vector.busy};
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        waits |= c->fronts[k].waiting << k;
        commands |= ((!c->fronts[k].empty && !c->fronts[k].waiting) || working[k]) << k;
    }
    uint32_t load_bank = refused(write, WRITE_LOAD) | refused(sums_write, SUMS_WRITE_LOAD);
    uint32_t store_bank = refused(read, READ_STORE) | refused(sums, SUMS_STORE);
    uint32_t beat = load->beat.valid && load->feed.beat_ready;
    uint32_t row = ((load->scratchpad_valid || load->accumulator_valid) && !load_bank) && !c->load_beat;
    uint32_t handed = store->data_valid && p->store.data_ready;

    memcpy(counters->events, c->happened, sizeof c->happened);
    c->happened[GROUP_SEQUENCER] = core_sequencer_events(s, m);
    c->happened[GROUP_LOAD] = beat << LOAD_CYCLE_BEAT | row << LOAD_CYCLE_ROW | load_bank << LOAD_CYCLE_BANK |
                              (p->load.busy && !load->beat.valid) << LOAD_CYCLE_MEMORY | (signals >> SIGNAL_LOAD & 1) << LOAD_CYCLE_SIGNAL |
                              (commands & 1) << LOAD_CYCLE_COMMAND | (waits & 1) << LOAD_CYCLE_SEMAPHORE | running << LOAD_CYCLE_EMPTY;
    c->happened[GROUP_STORE] = handed << STORE_CYCLE_BEAT | (store->data_valid && !p->store.data_ready) << STORE_CYCLE_MEMORY |
                               store_bank << STORE_CYCLE_BANK | (signals >> SIGNAL_STORE & 1) << STORE_CYCLE_SIGNAL |
                               store->acknowledging << STORE_CYCLE_ACKNOWLEDGE | (commands >> 1 & 1) << STORE_CYCLE_COMMAND |
                               (waits >> 1 & 1) << STORE_CYCLE_SEMAPHORE | running << STORE_CYCLE_EMPTY;
    c->happened[GROUP_MATRIX] = c->matrix.events | ((signals >> SIGNAL_WEIGHTS & 3) != 0) << MATRIX_SIGNAL |
                                (waits >> 2 & 1) << MATRIX_SEMAPHORE | (commands >> 2 & 1) << MATRIX_COMMAND | running << MATRIX_EMPTY;
    c->happened[GROUP_VECTOR] = c->vector.events | (signals >> SIGNAL_VECTOR & 1) << VECTOR_SIGNAL | (waits >> 3) << VECTOR_SEMAPHORE |
                                (commands >> 3) << VECTOR_COMMAND | running << VECTOR_EMPTY;

    uint32_t *moved = counters->amounts[AMOUNT_TRAFFIC], vector_reads = c->vector.goes;
    moved[TRAFFIC_LOAD_BEATS] = p->load.response_valid && p->load.response_ready;
    moved[TRAFFIC_LOAD_BYTES] = c->load_bytes;
    moved[TRAFFIC_STORE_BEATS] = p->store.sent;
    moved[TRAFFIC_STORE_BYTES] = c->store_bytes;
    moved[TRAFFIC_FETCH_BEATS] = p->fetch.response_valid && p->fetch.response_ready;
    moved[TRAFFIC_SCRATCHPAD_WEIGHTS] = refused(read, READ_WEIGHTS);
    moved[TRAFFIC_SCRATCHPAD_STORE] = refused(read, READ_STORE);
    moved[TRAFFIC_ACCUMULATOR_STORE] = refused(sums, SUMS_STORE);
    moved[TRAFFIC_ACCUMULATOR_LOAD] = refused(sums_write, SUMS_WRITE_LOAD);
    moved[TRAFFIC_SCRATCHPAD_VECTOR_OUT] = refused(write, WRITE_VECTOR);
    moved[TRAFFIC_ACCUMULATOR_VECTOR_OUT] = refused(sums_write, SUMS_WRITE_VECTOR);
    moved[TRAFFIC_SCRATCHPAD_VECTOR_A] = vector_reads && refused(read, READ_VECTOR_A);
    moved[TRAFFIC_SCRATCHPAD_VECTOR_B] = vector_reads && refused(read, READ_VECTOR_B);
    moved[TRAFFIC_ACCUMULATOR_VECTOR_A] = vector_reads && refused(sums, SUMS_VECTOR_A);
    moved[TRAFFIC_ACCUMULATOR_VECTOR_B] = vector_reads && refused(sums, SUMS_VECTOR_B);
    memcpy(counters->amounts[AMOUNT_ROWS], c->rows, sizeof c->rows);
    c->rows[ROWS_SCRATCHPAD_READ] = granted(read, 0, READ_VECTOR_A) + granted(read, READ_STORE, read->count) +
                                    (vector_reads ? granted(read, READ_VECTOR_A, READ_STORE) : 0);
    c->rows[ROWS_SCRATCHPAD_WRITTEN] = granted(write, 0, write->count);
    c->rows[ROWS_ACCUMULATOR_READ] = granted(sums, 0, SUMS_VECTOR_A) + granted(sums, SUMS_STORE, sums->count) +
                                     (vector_reads ? granted(sums, SUMS_VECTOR_A, SUMS_STORE) : 0);
    c->rows[ROWS_ACCUMULATOR_WRITTEN] = granted(sums_write, 0, sums_write->count);
    counters->freeze = c->freeze;
    core_counters_tick(counters);
    c->load_bytes = load->run_valid && load->run_ready ? load->request.runs.item.bytes : 0;
    c->store_bytes = store->run_valid && store->run_ready ? store->length : 0;
    c->load_beat = beat;
}
