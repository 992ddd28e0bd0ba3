// The twin of sley.hw.core.store.unit: DMA from the scratchpad and the accumulators to memory.
#pragma once

#include "abi.h"
#include "affine.h"
#include "list_addresses.h"
#include "store_reads.h"
#include "unit_params.h"

#define STORE_UNIT_PORTS(IN, OUT)                                                                                     \
    IN(command_valid, "command.valid") IN(command.op, "command.payload.op") IN(command.pc, "command.payload.pc")      \
    IN(command.signal, "command.payload.signal") IN(command.a, "command.payload.a")                                   \
    IN(command.b, "command.payload.b") IN(command.c, "command.payload.c") IN(command.flags, "command.payload.flags")  \
    IN(signal_ready, "signal[0].ready") IN(abort, "abort") IN(clear, "clear") IN(run_ready, "run.ready")              \
    IN(data_ready, "data.ready") IN(writer_pending, "writer_pending") IN(writer_error, "writer_error")                \
    IN(writer_error_phase, "writer_error_phase") IN(scratchpad_ready, "scratchpad.ready")                             \
    IN(accumulator_ready, "accumulator.ready") LIST_INPUTS(IN, list)                                                  \
    OUT(command_ready, "command.ready") OUT(signal_valid, "signal[0].valid")                                          \
    OUT(offers.item, "signal[0].payload?signal[0].valid") OUT(fault.valid, "fault.valid")                              \
    OUT(fault.code, "fault.code?fault.valid") OUT(fault.pc, "fault.pc?fault.valid")                                   \
    OUT(fault.address, "fault.address?fault.valid") OUT(busy, "busy") OUT(retired, "retired")                         \
    OUT(run_valid, "run.valid") OUT(run.addr, "run.payload.addr?run.valid")                                           \
    OUT(length, "run.payload.bytes?run.valid") OUT(run.more, "run.payload.more?run.valid")                            \
    OUT(data_valid, "data.valid") OUT(phase, "phase") OUT(cut, "cut") OUT(acknowledging, "acknowledging")             \
    OUT(scratchpad_valid, "scratchpad.valid") OUT(reads.row, "scratchpad.row?scratchpad.valid")                       \
    OUT(accumulator_valid, "accumulator.valid") OUT(reads.row, "accumulator.row?accumulator.valid")                   \
    OUT(reads.index, "accumulator.part?accumulator.valid") LIST_OUTPUTS(OUT, list)

enum { STORE_COMMANDS = 4, STORE_DIMS = 2, STORE_ROW_DIMS = 3 };

typedef struct StoreRun {
    uint32_t addr, more;
} StoreRun;

// A command that is complete when memory has acknowledged what it stores.
typedef struct Incomplete {
    uint32_t signal, pc, address;
    uint8_t failure, stores, phase;
} Incomplete;

STREAM_BUFFER(uint32_t, OfferBuffer)

typedef struct StoreUnit {
    uint32_t command_valid, command_ready, signal_valid, signal_ready, abort, clear, busy, retired;
    uint32_t run_valid, run_ready, data_valid, data_ready, phase, cut, acknowledging;
    uint32_t writer_pending, writer_error, writer_error_phase;
    uint32_t scratchpad_valid, scratchpad_ready, accumulator_valid, accumulator_ready;
    UnitCommand command;
    StoreRun run;
    Fault fault;

    int asleep;  // nothing is here, and nothing changes but by a command or a word of the writer
    int known;   // the outputs are those of a unit asleep
    uint32_t params[PARAMS];
    uint32_t less_known;  // bytes of a run less 1, of the cycle before
    Loops loops;
    Walk addresses, rows;
    uint32_t strides[STORE_DIMS], row_strides[STORE_ROW_DIMS];
    ListAddresses list;
    uint32_t by_list, too_far;  // addresses are from the list; it ends behind the accumulators
    StoreReads reads;

    uint32_t idle, preparing, checking, searching, draining;  // one of these
    uint32_t pc, signals, memory_start, length, less, contiguous, stores;
    uint32_t failed;  // the command's own fault, or 0
    uint32_t span;    // from the first row of a run to the last, modulo twice the rows
    uint32_t far;     // it is further than from one end of the memory to the other
    uint32_t refused[2], refused_before, in_use;

    Queue queue, incomplete;  // of runs, and of commands
    StoreRun runs[STORE_RING];
    Incomplete commands[STORE_RING];
    OfferBuffer offers;  // signal sets
    int quiet;
} StoreUnit;

