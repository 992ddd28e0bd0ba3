// The twin of sley.hw.core.matrix.unit. Its ports of the accumulators are always granted.
#pragma once

#include "accumulate.h"
#include "activation_streamer.h"
#include "matrix_front.h"
#include "weight_loader.h"

#define MATRIX_UNIT_PORTS(IN, OUT)                                                                                  \
    IN(command_valid, "command.valid") IN(command.op, "command.payload.op") IN(command.pc, "command.payload.pc")   \
    IN(command.signal, "command.payload.signal") IN(command.a, "command.payload.a")                                \
    IN(command.b, "command.payload.b") IN(command.c, "command.payload.c")                                          \
    IN(command.flags, "command.payload.flags") IN(signal_ready[0], "signal[0].ready")                              \
    IN(signal_ready[1], "signal[1].ready") IN(abort, "abort") IN(clear, "clear")                                   \
    IN(activations_ready, "activations.ready") IN(weights_ready, "weights.ready")                                  \
    OUT(command_ready, "command.ready") OUT(signal_valid[0], "signal[0].valid")                                    \
    OUT(signal_set[0], "signal[0].payload?signal[0].valid") OUT(signal_valid[1], "signal[1].valid")                \
    OUT(signal_set[1], "signal[1].payload?signal[1].valid") OUT(retired, "retired") OUT(busy, "busy")              \
    OUT(fault_valid, "fault.valid") OUT(fault_code, "fault.code?fault.valid")                                      \
    OUT(fault_pc, "fault.pc?fault.valid") OUT(fault_address, "fault.address?fault.valid")                          \
    OUT(activations_valid, "activations.valid") OUT(activations_row, "activations.row?activations.valid")          \
    OUT(weights_valid, "weights.valid") OUT(weights_row, "weights.row?weights.valid")                              \
    OUT(read_valid, "accumulate_read.valid") OUT(read_row, "accumulate_read.row?accumulate_read.valid")            \
    OUT(write_valid, "accumulate_write.valid") OUT(write_row, "accumulate_write.row?accumulate_write.valid")       \
    OUT(rows, "rows") OUT(events, "events")

enum {
    STARTED_MATMULS = 16,                    // MATMULs whose signal sets may wait
    SETTLE_CYCLES = BF16_ROW * N + 4  // until words and swaps of bf16 have passed
};

typedef struct MatrixUnit {
    UnitCommand command;
    uint32_t command_valid, command_ready, signal_ready[2], signal_valid[2], signal_set[2], retired, busy, abort, clear;
    uint32_t fault_valid, fault_code, fault_pc, fault_address;
    uint32_t activations_ready, activations_valid, activations_row, weights_ready, weights_valid, weights_row;
    uint32_t read_valid, read_row, write_valid, write_row, rows, events;

    int64_t now, settling;  // the last cycle in which the other type has to wait
    MatrixFront front;
    WeightLoader loader;
    ActivationStreamer streamer;
    Accumulate accumulate;
    uint32_t started[STARTED_MATMULS], first_started, count_started;  // signal sets behind the one that is next, `signal_set[1]`
    uint32_t complete;                                        // MATMULs to signal
    uint8_t next_started, offered, raised;
    uint8_t rests;  // nothing changes until a command comes

    // In this cycle: what is complete goes on to `signal[0]`; a row of int8 may swap.
    uint8_t passes, settled;

    // All that changes are rows in the middle of a MATMUL, of a WEIGHTS, and rows in flight, before cycle `until`.
    uint8_t steady, streams, loads;
    int64_t until;
    uint32_t steady_events;
    uint8_t fast;  // this cycle is such a one
} MatrixUnit;

static void matrix_unit_reset(MatrixUnit* u, const uint32_t* parameters) {
    memset(u, 0, sizeof *u);
    u->now = 1;
    u->streamer.room = 1;
    params_reset(u->front.params);
}

static inline void matrix_unit_accumulator_ports(MatrixUnit* u) {
    accumulate_outputs(&u->accumulate, u->now);
    const IssueSlot *read = u->accumulate.read, *write = u->accumulate.write;
    u->read_valid = read && read->accumulate;
    if (read) u->read_row = read->dest;
    u->write_valid = write && write->row;
    if (write) u->write_row = write->dest;
    u->rows = u->accumulate.entering & 1;
}

static inline void matrix_unit_events(MatrixUnit* u) {
    const ActivationStreamer* s = &u->streamer;
    int waits = u->activations_valid && !u->activations_ready;
    if (s->unloaded) waits |= u->weights_valid && !u->weights_ready;
    int command = u->front.here | u->front.set_done | !weight_loader_idle(&u->loader) | !activation_streamer_idle(s);
    u->events = s->granted << (s->job.bf16 ? MATRIX_ROW_BF16 : MATRIX_ROW_INT8) | waits << MATRIX_OPERANDS |
                s->unloaded << MATRIX_WEIGHTS | s->hazard << MATRIX_HAZARD | command << MATRIX_COMMAND |
                u->busy << MATRIX_DRAIN;
}

