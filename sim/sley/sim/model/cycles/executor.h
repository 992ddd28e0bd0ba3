// The twin of sley.hw.command.executor: one packet at a time, of all queues.
#pragma once

#include "executor_state.h"

// Parameters: the numbers of the node and of that of memory, and the tag of packets.
static void executor_reset(Executor* x, const uint32_t* parameters) {
    urgent_reset(&x->urgent, QUEUES);
    x->owner = 1;
    x->request = (Flit){.kind = KIND_READ, .last = 1, .src = parameters[0], .dest = parameters[1], .tag = parameters[2]};
    x->request.beats = PACKET_BURST - 1;
}

static int executor_rests(const Executor* x) {
    return x->rests && !x->pending && !x->grid_valid && !x->copied_valid && !x->word_done &&
           !(x->look_ahead && x->queues[x->number].ahead);
}

// One small access to memory is asked for; whether it is taken.
static int executor_access(Executor* x, uint32_t address, uint32_t size, uint32_t write) {
    x->words_valid = 1;
    x->writes = write;
    x->words.write = write;
    x->words.context = x->queues[x->number].place.context;
    x->words.addr = address;
    x->words.size = size;
    uint32_t timed = x->state == TURN_EXECUTE && (x->packet[0] & 0xFF) == PACKET_FENCE, line = BUS_BYTES >= FENCE_BYTES;
    uint32_t low[2] = {x->packet[PACKET_SIGNAL_VALUE_AT], x->packet[PACKET_SIGNAL_VALUE_AT + 1]};
    if (x->state == TURN_READBACK) {
        low[0] = x->read_index;
        if (BUS_BYTES > 4) low[1] = x->read_index;
    }
    for (int k = 0; k < 2; ++k) {
        x->words.line[k] = low[k];
        x->words.line[2 + k] = timed || !line ? x->time[k] : low[k];
    }
    return x->words_ready;
}

static void executor_execute(Executor* x) {
    const uint32_t* p = x->packet;
    int taken;
    switch (p[0] & 0xFF) {
    case PACKET_NOP: x->next = TURN_RETIRE; break;
    case PACKET_COPY:
    case PACKET_FILL:
        if (x->posted && x->own_posted) break;
        x->copy_valid = 1;
        int fill = (p[0] & 0xFF) == PACKET_FILL;
        x->copy = (CopyCommand){
            .queue = x->number,
            .context = x->queues[x->number].place.context,
            .fill = fill,
            .value = PACKET_FILL_VALUE(p),
            .src = PACKET_COPY_SRC(p),
            .dst = fill ? PACKET_FILL_DST(p) : PACKET_COPY_DST(p),
            .bytes = fill ? PACKET_FILL_BYTES(p) : PACKET_COPY_BYTES(p),
        };
        x->next = TURN_IDLE;
        break;
    case PACKET_FENCE:
        if (executor_access(x, PACKET_FENCE_ADDRESS(p), 4, 1)) x->next = TURN_ACKNOWLEDGE;
        break;
    case PACKET_SIGNAL:
        if (executor_access(x, PACKET_SIGNAL_ADDRESS(p), 3, 1)) x->next = TURN_ACKNOWLEDGE;
        break;
    case PACKET_WAIT:
        if (!x->posted && executor_access(x, PACKET_WAIT_ADDRESS(p), 3, 0)) x->next = TURN_ACKNOWLEDGE;
        break;
    case PACKET_INDIRECT:
        x->next = TURN_RETIRE;
        if (!PACKET_INDIRECT_PACKETS(p)) break;
        x->event = EVENT_ENTER;
        x->enters = 1;
        x->buffer = (p[PACKET_INDIRECT_ADDRESS_AT] >> PACKET_SHIFT |
                     p[PACKET_INDIRECT_ADDRESS_AT + 1] << (32 - PACKET_SHIFT)) & PACKET_ADDRESS_MASK;
        x->buffer_packets = PACKET_INDIRECT_PACKETS(p);
        x->next = TURN_ENTERED;
    }
}