static void store_unit_reset(StoreUnit* u, const uint32_t* parameters) {
    memset(u, 0, sizeof *u);
    params_reset(u->params);
    store_reads_reset(&u->reads);
    list_addresses_reset(&u->list, 0);
    u->queue.depth = RUNS_AHEAD;
    u->incomplete.depth = STORE_COMMANDS;
    u->idle = 1;
}

static void store_unit_outputs(StoreUnit* u) {
    int known = u->asleep && !u->abort && !u->command_valid && !u->writer_pending;
    if (known && u->known) return;
    u->known = known;
    StoreReads* reads = &u->reads;
    u->list.enable = u->by_list && (u->preparing || u->checking);
    if (u->list.enable | u->list.read_valid) list_addresses_outputs(&u->list);
    int queued = !queue_empty(&u->queue), ask = reads_ask(reads);
    u->quiet = !queued && !u->writer_pending;
    u->command_ready = (u->idle && !(u->in_use >> u->phase & 1)) || u->abort;
    u->run_valid = u->queue.here;
    u->run = u->runs[u->queue.first % STORE_RING];
    u->cut = u->draining && !queued;
    u->acknowledging = (u->idle || u->draining) && reads_rest(reads) && !u->quiet;
    u->busy = !u->idle || !queue_empty(&u->incomplete) || u->offers.here;
    u->signal_valid = u->offers.here;
    u->retired = u->signal_valid && u->signal_ready;
    u->data_valid = reads->beats.here;
    u->scratchpad_valid = ask && reads->space == SPACE_SCRATCHPAD;
    u->accumulator_valid = ask && reads->space == SPACE_ACCUMULATOR;
}

static void store_unit_take(StoreUnit* u, const UnitCommand* c) {
    uint32_t* p = u->params;
    int is_set = c->op == OP_SET, many = c->c > 0xFFFF, accumulator = FLAG(STORE_SPACE, c->flags) == SPACE_ACCUMULATOR;
    int nothing = !c->c || !p[PARAM_COUNT2] || !p[PARAM_RUN_BYTES], moves = !is_set && !many && !nothing;
    u->pc = c->pc;
    u->signals = c->signal;
    u->length = p[PARAM_RUN_BYTES];
    u->less = u->less_known;
    u->reads.space = accumulator;
    u->reads.stride = p[PARAM_CHUNK_STRIDE];
    u->reads.last_beat = u->less / BUS_BYTES;
    u->idle = 0;
    u->preparing = moves;
    u->draining = !moves;
    u->stores = !is_set && !nothing;
    u->by_list = 0;
    if (is_set) {
        uint32_t param = FLAG(SET_PARAM, c->flags), bad = set_is_bad(UNIT_STORE, param, c->a);
        u->memory_start = param;
        u->failed = bad ? FAULT_BAD_PARAMETER : 0;
        if (!bad) p[param] = c->a;
        return;
    }
    u->memory_start = many ? c->c : c->a;
    u->failed = many ? FAULT_BAD_PARAMETER : 0;
    u->by_list = HAS_LISTS && FLAG(STORE_BY_LIST, c->flags);
    u->too_far = u->by_list && list_beyond(p[PARAM_LIST_ROW], c->c);
    u->contiguous = p[PARAM_MEM_STRIDE] == u->length && !u->by_list;
    int rows = accumulator ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS;
    int64_t chunks = u->less / (accumulator ? ACCUMULATOR_ROW_BYTES : ROW_BYTES);
    int64_t span = chunks * (int32_t)p[PARAM_CHUNK_STRIDE];
    u->span = (uint32_t)span % (2 * ROWS_MOST);
    u->far = span < -rows || span >= rows;
    loops_start(&u->loops, (uint32_t[]){c->c, p[PARAM_COUNT2]}, STORE_DIMS);
    if (u->by_list)
        list_addresses_begin(&u->list, c->a, c->c, p);
    else
        walk_start(&u->addresses, c->a, 0xFFFFFFFF, STORE_DIMS);
    walk_start(&u->rows, c->b, rows - 1, STORE_ROW_DIMS);
    u->strides[0] = p[PARAM_MEM_STRIDE];
    u->strides[1] = p[PARAM_MEM_STRIDE2];
    u->row_strides[0] = p[PARAM_CHUNK_STRIDE];
    u->row_strides[1] = p[PARAM_LOCAL_STRIDE];
    u->row_strides[2] = p[PARAM_LOCAL_STRIDE2];
}