// Whether all that follows is as in this cycle, but for rows that flow.
static inline int matrix_unit_is_steady(MatrixUnit* u) {
    const MatrixFront* f = &u->front;
    const WeightLoader* l = &u->loader;
    const ActivationStreamer* s = &u->streamer;
    if (!u->busy | f->done | f->set_done | l->signals | u->offered | u->raised | u->abort | u->clear) return 0;
    if ((u->command_valid & u->command_ready) | s->fails || (u->accumulate.write && u->accumulate.write->lasts)) return 0;
    if (u->complete || (u->count_started && !u->next_started) || (s->voids | s->later_voids | !s->room)) return 0;
    if ((s->waiting && !s->walk.busy) || (l->waiting && !l->walk.busy)) return 0;
    int streamer_idle = activation_streamer_idle(s), loader_idle = weight_loader_idle(l);
    if (f->settled != (streamer_idle && loader_idle)) return 0;
    u->streams = row_walk_flows(&s->walk);
    u->until = s->hazard ? s->hazards.free : INT64_MAX;
    if (!u->streams && !streamer_idle && !s->hazard && !(s->unloaded && s->job.loads != s->loads)) return 0;
    u->loads = !l->neutral && row_walk_flows(&l->walk);
    if (!u->loads && !loader_idle) {
        uint32_t left = l->job.swaps - s->swaps & ORDER_MASK;
        if (!l->walk.valid || !l->walk.first || l->neutral || l->failing || l->job.walk.empty) return 0;
        if (left == 0 || (left == 1 && s->swap)) return 0;
    }
    u->steady_events = u->events & ~(1u << MATRIX_ROW_INT8 | 1u << MATRIX_ROW_BF16 | 1u << MATRIX_OPERANDS);
    return 1;
}

// Returns 0 if something else happens.
static inline int matrix_unit_fast_outputs(MatrixUnit* u) {
    ActivationStreamer* s = &u->streamer;
    WeightLoader* l = &u->loader;
    if (u->abort | u->clear | (u->command_valid & u->command_ready) || u->now >= u->until) return 0;
    matrix_unit_accumulator_ports(u);
    if (u->accumulate.write && u->accumulate.write->lasts) return 0;
    s->granted = u->streams & u->activations_ready;
    l->granted = u->loads & u->weights_ready;
    u->activations_row = s->walk.position;
    u->weights_row = l->walk.position;
    int waits = u->streams > s->granted || (s->unloaded && u->loads > l->granted);
    u->events = u->steady_events | s->granted << (s->job.bf16 ? MATRIX_ROW_BF16 : MATRIX_ROW_INT8) |
                waits << MATRIX_OPERANDS;
    return 1;
}

static inline void matrix_unit_fast_tick(MatrixUnit* u) {
    ActivationStreamer* s = &u->streamer;
    WeightLoader* l = &u->loader;
    accumulate_tick(&u->accumulate);
    if (s->granted) {
        int bf16 = s->job.bf16;
        s->flying = u->now + (bf16 ? WRITE_LATENCY_BF16 : WRITE_LATENCY_INT8);
        accumulate_issue(&u->accumulate, u->now, 1, 0, s->dest++, s->job.accumulate, bf16);
        u->steady &= row_walk_flow(&s->walk);
    }
    if (l->granted) {
        if (HAS_BF16 && l->job.bf16) u->settling = u->now + SETTLE_CYCLES - 1;
        u->steady &= row_walk_flow(&l->walk);
    }
    ++u->now;
}

static void matrix_unit_outputs(MatrixUnit* u) {
    if (u->rests) return;
    u->fast = u->steady && matrix_unit_fast_outputs(u);
    if (u->fast) return;
    MatrixFront* f = &u->front;
    WeightLoader* l = &u->loader;
    ActivationStreamer* s = &u->streamer;
    int room = u->count_started < STARTED_MATMULS;
    matrix_front_outputs(f, !l->waiting, room && !s->waiting, room && s->room);
    u->command_ready = f->ready | u->abort;

    u->settled = !HAS_BF16 || u->now > u->settling;
    activation_streamer_outputs(s, u->now, u->activations_ready, u->settled);
    int quiet = s->unloaded || activation_streamer_idle(s), settled = u->settled && !(s->swap && s->job.bf16);
    weight_loader_outputs(l, u->weights_ready, s->swaps, s->swap, settled, quiet);
    u->activations_valid = s->reads;
    u->activations_row = s->walk.position;
    u->weights_valid = l->reads;
    u->weights_row = l->walk.position;

    matrix_unit_accumulator_ports(u);

    u->signal_valid[0] = u->offered;
    u->signal_valid[1] = u->next_started && u->complete;
    u->passes = !u->offered || u->signal_ready[0];
    u->retired = (u->offered & u->signal_ready[0]) | (u->signal_valid[1] & u->signal_ready[1]) << 1;
    u->busy = f->here | f->set_done | !weight_loader_idle(l) | u->offered | l->signals | u->next_started |
              (u->count_started != 0);
    u->fault_valid = u->raised;
    matrix_unit_events(u);
    u->fast = u->steady = matrix_unit_is_steady(u);
}