static void executor_launch(Executor* x) {
    const uint32_t* p = x->fetch.packet;
    x->launch_valid = 1;
    x->event = EVENT_LAUNCH;
    x->launch_queue = x->number;
    x->grid = (GridOrder){x->queues[x->number].place.context, x->watchdog, PACKET_LAUNCH_PROGRAM_WORDS(p),
                          PACKET_LAUNCH_ARG_WORDS(p) & 0xFF, PACKET_LAUNCH_GANG(p)};
    x->next = TURN_IDLE;
}

static void executor_idle(Executor* x) {
    if (x->stall) return;
    if (x->grid_valid || x->copied_valid) {
        const WorkResult* result = x->grid_valid ? &x->grid_result : &x->copy_result;
        x->grid_ready = 1;
        x->copied_ready = !x->grid_valid;
        x->next = result->fault.code ? TURN_FAULT : TURN_RETIRE;
    } else if (x->pending && !x->settling) {
        x->moved = 1;
        x->taken = x->grant;
        if (!packet_fetch_busy(&x->fetch)) x->start = 1;
        x->next = TURN_FETCH;
    }
}

static void executor_readback(Executor* x) {
    if (x->stays || !x->address) {
        x->event = EVENT_FINISH;
        x->next = TURN_IDLE;
    } else if (x->address >= ADDRESS_LIMIT) {
        x->failure = FAULT_BAD_ADDRESS;
    } else if (!x->posted && executor_access(x, x->address, 2, 1)) {
        x->event = EVENT_FINISH;
        x->next = TURN_IDLE;
    }
}

static void executor_outputs(Executor* x) {
    PacketFetch* f = &x->fetch;
    x->lost = x->event = x->taken = x->words_valid = x->writes = x->copy_valid = x->launch_valid = x->enters = 0;
    x->faulted = x->grid_ready = x->copied_ready = x->moved = x->start = x->drop = x->failure = x->stale = 0;
    x->fence = x->interrupts ? x->owner : 0;
    x->next = x->state;
    x->beat_valid = f->arrived;
    x->request_valid = packet_fetch_asks(f);
    if (executor_rests(x)) return;
    if (x->beat_valid) {
        x->beat_index = f->index;
        memcpy(x->beat_data, f->packet + f->index * PACKET_LANES % PACKET_WORDS, PACKET_LANES * sizeof(uint32_t));
    }
    if (x->request_valid) {
        x->request.addr = packet_fetch_address(f);
        x->request.context = f->place.context;
    }
    if (x->word_done && x->word_error) {
        x->lost = x->posted;
        x->lost_code = access_fault(x->word_error);
    }
    x->grant = x->pending ? urgent_grant(&x->urgent, x->pending) : 0;
    x->stale = x->early;
    for (uint32_t rest = x->early ? x->source : 0; rest; rest &= rest - 1)
        if (x->queues[__builtin_ctz(rest)].ahead) x->stale = 0;
    x->drop = x->stale;
    if (x->look_ahead && x->queues[x->number].ahead && !packet_fetch_busy(f)) x->start = 1;
    switch (x->state) {
    case TURN_IDLE: executor_idle(x); break;
    case TURN_FETCH:
        if (!x->ours) {
            x->drop = 1;
            if (!packet_fetch_busy(f)) x->start = 1;
        } else if (packet_fetch_ready(f)) {
            x->drop = 1;
            PacketFinding found = packet_fetch_found(f);
            if (found.code) x->failure = found.code;
            else if ((f->packet[0] & 0xFF) == PACKET_LAUNCH) executor_launch(x);
            else x->next = TURN_EXECUTE;
        }
        break;
    case TURN_EXECUTE: executor_execute(x); break;
    case TURN_ENTERED: x->next = TURN_IDLE; break;
    case TURN_ACKNOWLEDGE:
        if (!x->word_done || x->posted) break;
        if (x->word_error) x->failure = access_fault(x->word_error);
        else x->next = (x->packet[0] & 0xFF) == PACKET_WAIT ? TURN_COMPARE : TURN_RETIRE;
        break;
    case TURN_COMPARE: x->next = TURN_DECIDE; break;
    case TURN_DECIDE:
        x->next = x->satisfied ? TURN_RETIRE : TURN_IDLE;
        if (!x->satisfied) x->event = EVENT_BLOCK, x->drop = 1;
        break;
    case TURN_RETIRE:
        x->event = EVENT_RETIRE;
        x->next = TURN_READBACK;
        break;
    case TURN_READBACK: executor_readback(x); break;
    case TURN_FAULT:
        x->event = EVENT_FAULT;
        x->faulted = x->drop = 1;
        x->next = TURN_IDLE;
    }
    if (x->failure) x->next = TURN_FAULT;
}

