// A core: its twins as sley.hw.core.core connects them.
//
// Outputs of a cycle come before its tick. Ports that a unit asks, of memories and semaphores, are taken as granted at
// first; who is refused computes its outputs again. No request depends on a grant, so that settles.
#pragma once

#include "core_counters.h"
#include "core_path.h"
#include "load_unit.h"
#include "matrix_unit.h"
#include "scrub.h"
#include "semaphores.h"
#include "sequencer.h"
#include "sram.h"
#include "store_unit.h"
#include "values.h"
#include "vector_unit.h"

enum { READ_ACTIVATIONS, READ_WEIGHTS, READ_VECTOR_A, READ_VECTOR_B, READ_STORE };  // of the scratchpad
enum { WRITE_LOAD, WRITE_VECTOR };
enum { SUMS_MATRIX, SUMS_VECTOR_A, SUMS_VECTOR_B, SUMS_STORE, SUMS_LOAD_LIST, SUMS_STORE_LIST };  // of the accumulators
enum { SUMS_WRITE_MATRIX, SUMS_WRITE_LOAD, SUMS_WRITE_VECTOR };
enum { SIGNAL_SEQUENCER, SIGNAL_LOAD, SIGNAL_STORE, SIGNAL_WEIGHTS, SIGNAL_MATRIX, SIGNAL_VECTOR };
enum { WAIT_UNIT = 1, GROUP_UNIT = UNIT_LOAD - UNIT_SEQUENCER };

typedef struct Core {
    // Ports: messages that begin and end blocks; those to and from memory are of `path`.
    Flit launch;
    uint32_t launch_valid, done_ready, cancel;
    uint32_t invalidate, invalidated, contents, freeze;

    Sequencer sequencer;
    UnitFront fronts[UNITS_BEHIND];
    LoadUnit load;
    StoreUnit store;
    MatrixUnit matrix;
    VectorUnit vector;
    Sram scratchpad, accumulator;
    Semaphores semaphores;
    Scrub scrub;
    CorePath path;
    CoreCounters counters;
    const Values* values;
    void* model;  // the core of the compiled model, if there is one

    uint32_t forget, forgotten, forget_contents;  // `invalidate` of the cycle before
    uint32_t happened[CLASS_GROUPS];              // events of the cycle before
    uint32_t finished;                            // units, in the cycle before
    uint32_t load_beat;                           // one was taken in the cycle before
    uint32_t load_bytes, store_bytes;             // of runs that were taken in the cycle before
    uint32_t rows[ROWS_ACCUMULATOR_WRITTEN + 1];  // of memories that were granted in the cycle before
    uint32_t load_words[SRAM_READ], store_words[SRAM_READ];  // of lists, on their way from the accumulators
    uint32_t unknown;                             // one of them is not known, as nobody computes values
} Core;

static void core_reset(Core* c, uint32_t number, uint32_t node, uint32_t memory_node, const uint32_t* split,
                       const uint32_t* vector) {
    sequencer_reset(&c->sequencer, split);
    c->sequencer.core = number;
    for (int k = 0; k < UNITS_BEHIND; ++k) unit_front_reset(&c->fronts[k], (uint32_t[]){UNIT_QUEUE});
    load_unit_reset(&c->load, 0);
    store_unit_reset(&c->store, 0);
    matrix_unit_reset(&c->matrix, 0);
    vector_unit_reset(&c->vector, vector);
    sram_reset(&c->scratchpad, (uint32_t[]){SCRATCHPAD_ROWS, SCRATCHPAD_BANKS, 5, 2});
    sram_reset(&c->accumulator, (uint32_t[]){ACCUMULATOR_ROWS, ACCUMULATOR_BANKS, HAS_LISTS ? 6 : 4, 3});
    semaphores_reset(&c->semaphores, 0);
    core_path_reset(&c->path, node, memory_node);
}

#include "core_units.h"

// What the path shows of this cycle, in front of the outputs of the units.
static inline void core_to_units(Core* c) {
    c->load.beat = (Beat){c->path.load.out.here, c->path.load.out.item.last, c->path.load.out.item.error};
    c->store.writer_pending = c->path.store.pending;
}

static inline void core_to_path(Core* c) {
    CorePath* p = &c->path;
    const Sequencer* s = &c->sequencer;
    p->fetch.i_valid = s->run.valid;
    if (s->run.valid) p->fetch.i = (Run){.addr = s->run.address, .bytes = s->run.bytes, .context = s->context, .execute = s->run.execute};
    p->load.i_valid = c->load.run_valid;
    if (c->load.run_valid) p->load.i = c->load.request.runs.item, p->load.i.context = s->context;
    p->store.i_valid = c->store.run_valid;
    if (c->store.run_valid)
        p->store.i = (Run){.addr = c->store.run.addr, .bytes = c->store.length, .more = c->store.run.more, .context = s->context};
    p->store.data_valid = c->store.data_valid;
    p->store.cut = c->store.cut;
    p->store.phase = c->store.phase;
    p->fetch.o_ready = s->beat_ready;
    p->load.o_ready = c->load.feed.beat_ready;
    p->port.invalidate = c->forget;
    p->port.invalidated = c->forgotten;
}