static inline void matrix_unit_raise(MatrixUnit* u) {
    u->raised = !u->abort;
    if (u->streamer.fails | u->loader.failing) {
        int streams = u->streamer.fails;
        u->fault_code = FAULT_LOCAL_ADDRESS;
        u->fault_pc = streams ? u->streamer.job.pc : u->loader.job.pc;
        u->fault_address = streams ? u->streamer.walk.position : u->loader.walk.position;
    } else {
        u->fault_pc = u->front.command.pc;
        u->fault_code = matrix_front_fault(&u->front, &u->fault_address);
    }
}

// The queue of signal sets, and both streams. `comes`: the set of a MATMUL that the streamer takes, `set`.
static inline void matrix_unit_signal(MatrixUnit* u, int comes, uint32_t set) {
    if (u->passes) {
        u->offered = u->loader.signals | u->front.set_done;
        u->signal_set[0] = u->loader.signals ? u->loader.signal : 0;
    }
    int retired = u->retired >> 1, fetch = u->count_started && (!u->next_started || retired);
    if (u->accumulate.write) u->complete += u->accumulate.write->lasts;
    u->complete -= retired;
    uint32_t end = u->first_started + u->count_started & STARTED_MATMULS - 1;
    if (retired) u->next_started = 0;
    if (fetch) {
        u->signal_set[1] = u->started[u->first_started];
        u->first_started = u->first_started + 1 & STARTED_MATMULS - 1;
        u->next_started = 1;
        --u->count_started;
    }
    if (comes) {
        u->started[end] = set;
        ++u->count_started;
    }
}

static void matrix_unit_abort(MatrixUnit* u) {
    matrix_front_abort(&u->front);
    weight_loader_abort(&u->loader);
    activation_streamer_abort(&u->streamer);
    accumulate_abort(&u->accumulate);
    u->first_started = u->count_started = u->complete = 0;
    u->next_started = u->offered = u->raised = 0;
}

static void matrix_unit_tick(MatrixUnit* u) {
    MatrixFront* f = &u->front;
    WeightLoader* l = &u->loader;
    ActivationStreamer* s = &u->streamer;
    if (u->rests && !u->command_valid && !u->abort && !u->clear) {
        ++u->now;
        return;
    }
    if (u->fast) {
        matrix_unit_fast_tick(u);
        return;
    }
    int rests = !u->busy && f->settled && s->room && !u->raised && accumulate_idle(&u->accumulate) && !u->rows &&
                !u->accumulate.entering;
    int idle = weight_loader_idle(l) && activation_streamer_idle(s);
    uint32_t op = f->done ? f->command.op : 0, set = f->command.signal;
    int takes = op == OP_MATMUL, empty = takes && (f->empty | f->ends_outside);

    u->raised = 0;
    if (s->fails | l->failing | matrix_front_faults(f)) matrix_unit_raise(u);
    if (HAS_BF16 && (weight_loader_turn_bf16(l) || (s->swap && s->job.bf16))) u->settling = u->now + SETTLE_CYCLES - 1;
    int slot = s->granted | s->lasts, bf16 = s->granted ? s->job.bf16 : s->bf16;
    accumulate_tick(&u->accumulate);
    if (slot) accumulate_issue(&u->accumulate, u->now, s->granted, s->lasts, s->dest, s->job.accumulate, bf16);
    matrix_unit_signal(u, takes, set);

    WeightsJob weights;
    MatmulJob matmul;
    if (op == OP_WEIGHTS) weights = weights_job(f);
    if (takes && !empty) matmul = matmul_job(f);
    int signal_taken = u->passes, set_taken = u->passes && !l->signals, loaded = l->loaded;
    weight_loader_tick(l, op == OP_WEIGHTS ? &weights : 0, signal_taken);
    activation_streamer_tick(s, u->now, takes && !empty ? &matmul : 0, empty, loaded);
    matrix_front_tick(f, idle, set_taken);
    if (u->command_valid && f->ready && !u->abort) {
        matrix_front_take(f, &u->command);
        rests = 0;
    }
    if (u->abort) matrix_unit_abort(u);
    if (u->abort | u->clear) params_reset(f->params);
    u->rests = rests && !u->abort;
    ++u->now;
}
