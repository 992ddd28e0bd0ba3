// The units of a core, and what they ask: their memories and semaphores.
#pragma once

static inline void core_fronts(Core* c) {
    const Sequencer* s = &c->sequencer;
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        UnitFront* f = &c->fronts[k];
        f->abort = s->abort;
        f->i_valid = s->dispatch_valid[k];
        if (f->i_valid) f->i = s->x.command;
        unit_front_outputs(f);
    }
    c->scrub.start = s->starts;
    c->scrub.context = s->context;
    scrub_outputs(&c->scrub);
}

// Whether a command is offered to a unit, which is then in `to`.
static inline uint32_t core_command(const UnitFront* f, UnitCommand* to) {
    if (f->o_valid) *to = f->o;
    return f->o_valid;
}

static inline void core_units(Core* c) {
    LoadUnit* load = &c->load;
    StoreUnit* store = &c->store;
    MatrixUnit* matrix = &c->matrix;
    VectorUnit* vector = &c->vector;
    Scrub* scrub = &c->scrub;
    UnitFront* fronts = c->fronts;
    load->command_valid = core_command(&fronts[0], &load->command);
    store->command_valid = core_command(&fronts[1], &store->command);
    if (scrub->busy) {
        matrix->command_valid = scrub->matrix_valid, matrix->command = scrub->matrix;
        vector->command_valid = scrub->vector_valid, vector->command = scrub->vector;
    } else {
        matrix->command_valid = core_command(&fronts[2], &matrix->command);
        vector->command_valid = core_command(&fronts[3], &vector->command);
    }
    load->abort = store->abort = matrix->abort = vector->abort = c->sequencer.abort;
    load->clear = store->clear = matrix->clear = vector->clear = c->sequencer.clear;
    load->gang = c->sequencer.gang;
    load->signal_ready = load->scratchpad_ready = load->accumulator_ready = 1;
    store->signal_ready = store->scratchpad_ready = store->accumulator_ready = 1;
    matrix->signal_ready[0] = matrix->signal_ready[1] = matrix->activations_ready = matrix->weights_ready = 1;
    vector->signal_ready = vector->scratchpad_ready = vector->accumulator_ready = 1;
    for (int k = 0; k < VECTOR_READ_PORTS; ++k) vector->read_ready[k] = 1;
    load_unit_outputs(load);
    store_unit_outputs(store);
    matrix_unit_outputs(matrix);
    vector_unit_outputs(vector);
    fronts[0].o_ready = load->command_ready;
    fronts[1].o_ready = store->command_ready;
    fronts[2].o_ready = matrix->command_ready && !scrub->busy;
    fronts[3].o_ready = vector->command_ready && !scrub->busy;
    scrub->matrix_ready = matrix->command_ready;
    scrub->vector_ready = vector->command_ready;
}

static inline void sram_ask(SramRequests* requests, uint32_t port, uint32_t valid, uint32_t row) {
    requests->valid[port] = valid;
    requests->row[port] = valid ? row : 0;
}

static inline void core_memories(Core* c) {
    LoadUnit* load = &c->load;
    StoreUnit* store = &c->store;
    MatrixUnit* matrix = &c->matrix;
    VectorUnit* vector = &c->vector;
    SramRequests *read = &c->scratchpad.read, *write = &c->scratchpad.write;
    sram_ask(read, READ_ACTIVATIONS, matrix->activations_valid, matrix->activations_row);
    sram_ask(read, READ_WEIGHTS, matrix->weights_valid, matrix->weights_row);
    sram_ask(read, READ_VECTOR_A, vector->read_valid[SCRATCHPAD_A], vector->read_row[SCRATCHPAD_A]);
    sram_ask(read, READ_VECTOR_B, vector->read_valid[SCRATCHPAD_B], vector->read_row[SCRATCHPAD_B]);
    sram_ask(read, READ_STORE, store->scratchpad_valid, store->reads.row);
    sram_ask(write, WRITE_LOAD, load->scratchpad_valid, load->writes.item.row);
    sram_ask(write, WRITE_VECTOR, vector->scratchpad_valid, vector->write_row);
    sram_outputs(&c->scratchpad);
    SramRequests *sums = &c->accumulator.read, *sums_write = &c->accumulator.write;
    sram_ask(sums, SUMS_MATRIX, matrix->read_valid, matrix->read_row);
    sram_ask(sums, SUMS_VECTOR_A, vector->read_valid[ACCUMULATOR_A], vector->read_row[ACCUMULATOR_A]);
    sram_ask(sums, SUMS_VECTOR_B, vector->read_valid[ACCUMULATOR_B], vector->read_row[ACCUMULATOR_B]);
    sram_ask(sums, SUMS_STORE, store->accumulator_valid, store->reads.row);
    if (HAS_LISTS) {
        const ListAddresses *of_load = &load->request.list, *of_store = &store->list;
        sram_ask(sums, SUMS_LOAD_LIST, of_load->read_valid, of_load->read_row);
        sram_ask(sums, SUMS_STORE_LIST, of_store->read_valid, of_store->read_row);
    }
    sram_ask(sums_write, SUMS_WRITE_MATRIX, matrix->write_valid, matrix->write_row);
    sram_ask(sums_write, SUMS_WRITE_LOAD, load->accumulator_valid, load->writes.item.row);
    sram_ask(sums_write, SUMS_WRITE_VECTOR, vector->accumulator_valid, vector->write_row);
    sram_outputs(&c->accumulator);
    if (HAS_LISTS) {
        load->request.list.read_ready = sums->ready[SUMS_LOAD_LIST];
        store->list.read_ready = sums->ready[SUMS_STORE_LIST];
    }
}

