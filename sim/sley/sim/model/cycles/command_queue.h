// The twin of sley.hw.command.queue: one hardware queue between its registers and the executor.
#pragma once

#include "abi.h"
#include "twin.h"

#define COMMAND_QUEUE_PORTS(IN, OUT)                                                                               \
    IN(enable, "registers.control.enable") IN(abort, "registers.control.abort") IN(log2, "registers.size.log2")   \
    IN(base, "registers.base.address") IN(doorbell, "doorbell") IN(doorbell_written, "doorbell_written")          \
    IN(event, "event") IN(fault_code, "fault_code") IN(buffer, "buffer") IN(buffer_packets, "buffer_packets")     \
    IN(posted, "posted") IN(lost, "lost") IN(lost_code, "lost_code")                                              \
    OUT(pending, "pending") OUT(packet, "packet") OUT(nested, "nested") OUT(ahead, "ahead") OUT(stays, "stays")   \
    OUT(read_next, "read_next") OUT(aborting, "aborting") OUT(failed, "failed") OUT(rings, "rings")               \
    OUT(rung, "rung") OUT(code, "error.code") OUT(address, "error.address")                                       \
    OUT(read, "registers.read_index.index") OUT(write, "registers.write_index.index")                             \
    OUT(buffer_index, "registers.buffer_index.index") OUT(inside, "registers.buffer_index.in_buffer")             \
    OUT(state, "registers.state.state")

#define PACKET_ADDRESS_MASK ((1u << (32 - PACKET_SHIFT + 1)) - 1)
#define INDEX_MASK 0xFFFFu

enum { QUEUE_INPUTS = 0 COMMAND_QUEUE_PORTS(TWIN_COUNT, TWIN_NONE) };

typedef struct CommandQueue {
    uint32_t enable, abort, log2, base, doorbell, doorbell_written, event, fault_code, buffer, buffer_packets;
    uint32_t posted, lost, lost_code;
    uint32_t pending, packet, nested, ahead, stays, read_next, aborting, failed, rings, rung, code, address;
    uint32_t read, write, buffer_index, inside, state;

    uint32_t held, stopping, bad, passed, was_lost, why_lost, executed, retry, below, upper;
    uint32_t start, buffer_last, at_last, buffer_next;  // start: of the buffer

    // These inputs change nothing any more.
    uint32_t settled, settled_inputs[QUEUE_INPUTS];
} CommandQueue;

enum { QUEUE_STATE = offsetof(CommandQueue, settled) - sizeof(uint32_t[QUEUE_INPUTS]) };  // bytes behind the inputs

static void command_queue_reset(CommandQueue* q, const uint32_t* parameters) {}

static int queue_on(const CommandQueue* q) { return q->state != STATE_DISABLED && q->state != STATE_ERROR; }

static void command_queue_outputs(CommandQueue* q) {
    q->stays = q->inside && !q->at_last;
    q->rings = q->doorbell_written && queue_on(q) && !q->bad;
}

static uint32_t state_after(const CommandQueue* q) {
    uint32_t state = q->state;
    if (q->event & EVENT_TAKE && state == STATE_READY) state = STATE_ACTIVE;
    if (!q->held) return state;
    if (q->event & (EVENT_ENTER | EVENT_FINISH)) return STATE_READY;
    if (q->event & EVENT_LAUNCH) return STATE_LAUNCHED;
    if (q->event & EVENT_BLOCK) return STATE_BLOCKED;
    return q->event & EVENT_FAULT ? STATE_ERROR : state;
}