static void core_outputs(Core* c) {
    c->sequencer.scrubbing = c->scrub.busy;
    sequencer_outputs(&c->sequencer);
    core_fronts(c);
    core_to_units(c);
    core_units(c);
    core_memories(c);
    core_semaphores(c);
    core_to_path(c);
    core_path_outputs(&c->path);
    if (c->path.store.pending != c->store.writer_pending) {
        c->store.writer_pending = c->path.store.pending;
        store_unit_outputs(&c->store);
        c->path.store.cut = c->store.cut;
    }
}

#include "core_counts.h"

// Outputs of the path to the inputs of those that use it.
static inline void core_from_path(Core* c) {
    CorePath* p = &c->path;
    Sequencer* s = &c->sequencer;
    s->run_ready = p->fetch.i_ready;
    s->beat_valid = p->fetch.o_valid;
    if (s->beat_valid) s->beat_error = p->fetch.o_error, fetched_give(&p->fetched, s->beat_data);
    c->load.run_ready = p->load.i_ready;
    c->store.run_ready = p->store.i_ready;
    c->store.data_ready = p->store.data_ready;
    c->store.writer_error = p->store.error;
    c->store.writer_error_phase = p->store.error_phase;
}

static inline FaultRecord core_fault(const Fault* f) { return (FaultRecord){f->valid, 0, f->code, f->pc, f->address}; }

static inline void core_to_sequencer(Core* c) {
    Sequencer* s = &c->sequencer;
    const MatrixUnit* m = &c->matrix;
    s->launch_valid = c->launch_valid;
    s->launch_last = c->launch.last;
    s->launch_word = s->launch_address = c->launch.data;
    s->done_ready = c->done_ready;
    s->cancel = c->cancel;
    s->retired = c->finished != 0;
    s->forget = c->forget && c->forget_contents;
    s->semaphores = c->semaphores.some;
    s->wait_ready = c->semaphores.wait_ready[0];
    s->signal_ready = c->semaphores.signal_ready[SIGNAL_SEQUENCER];
    s->unit_fault[0] = core_fault(&c->load.feed.fault);
    s->unit_fault[1] = core_fault(&c->store.fault);
    s->unit_fault[2] = (FaultRecord){m->fault_valid, 0, m->fault_code, m->fault_pc, m->fault_address};
    s->unit_fault[3] = core_fault(&c->vector.fault);
    uint32_t quiet = !c->scrub.busy && !c->load.busy && !c->store.busy && !m->busy && !c->vector.busy;
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        quiet &= c->fronts[k].empty;
        s->dispatch_ready[k] = c->fronts[k].i_ready;
    }
    s->units_idle = quiet;
}

static inline void core_scrub(Core* c) {
    Scrub* b = &c->scrub;
    b->abort = c->sequencer.abort;
    b->invalidate_valid = c->forget;
    b->invalidate_context = c->forgotten;
    b->invalidate_contents = c->forget_contents;
    b->clearing = c->scratchpad.clearing | c->accumulator.clearing;
    b->units_idle = !c->matrix.busy && !c->vector.busy;
    c->scratchpad.clear = c->accumulator.clear = b->clear;
    if (b->clear && c->model) c->values->scrub(c->model);
}

// What is taken by a unit has its effect at once: programs without races see no difference.
static inline void core_values(Core* c) {
    if (c->sequencer.starts) c->values->begin(c->model, c->sequencer.context);
    for (int k = 0; k < UNITS_BEHIND; ++k)
        if (c->fronts[k].o_valid && c->fronts[k].o_ready) c->values->execute(c->model, UNIT_LOAD + k, &c->fronts[k].o);
}

// The words of a list that come in this cycle, and one that is granted.
static inline void core_list(Core* c, ListAddresses* list, uint32_t* words) {
    list->read_data = words[0];
    for (int k = 1; k < SRAM_READ; ++k) words[k - 1] = words[k];
    if (!list->read_valid || !list->read_ready) return;
    c->unknown |= !c->model;
    words[SRAM_READ - 1] = c->model ? c->values->word(c->model, list->read_row, list->read_part) : 0;
}

static void core_tick(Core* c) {
    core_from_path(c);
    core_to_sequencer(c);
    core_scrub(c);
    if (c->model) core_values(c);
    if (HAS_LISTS && (c->load.request.by_list | c->store.by_list)) {
        core_list(c, &c->load.request.list, c->load_words);
        core_list(c, &c->store.list, c->store_words);
    }
    core_count(c);
    c->finished = c->load.retired | c->store.retired << 1 | c->matrix.retired << 2 | c->vector.retired << 4;
    core_path_tick(&c->path);
    sequencer_tick(&c->sequencer);
    for (int k = 0; k < UNITS_BEHIND; ++k) unit_front_tick(&c->fronts[k]);
    load_unit_tick(&c->load);
    store_unit_tick(&c->store);
    matrix_unit_tick(&c->matrix);
    vector_unit_tick(&c->vector);
    sram_tick(&c->scratchpad);
    sram_tick(&c->accumulator);
    semaphores_tick(&c->semaphores);
    scrub_tick(&c->scrub);
    c->forget = c->invalidate, c->forgotten = c->invalidated, c->forget_contents = c->contents;
}
