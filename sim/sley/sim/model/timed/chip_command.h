// The command processor of a chip, and the registers in front of it.
#pragma once

static inline uint32_t queue_register(uint32_t number, uint32_t k) { return number + k * (REGISTER_QUEUE_CONTROL(1) - REGISTER_QUEUE_CONTROL(0)); }

// Registers that software has written.
static inline void chip_registers(Chip* c) {
    RegisterBank* b = &c->bank;
    CommandProcessor* p = &c->command;
    const uint32_t* values = b->values;
    b->read = c->target.read, b->read_address = c->target.read_address;
    b->write = c->target.write, b->write_address = c->target.write_address, b->write_data = c->target.write_data;
    b->index = 31 - __builtin_clz(p->executor.owner | 1);
    if (p->executor.owner) b->index = 31 - __builtin_clz(p->executor.owner);
    register_bank_outputs(b);
    for (int k = 0; k < QUEUES; ++k) {
        uint32_t control = values[REGISTER_QUEUE_CONTROL(k)], owner = values[REGISTER_QUEUE_OWNER(k)];
        p->queues[k].enable = R_QUEUE_CONTROL_ENABLE(control);
        p->queues[k].abort = R_QUEUE_CONTROL_ABORT(control);
        p->contexts[k] = R_QUEUE_OWNER_CONTEXT(owner);
        p->priorities[k] = R_QUEUE_OWNER_PRIORITY(owner);
        p->queues[k].base = values[REGISTER_QUEUE_BASE(k)];
        p->queues[k].log2 = R_QUEUE_SIZE_LOG2(values[REGISTER_QUEUE_SIZE(k)]);
    }
    p->executor.readback = b->seen[REGISTER_QUEUE_READBACK(0)];
    p->executor.watchdog = b->seen[REGISTER_QUEUE_WATCHDOG(0)];
    p->records.read_index = b->read_index;
    p->records.readback = b->shown[REGISTER_QUEUE_READBACK(0)];
    p->doorbell = R_DOORBELL_WRITE_INDEX_INDEX(b->seen[REGISTER_DOORBELL_WRITE_INDEX(0)]);
    p->rung = b->written[REGISTER_DOORBELL_WRITE_INDEX(0)];
    p->reset = R_CHIP_CONTROL_RESET(values[REGISTER_CHIP_CONTROL]);
    p->control_written = b->written[REGISTER_CHIP_CONTROL];
    uint32_t status = values[REGISTER_CHIP_IRQ_STATUS], enable = values[REGISTER_CHIP_IRQ_ENABLE];
    p->interrupts.fences = R_CHIP_IRQ_STATUS_FENCE(status), p->interrupts.errors = R_CHIP_IRQ_STATUS_ERROR(status);
    p->interrupts.enabled_fences = R_CHIP_IRQ_ENABLE_FENCE(enable), p->interrupts.enabled_errors = R_CHIP_IRQ_ENABLE_ERROR(enable);
    p->interrupts.limit = R_CHIP_IRQ_COALESCE_COUNT(values[REGISTER_CHIP_IRQ_COALESCE]);
    p->interrupts.patience = R_CHIP_IRQ_COALESCE_CYCLES(values[REGISTER_CHIP_IRQ_COALESCE]);
    p->stale = R_CHIP_INVALIDATE_CONTEXT(values[REGISTER_CHIP_INVALIDATE]);
    p->stale_contents = R_CHIP_INVALIDATE_CONTENTS(values[REGISTER_CHIP_INVALIDATE]);
    p->invalidate_written = b->written[REGISTER_CHIP_INVALIDATE];
    p->time_read = b->strobes[REGISTER_CHIP_TIME_LO];
    p->resetting = c->reset_state != RESET_RUN;
    for (int k = 0; k < CONTEXTS; ++k) {
        uint32_t root = values[REGISTER_CONTEXT_ROOT(k)];
        c->gateway.walker.roots[k] = (Root){R_CONTEXT_ROOT_MODE(root), R_CONTEXT_ROOT_PAGE(root)};
    }
}

// What comes for it: words of memory, of a core, or an answer to a walk.
static inline void chip_answer(Chip* c) {
    CommandProcessor* p = &c->command;
    const FlitBuffer* answer = &network_at(&c->responses, nodes[NODE_COMMAND])->out[SIDE_LOCAL];
    p->port.answer_valid = answer->here;
    if (!answer->here) return;
    p->port.answer = answer->item;
    p->answer_error = answer->item.error;
    uint32_t tag = answer->item.tag, of_memory = !answer->item.walk && (tag == TAG_FETCH || tag == TAG_WORD);
    p->answer[0] = answer->item.data;
    if (of_memory) memcpy(p->answer, c->beats[answer->item.data], PACKET_LANES * sizeof(uint32_t));
}