static inline void core_semaphores(Core* c) {
    LoadUnit* load = &c->load;
    StoreUnit* store = &c->store;
    MatrixUnit* matrix = &c->matrix;
    VectorUnit* vector = &c->vector;
    Semaphores* m = &c->semaphores;
    Sequencer* s = &c->sequencer;
    m->wait_valid[0] = s->wait_valid;
    m->wait_set[0] = s->x.instruction.wait;
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        m->wait_valid[WAIT_UNIT + k] = c->fronts[k].wait_valid;
        m->wait_set[WAIT_UNIT + k] = c->fronts[k].o.wait;
    }
    m->signal_valid[SIGNAL_SEQUENCER] = s->signal_valid, m->signal_set[SIGNAL_SEQUENCER] = s->x.instruction.signal;
    m->signal_valid[SIGNAL_LOAD] = load->signal_valid, m->signal_set[SIGNAL_LOAD] = load->signal_set;
    m->signal_valid[SIGNAL_STORE] = store->signal_valid, m->signal_set[SIGNAL_STORE] = store->offers.item;
    m->signal_valid[SIGNAL_WEIGHTS] = matrix->signal_valid[0], m->signal_set[SIGNAL_WEIGHTS] = matrix->signal_set[0];
    m->signal_valid[SIGNAL_MATRIX] = matrix->signal_valid[1], m->signal_set[SIGNAL_MATRIX] = matrix->signal_set[1];
    m->signal_valid[SIGNAL_VECTOR] = vector->signal_valid, m->signal_set[SIGNAL_VECTOR] = vector->signal_set;
    m->clear = s->clear;
    semaphores_outputs(m);
    for (int k = 0; k < UNITS_BEHIND; ++k) c->fronts[k].wait_ready = m->wait_ready[WAIT_UNIT + k];

    const SramRequests *read = &c->scratchpad.read, *write = &c->scratchpad.write;
    const SramRequests *sums = &c->accumulator.read, *sums_write = &c->accumulator.write;
    uint32_t signals = 0;
    for (int k = 0; k < SIGNALLERS; ++k) signals |= (m->signal_valid[k] && !m->signal_ready[k]) << k;
    uint32_t refused = !write->ready[WRITE_LOAD] | !sums_write->ready[SUMS_WRITE_LOAD] | signals >> SIGNAL_LOAD & 1;
    if (refused) {
        load->scratchpad_ready = write->ready[WRITE_LOAD];
        load->accumulator_ready = sums_write->ready[SUMS_WRITE_LOAD];
        load->signal_ready = m->signal_ready[SIGNAL_LOAD];
        load_unit_outputs(load);
    }
    refused = !read->ready[READ_STORE] | !sums->ready[SUMS_STORE] | signals >> SIGNAL_STORE & 1;
    if (refused) {
        store->scratchpad_ready = read->ready[READ_STORE];
        store->accumulator_ready = sums->ready[SUMS_STORE];
        store->signal_ready = m->signal_ready[SIGNAL_STORE];
        store_unit_outputs(store);
    }
    refused = !read->ready[READ_WEIGHTS] | (signals >> SIGNAL_WEIGHTS & 3);
    if (refused) {
        matrix->weights_ready = read->ready[READ_WEIGHTS];
        matrix->signal_ready[0] = m->signal_ready[SIGNAL_WEIGHTS];
        matrix->signal_ready[1] = m->signal_ready[SIGNAL_MATRIX];
        matrix_unit_outputs(matrix);
    }
    refused = !read->ready[READ_VECTOR_A] | !read->ready[READ_VECTOR_B] | !sums->ready[SUMS_VECTOR_A] |
              !sums->ready[SUMS_VECTOR_B] | !write->ready[WRITE_VECTOR] | !sums_write->ready[SUMS_WRITE_VECTOR] |
              signals >> SIGNAL_VECTOR & 1;
    if (refused) {
        vector->read_ready[SCRATCHPAD_A] = read->ready[READ_VECTOR_A];
        vector->read_ready[SCRATCHPAD_B] = read->ready[READ_VECTOR_B];
        vector->read_ready[ACCUMULATOR_A] = sums->ready[SUMS_VECTOR_A];
        vector->read_ready[ACCUMULATOR_B] = sums->ready[SUMS_VECTOR_B];
        vector->scratchpad_ready = write->ready[WRITE_VECTOR];
        vector->accumulator_ready = sums_write->ready[SUMS_WRITE_VECTOR];
        vector->signal_ready = m->signal_ready[SIGNAL_VECTOR];
        vector_unit_outputs(vector);
    }
}
