// What a core counts in a cycle.
#pragma once

enum {
    CORE_IDLE = SEQUENCER_CYCLE_IDLE | LOAD_CYCLE_IDLE << CLASS_BITS | STORE_CYCLE_IDLE << 2 * CLASS_BITS |
                MATRIX_IDLE << 3 * CLASS_BITS | VECTOR_IDLE << 4 * CLASS_BITS
};

static inline uint32_t core_sequencer_class(const Sequencer* s, const Semaphores* m) {
    uint32_t waits = s->wait_valid && !m->wait_ready[0], signals = s->signal_valid && !m->signal_ready[SIGNAL_SEQUENCER];
    uint32_t events = s->event_launch << SEQUENCER_CYCLE_LAUNCH | s->event_fetch << SEQUENCER_CYCLE_FETCH |
                      s->event_queue[0] << SEQUENCER_CYCLE_LOAD_QUEUE | s->event_queue[1] << SEQUENCER_CYCLE_STORE_QUEUE |
                      s->event_queue[2] << SEQUENCER_CYCLE_MATRIX_QUEUE | s->event_queue[3] << SEQUENCER_CYCLE_VECTOR_QUEUE |
                      waits << SEQUENCER_CYCLE_SYNC_WAIT | signals << SEQUENCER_CYCLE_SYNC_SIGNAL |
                      s->event_end << SEQUENCER_CYCLE_END | s->event_report << SEQUENCER_CYCLE_REPORT |
                      s->event_execute << SEQUENCER_CYCLE_EXECUTE | 1u << SEQUENCER_CYCLE_IDLE;
    return __builtin_ctz(events);
}

static inline void core_count(Core* c) {
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
    uint32_t load_bank = (load->scratchpad_valid && !write->ready[WRITE_LOAD]) | (load->accumulator_valid && !sums_write->ready[SUMS_WRITE_LOAD]);
    uint32_t store_bank = (store->scratchpad_valid && !read->ready[READ_STORE]) | (store->accumulator_valid && !sums->ready[SUMS_STORE]);
    uint32_t beat = load->beat.valid && load->feed.beat_ready;
    uint32_t row = ((load->scratchpad_valid || load->accumulator_valid) && !load_bank) && !c->load_beat;
    uint32_t handed = store->data_valid && p->store.data_ready;

    uint32_t of_load = beat << LOAD_CYCLE_BEAT | row << LOAD_CYCLE_ROW | load_bank << LOAD_CYCLE_BANK |
                       (p->load.busy && !load->beat.valid) << LOAD_CYCLE_MEMORY | (signals >> SIGNAL_LOAD & 1) << LOAD_CYCLE_SIGNAL |
                       (commands & 1) << LOAD_CYCLE_COMMAND | (waits & 1) << LOAD_CYCLE_SEMAPHORE |
                       running << LOAD_CYCLE_EMPTY | 1u << LOAD_CYCLE_IDLE;
    uint32_t of_store = handed << STORE_CYCLE_BEAT | (store->data_valid && !p->store.data_ready) << STORE_CYCLE_MEMORY |
                        store_bank << STORE_CYCLE_BANK | (signals >> SIGNAL_STORE & 1) << STORE_CYCLE_SIGNAL |
                        store->acknowledging << STORE_CYCLE_ACKNOWLEDGE | (commands >> 1 & 1) << STORE_CYCLE_COMMAND |
                        (waits >> 1 & 1) << STORE_CYCLE_SEMAPHORE | running << STORE_CYCLE_EMPTY | 1u << STORE_CYCLE_IDLE;
    uint32_t of_matrix = c->matrix.events | ((signals >> SIGNAL_WEIGHTS & 3) != 0) << MATRIX_SIGNAL | (waits >> 2 & 1) << MATRIX_SEMAPHORE |
                         (commands >> 2 & 1) << MATRIX_COMMAND | running << MATRIX_EMPTY | 1u << MATRIX_IDLE;
    uint32_t of_vector = c->vector.events | (signals >> SIGNAL_VECTOR & 1) << VECTOR_SIGNAL | (waits >> 3) << VECTOR_SEMAPHORE |
                         (commands >> 3) << VECTOR_COMMAND | running << VECTOR_EMPTY | 1u << VECTOR_IDLE;
    uint32_t packed = core_sequencer_class(s, m) | __builtin_ctz(of_load) << CLASS_BITS | __builtin_ctz(of_store) << 2 * CLASS_BITS |
                      __builtin_ctz(of_matrix) << 3 * CLASS_BITS | __builtin_ctz(of_vector) << 4 * CLASS_BITS;
    classes_tick(&c->classes, packed, CLASS_DELAY, c->freeze);

    uint32_t vector_reads = c->vector.goes;
    uint32_t moved = (p->load.response_valid && p->load.response_ready) << TRAFFIC_LOAD_BEATS | p->store.sent << TRAFFIC_STORE_BEATS |
                     (p->fetch.response_valid && p->fetch.response_ready) << TRAFFIC_FETCH_BEATS |
                     (read->valid[READ_WEIGHTS] && !read->ready[READ_WEIGHTS]) << TRAFFIC_SCRATCHPAD_WEIGHTS |
                     (read->valid[READ_STORE] && !read->ready[READ_STORE]) << TRAFFIC_SCRATCHPAD_STORE |
                     (sums->valid[SUMS_STORE] && !sums->ready[SUMS_STORE]) << TRAFFIC_ACCUMULATOR_STORE |
                     (sums_write->valid[SUMS_WRITE_LOAD] && !sums_write->ready[SUMS_WRITE_LOAD]) << TRAFFIC_ACCUMULATOR_LOAD |
                     (write->valid[WRITE_VECTOR] && !write->ready[WRITE_VECTOR]) << TRAFFIC_SCRATCHPAD_VECTOR_OUT |
                     (sums_write->valid[SUMS_WRITE_VECTOR] && !sums_write->ready[SUMS_WRITE_VECTOR]) << TRAFFIC_ACCUMULATOR_VECTOR_OUT;
    if (vector_reads)
        moved |= (read->valid[READ_VECTOR_A] && !read->ready[READ_VECTOR_A]) << TRAFFIC_SCRATCHPAD_VECTOR_A |
                 (read->valid[READ_VECTOR_B] && !read->ready[READ_VECTOR_B]) << TRAFFIC_SCRATCHPAD_VECTOR_B |
                 (sums->valid[SUMS_VECTOR_A] && !sums->ready[SUMS_VECTOR_A]) << TRAFFIC_ACCUMULATOR_VECTOR_A |
                 (sums->valid[SUMS_VECTOR_B] && !sums->ready[SUMS_VECTOR_B]) << TRAFFIC_ACCUMULATOR_VECTOR_B;
    if (!c->freeze) c->amounts.counts[TRAFFIC_LOAD_BYTES] += c->load_bytes[1], c->amounts.counts[TRAFFIC_STORE_BYTES] += c->store_bytes[1];
    amounts_tick(&c->amounts, moved, c->freeze);
    c->load_bytes[1] = c->load_bytes[0], c->store_bytes[1] = c->store_bytes[0];
    c->load_bytes[0] = load->run_valid && load->run_ready ? load->request.runs.item.bytes : 0;
    c->store_bytes[0] = store->run_valid && store->run_ready ? store->length : 0;
    c->load_beat = beat;
}