static void command_queue_tick(CommandQueue* q) {
    if (q->settled && !memcmp(q, q->settled_inputs, sizeof q->settled_inputs)) return;
    CommandQueue o = *q;  // before the cycle
    int on = queue_on(&o), off = o.state == STATE_DISABLED;
    uint32_t mask = (o.below << 1 | 1) & INDEX_MASK;
    int in_buffer = o.executed ? o.stays : o.inside;
    uint32_t following = in_buffer ? (o.executed ? o.buffer_next : o.buffer_index)
                                   : (o.executed ? o.read_next : o.read) & o.below;
    int empty = o.write == o.read, none_behind = o.write == o.read_next, behind = o.passed || (o.inside && empty);
    int waiting = o.state == STATE_READY || o.state == STATE_BLOCKED;
    int healthy = on && !o.stopping && !o.aborting && !o.bad && !o.was_lost && !behind;
    int ahead = healthy && (in_buffer || (!empty && !(o.executed && none_behind)));

    q->below = ((1u << o.log2) - 1) & (INDEX_MASK >> 1);
    q->upper = 1u << o.log2 & INDEX_MASK;
    q->at_last = o.buffer_index == o.buffer_last;
    q->buffer_next = (o.buffer_index + 1) & INDEX_MASK;
    q->read_next = (o.read + 1) & mask;

    uint32_t gap = (o.doorbell - o.read) & INDEX_MASK;
    int beyond = ((gap & o.upper) && (gap & o.below)) || o.doorbell & ~mask & INDEX_MASK;
    int none_left = o.rings ? o.doorbell == o.read : empty;
    if (o.rings) {
        q->rung = 1, q->bad = beyond, q->passed = 0;
        if (!beyond) q->write = o.doorbell;
    }
    if (o.retry) --q->retry;
    if (!o.enable) q->stopping = 1;
    if (o.lost) q->was_lost = 1, q->why_lost = o.lost_code;

    q->ahead = ahead;
    q->nested = in_buffer;
    q->pending = waiting && !o.held && ahead && !o.retry;
    q->packet = ((in_buffer ? o.start : o.base >> PACKET_SHIFT) + following) & PACKET_ADDRESS_MASK;
    q->failed = 0;

    uint32_t takes = o.event & EVENT_TAKE;
    int free = !o.held && !o.pending && !takes, stops = 0, faulted = 0;
    uint32_t own_state = o.state, code = 0;
    uint32_t address = o.was_lost ? ADDRESS_READBACK : o.bad || behind ? ADDRESS_DOORBELL : ADDRESS_NONE;
    if (takes) {
        q->held = q->executed = 1;
    } else if (o.held) {
        if (o.event & EVENT_RETIRE) {
            q->executed = 0;
            if (o.stays) {
                q->buffer_index = o.buffer_next;
            } else {
                q->read = o.read_next;
                q->passed = none_left;
                q->inside = q->buffer_index = 0;
            }
        }
        if (o.event & EVENT_ENTER) {
            q->held = q->executed = 0;
            q->inside = 1;
            q->start = o.buffer;
            q->buffer_last = (o.buffer_packets - 1) & INDEX_MASK;
        }
        if (o.event & EVENT_FINISH) q->held = 0;
        if (o.event & EVENT_BLOCK) q->held = q->executed = 0, q->retry = RETRY_CYCLES - 1;
        if (o.event & EVENT_FAULT) q->held = q->executed = 0, q->failed = !o.stopping, faulted = 1;
    }
    if (free) {
        if (off) {
            if (o.enable) own_state = STATE_READY;
        } else if (waiting && o.was_lost && !o.stopping) {
            stops = 1, code = o.why_lost;
        } else if (o.stopping) {
            if (!o.posted) own_state = STATE_DISABLED;
        } else if (waiting && (o.bad || behind)) {
            stops = 1, code = FAULT_BAD_DOORBELL;
        } else if (waiting && o.aborting) {
            stops = 1, code = FAULT_ABORTED;
        }
        if (stops) q->failed = 1, own_state = STATE_ERROR;
    }
    q->state = free ? own_state : state_after(&o);
    if (faulted || stops) {
        q->code = o.held ? o.fault_code : code;
        q->address = o.held ? ADDRESS_FAULT : address;
    }
    if (off) {
        q->read = q->write = q->inside = q->buffer_index = q->code = q->address = q->rung = q->retry = 0;
        q->bad = q->passed = q->was_lost = q->aborting = q->stopping = 0;
    }
    if (o.abort && on) q->aborting = 1;
    q->settled = !memcmp(&q->pending, &o.pending, QUEUE_STATE);
    if (q->settled) memcpy(q->settled_inputs, q, sizeof q->settled_inputs);
}