static inline void store_unit_step_rows(StoreUnit* u, uint32_t last) {
    walk_step(&u->rows, last, u->row_strides, STORE_ROW_DIMS);
}

static inline uint32_t store_unit_address(const StoreUnit* u) { return u->by_list ? u->list.o : u->addresses.position; }

// A run: checks it, and hands it over; returns whether it did.
static inline int store_unit_check(StoreUnit* u) {
    if (u->by_list && !u->list.o_valid) return 0;
    StoreReads* reads = &u->reads;
    uint32_t last = u->loops.last, address = store_unit_address(u), row = u->rows.position;
    int missing = address + (uint64_t)u->less >= ADDRESS_LIMIT, outside = u->rows.outside;
    uint32_t rows = reads->space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROWS : SCRATCHPAD_ROWS;
    int last_outside = u->far || (row % ROWS_MOST + u->span) & rows;
    int stops = u->refused_before || missing || outside;
    if (!u->refused_before && (missing || outside)) u->failed = missing ? FAULT_BAD_ADDRESS : FAULT_LOCAL_ADDRESS;
    if (stops || last_outside) {
        u->checking = 0;
        u->draining = stops;
        u->searching = !stops;
        return 0;
    }
    if (u->abort || !queue_ready(&u->queue) || !queue_ready(&reads->starts)) return 0;
    u->runs[u->queue.end % STORE_RING] = (StoreRun){address, u->contiguous & ~last & 1};
    reads->rows[reads->starts.end % STORE_RING] = row;
    if (loops_end(&u->loops, STORE_DIMS)) {
        u->checking = 0;
        u->draining = 1;
    }
    if (!u->by_list) walk_step(&u->addresses, last, u->strides, STORE_DIMS);
    store_unit_step_rows(u, 1 | last << 1);
    loops_step(&u->loops, STORE_DIMS);
    return 1;
}

// Signals and faults in the order of the commands; returns whether one becomes complete.
static inline int store_unit_complete(StoreUnit* u) {
    static const uint8_t codes[] = {0, FAULT_BUS_ERROR, FAULT_PAGE_FAULT, FAULT_PERMISSION};
    const Incomplete* command = &u->commands[u->incomplete.first % STORE_RING];
    u->fault.valid = 0;
    if (!u->incomplete.here || u->offers.full) return 0;
    if (command->stores && u->writer_pending >> command->phase & 1) return 0;
    uint32_t error = command->stores ? u->refused[command->phase] : 0;
    if (error || command->failure) {
        uint32_t code = error ? codes[error] : command->failure;
        u->fault = (Fault){!u->abort, code, command->pc, command->address};
    }
    return 1;
}

