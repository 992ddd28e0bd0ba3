// The twin of sley.hw.core.unit_front: the queue in front of a unit.
#pragma once

#include "abi.h"
#include "twin.h"

#define UNIT_FRONT_PORTS(IN, OUT)                                                                                    \
    IN(i_valid, "i.valid") IN(i.op, "i.payload.op") IN(i.pc, "i.payload.pc") IN(i.wait, "i.payload.wait")           \
    IN(i.signal, "i.payload.signal") IN(i.a, "i.payload.a") IN(i.b, "i.payload.b") IN(i.c, "i.payload.c")           \
    IN(i.flags, "i.payload.flags") IN(o_ready, "o.ready") IN(wait_ready, "wait.ready") IN(abort, "abort")           \
    OUT(i_ready, "i.ready") OUT(o_valid, "o.valid") OUT(wait_valid, "wait.valid") OUT(empty, "empty")               \
    OUT(waiting, "waiting") OUT(o.op, "o.payload.op?o.valid") OUT(o.pc, "o.payload.pc?o.valid")                     \
    OUT(o.signal, "o.payload.signal?o.valid") OUT(o.a, "o.payload.a?o.valid") OUT(o.b, "o.payload.b?o.valid")       \
    OUT(o.c, "o.payload.c?o.valid") OUT(o.flags, "o.payload.flags?o.valid") OUT(o.wait, "wait.payload?wait.valid")

typedef struct UnitCommand {
    uint32_t op, pc, wait, signal, a, b, c, flags;
} UnitCommand;

typedef struct UnitFront {
    UnitCommand i, o;
    uint32_t i_valid, i_ready, o_valid, o_ready, wait_valid, wait_ready, abort, empty, waiting;

    UnitCommand items[UNIT_QUEUE];
    uint32_t depth, first, count;
    int here;   // `o` holds the oldest command
    int taken;  // its semaphores have been
} UnitFront;

static void unit_front_reset(UnitFront* f, const uint32_t* parameters) { f->depth = parameters[0]; }

static void unit_front_outputs(UnitFront* f) {
    int waits = f->here && f->o.op != OP_SET && f->o.wait && !f->taken;
    f->i_ready = f->count < f->depth;
    f->wait_valid = f->waiting = waits;
    f->o_valid = f->here && !waits && !f->abort;
    f->empty = !f->here && !f->count;
}

static void unit_front_tick(UnitFront* f) {
    int leaves = f->abort || (f->o_valid && f->o_ready);
    if (f->wait_valid && f->wait_ready) f->taken = 1;
    if (leaves) f->taken = 0;
    int fetch = f->count && (!f->here || leaves);
    uint32_t end = f->first + f->count;
    if (fetch) {
        f->o = f->items[f->first];
        if (++f->first == f->depth) f->first = 0;
    }
    if (!f->here || leaves) f->here = fetch;
    if (f->i_valid && f->i_ready) {
        f->items[end < f->depth ? end : end - f->depth] = f->i;
        ++f->count;
    }
    f->count -= fetch;
}