// What the state of the cycle leaves behind, beside where it goes.
static void executor_leave(Executor* x, PacketFinding found, int busy) {
    switch (x->state) {
    case TURN_IDLE:
        x->ours = !busy || (!x->stale && (x->source & x->grant));
        if (x->grid_ready) {
            const WorkResult* result = x->copied_ready ? &x->copy_result : &x->grid_result;
            x->fault = result->fault;
            if (x->copied_ready) x->fault.core = x->fault.pc = x->fault.block = 0;
            x->number = result->queue;
            x->owner = 1u << result->queue;
            x->look_ahead = 0;
        } else if (x->moved) {
            x->owner = x->grant;
            x->number = __builtin_ctz(x->grant);
            x->awaited = x->queues[x->number].place;
            x->early = x->look_ahead = 0;
            if (!busy) x->source = x->grant;
        }
        return;
    case TURN_FETCH:
        if (!x->ours) {
            if (!busy) x->source = x->owner, x->ours = 1;
        } else if (x->drop) {
            memcpy(x->packet, x->fetch.packet, sizeof x->packet);
            x->fault = (BlockFault){.address = found.address};
            x->source = 0;
            x->look_ahead = (x->fetch.packet[0] & 0xFF) != PACKET_INDIRECT;
        }
        return;
    case TURN_ENTERED: x->look_ahead = 1; return;
    case TURN_ACKNOWLEDGE:
        if (x->next == TURN_RETIRE) x->interrupts = (x->packet[0] & 0xFF) == PACKET_FENCE && PACKET_FENCE_INTERRUPT(x->packet);
        return;
    case TURN_COMPARE: {
        const uint32_t* value = x->packet + PACKET_WAIT_VALUE_AT;
        x->satisfied = x->word[1] != value[1] ? x->word[1] > value[1] : x->word[0] >= value[0];
        return;
    }
    case TURN_RETIRE:
        x->stays = x->queues[x->number].stays;
        x->read_index = x->queues[x->number].read_next;
        return;
    case TURN_READBACK:
        x->fault = (BlockFault){.address = x->address};
        if (x->words_valid && x->words_ready) x->posted = x->owner;
        return;
    case TURN_DECIDE:
        if (x->satisfied) return;
    case TURN_FAULT: x->source = x->early = x->look_ahead = 0;
    }
}

static void executor_tick(Executor* x) {
    urgent_tick(&x->urgent, x->pending, x->grant, x->moved, x->priorities);
    uint32_t address = x->readback & ~3u;  // looked at a cycle late
    if (executor_rests(x)) {
        x->address = address;
        return;
    }
    PacketFetch* f = &x->fetch;
    int busy = packet_fetch_busy(f), fetching = x->state == TURN_FETCH;
    PacketFinding found = {0};
    if (packet_fetch_ready(f)) found = packet_fetch_found(f);
    PacketPlace place = x->moved ? x->queues[__builtin_ctz(x->grant)].place
                                 : fetching ? x->awaited : x->queues[x->number].place;

    uint32_t owner = x->owner, own_posted = (x->posted & owner) != 0;
    if (x->word_done) x->posted = 0;
    if (x->stale) x->source = x->early = 0;
    if (x->look_ahead && x->queues[x->number].ahead && !busy) {
        x->source = owner;
        x->early = 1;
        x->look_ahead = 0;
    }
    x->settling = (x->event & EVENT_FINISH) != 0;
    x->interrupts = 0;
    executor_leave(x, found, busy);
    x->own_posted = own_posted;
    if (x->failure) x->fault.code = x->failure, x->fault.unit = UNIT_COMMAND;
    packet_fetch_tick(f, x->start, place, x->drop, x->request_ready,
                      (PacketAnswer){x->response_valid, x->response_error, x->response_data});
    x->state = x->next;
    x->address = address;
    x->rests = x->state == TURN_IDLE && !x->early && !x->settling && !x->interrupts && !packet_fetch_busy(f) && x->ours &&
               !x->own_posted == !(x->posted & x->owner);
}
