// The twin of sley.hw.core.vector.unit. It knows no row's values: no timing depends on them. Chains, parameters and rows
// are those of commands. It begins as the gateware does when the chip gets power; a reset later leaves that what InFlight
// has as the range of rows to be written.
#pragma once

#include "vector_front.h"
#include "vector_lanes.h"
#include "vector_reads.h"
#include "vector_retirement.h"
#include "vector_writes.h"

#define VECTOR_READ_IN(IN, place, port) IN(read_ready[place], port ".ready")
#define VECTOR_READ_OUT(OUT, place, port)                                                                        \
    OUT(read_valid[place], port ".valid") OUT(read_row[place], port ".row?" port ".valid")                      \
    OUT(read_part[place], port ".part?" port ".valid")

#define VECTOR_UNIT_PORTS(IN, OUT)                                                                                   \
    IN(command_valid, "command.valid") IN(command.op, "command.payload.op") IN(command.pc, "command.payload.pc")    \
    IN(command.signal, "command.payload.signal") IN(command.a, "command.payload.a")                                 \
    IN(command.b, "command.payload.b") IN(command.c, "command.payload.c")                                           \
    IN(command.flags, "command.payload.flags") IN(signal_ready, "signal[0].ready") IN(abort, "abort")               \
    IN(clear, "clear") VECTOR_READ_IN(IN, SCRATCHPAD_A, "scratchpad_read_a")                                        \
    VECTOR_READ_IN(IN, SCRATCHPAD_B, "scratchpad_read_b") VECTOR_READ_IN(IN, ACCUMULATOR_A, "accumulator_read_a")   \
    VECTOR_READ_IN(IN, ACCUMULATOR_B, "accumulator_read_b") IN(scratchpad_ready, "scratchpad_write.ready")          \
    IN(accumulator_ready, "accumulator_write.ready")                                                                \
    OUT(command_ready, "command.ready") OUT(signal_valid, "signal[0].valid")                                        \
    OUT(signal_set, "signal[0].payload?signal[0].valid") OUT(retired, "retired") OUT(busy, "busy")                  \
    OUT(fault.valid, "fault.valid") OUT(fault.code, "fault.code?fault.valid")                                       \
    OUT(fault.pc, "fault.pc?fault.valid") OUT(fault.address, "fault.address?fault.valid")                           \
    VECTOR_READ_OUT(OUT, SCRATCHPAD_A, "scratchpad_read_a") VECTOR_READ_OUT(OUT, SCRATCHPAD_B, "scratchpad_read_b") \
    VECTOR_READ_OUT(OUT, ACCUMULATOR_A, "accumulator_read_a")                                                       \
    VECTOR_READ_OUT(OUT, ACCUMULATOR_B, "accumulator_read_b") OUT(scratchpad_valid, "scratchpad_write.valid")       \
    OUT(write_row, "scratchpad_write.row?scratchpad_write.valid")                                                   \
    OUT(write_enable, "scratchpad_write.enable?scratchpad_write.valid")                                             \
    OUT(accumulator_valid, "accumulator_write.valid")                                                               \
    OUT(write_row, "accumulator_write.row?accumulator_write.valid") OUT(events, "events")

enum { PART_BITS = __builtin_ctz(ROW_PARTS), ALL_ELEMENTS = (1 << ELEMENTS) - 1 };

typedef struct VectorUnit {
    UnitCommand command;
    Fault fault;
    uint32_t command_valid, command_ready, signal_ready, signal_valid, signal_set, abort, clear, retired, busy, events;
    uint32_t read_ready[VECTOR_READ_PORTS], read_valid[VECTOR_READ_PORTS], read_row[VECTOR_READ_PORTS];
    uint32_t read_part[VECTOR_READ_PORTS];
    uint32_t scratchpad_ready, scratchpad_valid, accumulator_ready, accumulator_valid, write_row, write_enable;

    VectorFront front;
    VectorReads reads;
    VectorInFlight flight;
    VectorLanes lanes;
    VectorWrites writes;
    VectorRetirement retirement;
    uint32_t rows;        // in flight at most
    uint32_t halves[2];   // what comes in front of the part of a row of A, of B, if it has bytes
    uint8_t bytes[2];
    uint8_t issuing;           // some rows of the command that began last are left to be read
    uint8_t faulted, raises;   // one does not exist; that is a fault in this cycle
    uint32_t begun_pc;
    uint8_t leaves;            // a command did, in the cycle before
    VectorEnding leaving;
    uint8_t rests;             // nothing changes until a command comes

    uint8_t steady;  // all that changes are rows in flight

    uint8_t goes, stalls, fast;  // in this cycle: a part is asked for; no command is taken
} VectorUnit;

// All outputs of a unit that has nothing to do.
static inline void vector_unit_rest(VectorUnit* u) {
    u->rests = u->command_ready = 1;
    u->signal_valid = u->retired = u->busy = u->events = u->fault.valid = 0;
    u->scratchpad_valid = u->accumulator_valid = 0;
    memset(u->read_valid, 0, sizeof u->read_valid);
}