// Data of its flits, which its twin leaves out.
static inline void chip_request_data(Chip* c) {
    CommandProcessor* p = &c->command;
    NodePort* port = &p->port.port;
    if (p->words.body) {
        Flit* flit = &port->request[PART_WORD];
        flit->data = port->request_ready[PART_WORD] ? written_put(&c->written, p->words.beat, p->words.strobe) : NO_BEAT;
    }
    if (p->scheduler.message_valid && !p->scheduler.shows_head) port->request[PART_MESSAGE].data = p->scheduler.message_word;
}

static inline int chip_command_stirs(Chip* c) {
    uint32_t answer = network_at(&c->responses, nodes[NODE_COMMAND])->out[SIDE_LOCAL].here;
    return command_stirs(&c->target, &c->bank, &c->command, answer | (c->reset_state != RESET_RUN));
}

static inline void chip_command(Chip* c) {
    CommandProcessor* p = &c->command;
    if (c->sleep.asleep && !chip_command_stirs(c)) return;
    c->sleep.asleep = 0;
    axi_lite_outputs(&c->target);
    chip_registers(c);
    chip_answer(c);
    command_processor_outputs(p);
    chip_request_data(c);
    network_enter(&c->requests, network_at(&c->requests, nodes[NODE_COMMAND]), p->port.out_valid, &p->port.out);
}

// The counter that software chose, of the core that it chose.
static uint32_t chip_counter(Chip* c) {
    const uint32_t* values = c->bank.values;
    uint32_t core = values[REGISTER_CHIP_CORE_SELECT], select = values[REGISTER_CHIP_COUNTER_SELECT];
    uint32_t group = R_CHIP_COUNTER_SELECT_GROUP(select), counter = R_CHIP_COUNTER_SELECT_COUNTER(select);
    if (group >= GROUP_READ && group <= GROUP_BUS) return bus_counters_count(&c->counters, group, counter);
    return core < CORES ? core_counters_count(&c->cores[core].counters, group, counter) : 0;
}

static uint32_t unit_shown(const Core* c, int unit) {
    const Semaphores* m = &c->semaphores;
    static const uint8_t signals[] = {1u << SIGNAL_LOAD, 1u << SIGNAL_STORE, 1u << SIGNAL_WEIGHTS | 1u << SIGNAL_MATRIX, 1u << SIGNAL_VECTOR};
    const uint32_t busy[] = {c->load.busy, c->store.busy, c->matrix.busy, c->vector.busy};
    for (int k = 0; k < SIGNALLERS; ++k)
        if (signals[unit] >> k & 1 && m->signal_valid[k] && !m->signal_ready[k]) return SHOWN_SIGNAL;
    return busy[unit] ? SHOWN_RUN : c->fronts[unit].waiting ? SHOWN_WAIT : SHOWN_IDLE;
}

static void chip_show_core(Chip* c) {
    uint32_t* given = c->bank.given;
    uint32_t number = c->bank.values[REGISTER_CHIP_CORE_SELECT];
    given[REGISTER_CHIP_CORE_PC] = given[REGISTER_CHIP_CORE_UNITS] = 0;
    given[REGISTER_CHIP_CORE_SEMAPHORES_LO] = given[REGISTER_CHIP_CORE_SEMAPHORES_HI] = 0;
    if (number >= CORES) return;
    const Core* core = &c->cores[number];
    given[REGISTER_CHIP_CORE_PC] = core->sequencer.pc << R_CHIP_CORE_PC_PC_AT | core->sequencer.running << R_CHIP_CORE_PC_RUNNING_AT;
    given[REGISTER_CHIP_CORE_UNITS] =
        core->sequencer.shown << R_CHIP_CORE_UNITS_SEQUENCER_AT | unit_shown(core, 0) << R_CHIP_CORE_UNITS_LOAD_AT |
        unit_shown(core, 1) << R_CHIP_CORE_UNITS_STORE_AT | unit_shown(core, 2) << R_CHIP_CORE_UNITS_MATRIX_AT |
        unit_shown(core, 3) << R_CHIP_CORE_UNITS_VECTOR_AT;
    for (int k = 0; k < SEMAPHORES; ++k)
        given[k < 8 ? REGISTER_CHIP_CORE_SEMAPHORES_LO : REGISTER_CHIP_CORE_SEMAPHORES_HI] |= core->semaphores.values[k] << k % 8 * 4;
}

