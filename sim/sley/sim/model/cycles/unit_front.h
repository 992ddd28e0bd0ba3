// The twin of sley.hw.core.unit_front: the queue in front of a unit.
#pragma once

#include "abi.h"
#include "queue.h"

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

    Queue queue;
    UnitCommand items[2 * UNIT_QUEUE];
    int taken;  // the semaphores of `o` have been
} UnitFront;

static void unit_front_reset(UnitFront* f, const uint32_t* parameters) { f->queue.depth = parameters[0]; }

static void unit_front_outputs(UnitFront* f) {
    int here = f->queue.here, waits = here && f->o.op != OP_SET && f->o.wait && !f->taken;
    f->i_ready = queue_ready(&f->queue);
    f->wait_valid = f->waiting = waits;
    f->o_valid = here && !waits && !f->abort;
    f->empty = queue_empty(&f->queue);
}

static void unit_front_tick(UnitFront* f) {
    enum { RING = 2 * UNIT_QUEUE };
    Queue* queue = &f->queue;
    uint32_t comes = f->i_valid && f->i_ready, leaves = queue->here && (f->abort || (f->o_valid && f->o_ready));
    if (f->wait_valid && f->wait_ready) f->taken = 1;
    if (f->abort || leaves) f->taken = 0;
    if (comes) f->items[queue->end % RING] = f->i;
    uint32_t was_here = queue->here;
    queue_tick(queue, comes, leaves);
    if (queue->here && (leaves || !was_here)) f->o = f->items[queue->first % RING];
}