// Rows in flight at most, latencies of the functions.
static void vector_unit_reset(VectorUnit* u, const uint32_t* parameters) {
    memset(u, 0, sizeof *u);
    u->rows = *parameters++;
    memcpy(u->lanes.functions, parameters, sizeof u->lanes.functions);
    u->lanes.now = 1;
    params_reset(u->front.params);
    vector_unit_rest(u);
}

static inline void vector_unit_fault(VectorUnit* u) {
    const VectorFront* f = &u->front;
    int refuses = f->state == VECTOR_REFUSE;
    u->fault.valid = !u->abort && (u->raises || (refuses && !u->retirement.count));
    if (!u->fault.valid) return;
    u->fault.pc = u->raises ? u->begun_pc : f->command.pc;
    u->fault.address = 0;
    if (u->raises) {
        u->fault.code = FAULT_LOCAL_ADDRESS;
        u->fault.address = vector_reads_address(&u->reads);
        return;
    }
    int too_many = f->kind.vector && f->kind.too_many;
    u->fault.code = f->kind.set || too_many ? FAULT_BAD_PARAMETER : FAULT_ILLEGAL_INSTRUCTION;
    if (f->kind.set) u->fault.address = FLAG(SET_PARAM, f->command.flags);
    if (too_many) u->fault.address = f->command.c;
}

static inline void vector_unit_read_parts(VectorUnit* u) {
    for (int k = 0; k < 2; ++k) {
        u->read_part[ACCUMULATOR_A + k] = u->reads.part;
        u->read_part[SCRATCHPAD_A + k] = u->bytes[k] ? (u->reads.part | u->halves[k]) >> 1 : u->reads.part;
    }
}

static inline void vector_unit_write_ports(VectorUnit* u) {
    VectorWrites* w = &u->writes;
    vector_writes_outputs(w, u->scratchpad_ready, u->accumulator_ready);
    u->scratchpad_valid = u->accumulator_valid = 0;
    if (!w->valid) return;
    const VectorDestination* to = vector_writes_oldest(w);
    u->accumulator_valid = to->written && to->space == SPACE_ACCUMULATOR;
    u->scratchpad_valid = to->written && to->space != SPACE_ACCUMULATOR;
    u->write_row = to->row;
    u->write_enable = to->enable;
}

// And the events, which are of the reads.
static inline void vector_unit_read_ports(VectorUnit* u) {
    VectorReads* r = &u->reads;
    int room = u->flight.outstanding != u->rows;
    memset(u->read_valid, 0, sizeof u->read_valid);
    r->advance = r->row_advance = 0;
    u->events = (u->flight.outstanding != 0) << VECTOR_DRAIN;
    u->goes = u->issuing && !r->outside && room && !in_flight_blocks(&u->flight);
    if (!u->issuing) return;
    u->events |= !room << VECTOR_RESULTS;
    if (!u->goes) return;
    vector_reads_outputs(r, u->read_valid, u->read_row, u->read_ready);
    if (ROW_PARTS > 1) vector_unit_read_parts(u);
    u->events |= r->advance ? 1 << VECTOR_ROW : 1 << VECTOR_OPERANDS;
}

// Whether all that changes from this cycle on are rows that are read, pass the lanes and are written.
static inline void vector_unit_is_steady(VectorUnit* u) {
    const VectorFront* f = &u->front;
    const VectorRetirement* e = &u->retirement;
    int waits = f->state == VECTOR_NONE || (f->state == VECTOR_CHECK && f->kind.runs) ||
                (f->state == VECTOR_DECODE && f->chain_legal && !f->kind.empty && !f->cleared);
    u->steady = waits && !(f->done | f->rows | u->leaves | u->faulted | u->raises | e->ends | u->writes.ends) &&
                !(u->abort | u->clear | u->command_valid & u->command_ready) && !(u->issuing && u->reads.outside) &&
                e->count && retirement_oldest(e)->rows && !e->ended;
    u->fast = 0;
}

// Returns 0 if something else happens.
static inline int vector_unit_fast_outputs(VectorUnit* u) {
    if (u->abort | u->clear | u->command_valid & u->command_ready) return 0;
    if (u->writes.valid && vector_writes_oldest(&u->writes)->last) return 0;
    if (u->issuing ? u->reads.last | u->reads.outside : !u->lanes.inside) return 0;
    vector_unit_write_ports(u);
    vector_unit_read_ports(u);
    vector_lanes_outputs(&u->lanes);
    return 1;
}