// Registers that software reads in this cycle, as the chip gives them.
static void chip_show(Chip* c) {
    uint32_t* given = c->bank.given;
    CommandProcessor* p = &c->command;
    const QueueRecords* r = &p->records;
    for (int k = 0; k < QUEUES; ++k) {
        const CommandQueue* q = &p->queues[k];
        given[REGISTER_QUEUE_READ_INDEX(k)] = q->read;
        given[REGISTER_QUEUE_WRITE_INDEX(k)] = q->write;
        given[REGISTER_QUEUE_BUFFER_INDEX(k)] = q->buffer_index | q->inside << R_QUEUE_BUFFER_INDEX_IN_BUFFER_AT;
        given[REGISTER_QUEUE_STATE(k)] = q->state;
    }
    given[REGISTER_QUEUE_ERROR(0)] = r->shown.code | r->shown.unit << R_QUEUE_ERROR_UNIT_AT | r->shown.core << R_QUEUE_ERROR_CORE_AT;
    given[REGISTER_QUEUE_ERROR_PC(0)] = r->shown.pc;
    given[REGISTER_QUEUE_ERROR_BLOCK(0)] = r->shown.block;
    given[REGISTER_QUEUE_ERROR_ADDRESS(0)] = r->shown.address;
    given[REGISTER_QUEUE_DOORBELL_TIME_LO(0)] = r->rung_at[0], given[REGISTER_QUEUE_DOORBELL_TIME_HI(0)] = r->rung_at[1];
    given[REGISTER_CHIP_TIME_LO] = p->shown_time[0], given[REGISTER_CHIP_TIME_HI] = p->shown_time[1];
    given[REGISTER_CHIP_STATUS] = p->resetting << R_CHIP_STATUS_RESETTING_AT | p->invalidating << R_CHIP_STATUS_INVALIDATING_AT;
    given[REGISTER_CHIP_PROGRESS] = c->progress;
    given[REGISTER_CHIP_COUNTER] = chip_counter(c);
    chip_show_core(c);
}

// Address spaces of the values follow those of the chip.
static void chip_follow(Chip* c) {
    const Values* v = &c->values;
    const CommandProcessor* p = &c->command;
    if (p->copies.i_valid) {
        const CopyCommand* job = &p->copies.i;
        if (job->fill) v->fill(v->memory, job->context, job->dst, job->bytes, job->value);
        else v->copy(v->memory, job->context, job->src, job->dst, job->bytes);
    }
    if (p->invalidate_written) v->forget(v->memory, p->stale);
}

// After a write of a register.
static void chip_follow_roots(Chip* c) {
    for (int k = 0; k < CONTEXTS; ++k) {
        uint32_t root = c->bank.values[REGISTER_CONTEXT_ROOT(k)];
        c->values.root(c->values.memory, k, R_CONTEXT_ROOT_MODE(root), R_CONTEXT_ROOT_PAGE(root));
    }
}

// Packets, blocks and instructions that were finished, some cycles late.
static inline void chip_progress(Chip* c) {
    const CommandProcessor* p = &c->command;
    uint32_t done = 0;
    c->progress += c->progressing[PROGRESS_DELAYS - 1];
    for (int k = PROGRESS_DELAYS - 1; k; --k) c->progressing[k] = c->progressing[k - 1];
    for (int k = 0; k < CORES; ++k) done += __builtin_popcount(c->cores[k].finished);
    c->progressing[0] = done;
    if (!c->sleep.asleep) c->progressing[WATCH_CYCLES] += ((p->executor.event & EVENT_RETIRE) != 0) + p->scheduler.retired;
}

static inline void chip_tick_command(Chip* c) {
    CommandProcessor* p = &c->command;
    RegisterBank* b = &c->bank;
    if (c->sleep.asleep) {
        chip_progress(c);
        ++p->time;
        return;
    }
    int stirs = chip_command_stirs(c);
    b->given[REGISTER_CHIP_IRQ_STATUS] = p->executor.fence << R_CHIP_IRQ_STATUS_FENCE_AT | p->failed << R_CHIP_IRQ_STATUS_ERROR_AT;
    if (b->reads != NO_REGISTER) chip_show(c);
    chip_progress(c);
    if (c->values.memory) chip_follow(c);
    register_bank_tick(b);
    if (c->target.write && c->values.memory) chip_follow_roots(c);
    axi_lite_tick(&c->target);
    c->target.read_data = b->read_data, c->target.read_error = b->read_error, c->target.write_error = b->write_error;
    command_processor_tick(p);
    command_sleep_look(&c->sleep, p, stirs);
}