// Whether the command at hand leaves for the others that wait to be complete.
static inline int store_unit_drain(StoreUnit* u, int refused) {
    int handed_over = !u->reads.active && queue_empty(&u->reads.starts) && queue_empty(&u->queue);
    int failing = (u->stores && refused) || u->failed;
    if (u->abort || !queue_ready(&u->incomplete) || !(failing ? u->quiet : handed_over)) return 0;
    uint32_t address = u->memory_start;
    if (!refused && u->failed == FAULT_BAD_ADDRESS) address = store_unit_address(u);
    if (!refused && u->failed == FAULT_LOCAL_ADDRESS) address = u->rows.position;
    u->commands[u->incomplete.end % STORE_RING] =
        (Incomplete){u->signals, u->pc, address, u->failed, u->stores, u->phase};
    return 1;
}

static void store_unit_tick(StoreUnit* u) {
    if (u->asleep && !u->abort && !u->command_valid && !u->clear && !u->writer_error) return;
    StoreReads* reads = &u->reads;
    int granted = (u->scratchpad_valid && u->scratchpad_ready) || (u->accumulator_valid && u->accumulator_ready);
    int refused = u->refused[u->phase] != 0, handed_over = 0, drained = 0;
    uint32_t phase = u->phase, in_use = u->in_use | u->preparing << phase, was_draining = u->draining;
    const Incomplete* command = &u->commands[u->incomplete.first % STORE_RING];
    int complete = store_unit_complete(u), less = u->params[PARAM_RUN_BYTES] - 1 & 0xFFFF;

    if (u->idle) {
        if (u->command_valid && u->command_ready && !u->abort) store_unit_take(u, &u->command);
    } else if (u->checking) {
        handed_over = store_unit_check(u);
    } else if (u->draining) {
        drained = store_unit_drain(u, refused);
        u->idle = drained;
        u->draining = !drained;
        u->phase ^= drained & u->stores;
    } else if (u->preparing) {
        u->preparing = 0;
        u->checking = !u->too_far;
        u->draining = u->too_far;
        if (u->too_far) {
            u->failed = FAULT_BAD_PARAMETER;
            u->memory_start = u->params[PARAM_LIST_ROW];
        }
    } else if (u->rows.outside) {
        u->failed = FAULT_LOCAL_ADDRESS;
        u->searching = 0;
        u->draining = 1;
    } else
        store_unit_step_rows(u, u->loops.last << 1);
    u->list.o_ready = handed_over;
    if (u->list.enable) list_addresses_tick(&u->list);
    u->less_known = less;
    u->refused_before = refused;

    uint32_t* error = &u->refused[u->writer_error_phase & 1];
    if (!*error) *error = u->writer_error;
    if (complete && command->stores) {
        u->refused[command->phase] = 0;
        in_use &= ~(1u << command->phase);
    }
    u->in_use = in_use;

    if (handed_over | u->queue.count | u->queue.here)
        queue_tick(&u->queue, handed_over, u->queue.here & u->run_ready);
    store_reads_tick(reads, handed_over, granted, u->data_ready);
    if (drained | u->incomplete.count | u->incomplete.here) queue_tick(&u->incomplete, drained, complete);
    if (complete | u->offers.here) OfferBuffer_tick(&u->offers, complete, command->signal, u->signal_ready);
    if (u->abort && u->busy) {
        // What the writer has been promised still goes to it.
        int done = was_draining && u->quiet;
        u->preparing = u->checking = u->searching = 0;
        u->idle = done;
        u->draining = !done;
    }
    if (u->abort) {
        u->refused[0] = u->refused[1] = u->in_use = 0;
        u->incomplete = (Queue){.depth = STORE_COMMANDS};
        u->offers = (OfferBuffer){0};
    }
    if (u->abort || u->clear) params_reset(u->params);
    u->asleep = u->known = 0;
    if (u->idle && !u->in_use && !u->abort && !u->clear) {
        int still = queue_empty(&u->incomplete) && !u->offers.here && queue_empty(&u->queue) && reads_rest(reads);
        u->asleep = still && !reads->arriving && !u->fault.valid && !u->refused_before && !(u->refused[0] | u->refused[1]) &&
                    u->less_known == (u->params[PARAM_RUN_BYTES] - 1 & 0xFFFF);
    }
}