static void vector_unit_outputs(VectorUnit* u) {
    if (u->rests && !u->command_valid) return;
    if (u->steady && vector_unit_fast_outputs(u)) {
        u->fast = 1;
        return;
    }
    VectorFront* f = &u->front;
    VectorReads* r = &u->reads;
    VectorLanes* l = &u->lanes;
    vector_unit_write_ports(u);
    int outside = u->issuing && r->outside;
    vector_unit_read_ports(u);
    vector_lanes_outputs(l);

    int follows = !u->issuing && !u->faulted, quiet = follows && !l->inside && !l->busy;
    vector_front_outputs(f, retirement_room(&u->retirement), u->retirement.count != 0, follows, quiet, l->counts);
    u->stalls = outside || u->faulted;
    u->command_ready = f->state == VECTOR_NONE && (!u->stalls || u->abort);
    vector_unit_fault(u);

    retirement_outputs(&u->retirement, l->busy);
    u->signal_valid = u->retirement.offers;
    u->signal_set = retirement_oldest(&u->retirement)->signal;
    u->retired = u->signal_valid && u->signal_ready;
    u->busy = f->state != VECTOR_NONE || u->leaves || u->retirement.count || l->busy;
    vector_unit_is_steady(u);
}

// The command at hand begins to read rows.
static inline void vector_unit_begin(VectorUnit* u) {
    VectorFront* f = &u->front;
    const Chain* chain = vector_front_chain(f);
    uint32_t flags = f->command.flags, out = FLAG(VECTOR_OUT, flags);
    vector_reads_begin(&u->reads, &f->command, chain, f->params, &u->flight);
    if (!f->alike) {
        if (f->kind.vrow) vector_lanes_vrow(&u->lanes);
        else vector_lanes_vector(&u->lanes, flags, chain);
    }
    VectorDestination* to = &u->writes.next;
    to->space = u->reads.spaces[WALK_OUT];
    to->enable = has(HALF_TYPES, out) ? ALL_ELEMENTS : 1 << FLAG(VECTOR_OUT_HALF, flags);
    to->written = u->reads.writes;
    u->halves[0] = FLAG(VECTOR_A_HALF, flags) << PART_BITS;
    u->halves[1] = FLAG(VECTOR_B_HALF, flags) << PART_BITS;
    u->bytes[0] = ELEMENTS > 1 && has(BYTE_TYPES, FLAG(VECTOR_A_TYPE, flags));
    u->bytes[1] = ELEMENTS > 1 && has(BYTE_TYPES, FLAG(VECTOR_B_TYPE, flags));
    u->begun_pc = f->command.pc;
}

static void vector_unit_abort(VectorUnit* u) {
    vector_front_abort(&u->front);
    in_flight_abort(&u->flight);
    vector_lanes_abort(&u->lanes);
    vector_writes_abort(&u->writes);
    retirement_abort(&u->retirement);
    u->issuing = u->faulted = u->raises = u->leaves = 0;
}

// A clock edge of the rows: of those that are read, pass the lanes and are written.
static inline void vector_unit_move(VectorUnit* u) {
    VectorReads* r = &u->reads;
    int issue = r->row_advance, done = u->writes.done;
    if (issue) vector_writes_read(&u->writes, r->rows[WALK_OUT], r->last);
    if (issue && r->last) u->issuing = u->steady = 0;
    if (u->goes) vector_reads_tick(r, u->read_ready, &u->flight);
    in_flight_tick(&u->flight, issue, done);
    vector_writes_tick(&u->writes, u->lanes.row_arrives);
    vector_lanes_tick(&u->lanes, r->advance, issue);
}

static void vector_unit_tick(VectorUnit* u) {
    VectorFront* f = &u->front;
    if (u->rests && !u->command_valid) {
        if (u->abort | u->clear) vector_front_clear(f);
        if (u->abort) vector_front_abort(f);
        return;
    }
    if (u->fast) {
        vector_unit_move(u);
        return;
    }
    int outside = u->issuing && u->reads.outside, leaves = f->done | f->rows;
    int raises = u->faulted && !u->raises && !u->flight.outstanding && retirement_rows_next(&u->retirement);
    u->faulted = (u->faulted | outside) && !u->raises;
    if (u->leaves | u->retired | u->writes.ends | u->raises | u->retirement.ends)
        retirement_tick(&u->retirement, u->leaves ? &u->leaving : 0, u->retired, u->writes.ends | u->raises);
    u->raises = raises;
    if (outside) u->issuing = 0;
    if (f->rows) vector_unit_begin(u);
    if (f->fold) vector_lanes_fold(&u->lanes, f->command.flags);
    vector_unit_move(u);
    if (f->rows) u->issuing = 1;
    u->leaves = leaves;
    if (leaves) u->leaving = (VectorEnding){f->command.signal, f->rows, f->fold};

    int takes = u->command_valid && u->command_ready && !u->stalls && !u->abort;
    vector_front_tick(f);
    if (takes) vector_front_take(f, &u->command);
    if (u->abort | u->clear) vector_front_clear(f);
    if (u->abort) vector_unit_abort(u);
    u->rests = 0;
    if (!u->busy && !takes && !u->issuing && !u->flight.outstanding && !u->leaves && !u->faulted && !u->raises &&
        !u->retirement.count && !u->retirement.ends && !u->retirement.ended && !u->writes.valid)
        vector_unit_rest(u);
}
