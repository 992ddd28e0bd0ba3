// The twin of sley.hw.command.grids: the blocks of grids go to the cores, and the cores report.
#pragma once

#include "command_parts.h"
#include "urgent.h"

enum { CORES_MAX = 64 };  // of a chip

#define BLOCK_SCHEDULER_PORTS(IN, OUT)                                                                             \
    IN(packet_valid, "packet.valid") IN(packet_index, "packet.index") BEAT_WORDS_PORTS(IN, packet_data, "packet.data", "")                             \
    IN(i_valid, "i.valid") LAUNCH_PORTS(IN, i_queue, i_grid, "i", "")                                             \
    PRIORITY_PORTS(IN, priorities, "priorities") IN(abort, "abort")                                               \
    IN(message_ready, "message.ready") IN(done_valid, "done.valid") IN(done_word, "done.payload.data@0")          \
    IN(o_ready, "o.ready")                                                                                        \
    OUT(o_valid, "o.valid") OUT(o_queue, "o.payload.queue?o.valid")                                               \
    BLOCK_FAULT_PORTS(OUT, o_fault, "o.payload.fault", "?o.valid") OUT(message_valid, "message.valid")                   \
    OUT(shows_head, ".head") OUT(shows_word, ".word") OUT(head_beats, "message.payload.payload.head.beats?.head") \
    OUT(head_address, "message.payload.payload.head.addr?.head")                                                  \
    OUT(message_word, "message.payload.payload.beat.data@0?.word") OUT(message_x, "message.payload.dest.x?message.valid") \
    OUT(message_y, "message.payload.dest.y?message.valid") OUT(message_last, "message.payload.last?message.valid") \
    OUT(retired, "retired") OUT(ended_words[0], "ended@0") OUT(ended_words[1], "ended@1")

typedef struct GridState {
    GridOrder order;
    uint32_t packet[PACKET_WORDS], place[3], number, running, first;  // first: its next block is the first one
    BlockFault fault;
} GridState;

typedef struct BlockScheduler {
    uint32_t packet_valid, packet_index, packet_data[PACKET_WORDS], i_valid, i_queue;
    GridOrder i_grid;
    uint32_t priorities[QUEUES_MAX], abort, message_ready, done_valid, done_word, o_ready;
    uint32_t o_valid, o_queue, message_valid, message_word, shows_head, shows_word, head_beats, head_address, message_x, message_y, message_last, retired, ended_words[2];
    BlockFault o_fault;

    uint32_t core_x[CORES_MAX], core_y[CORES_MAX];
    Urgent urgent;
    GridState grids[QUEUES_MAX];
    uint32_t packet[PACKET_WORDS];  // of what is fetched
    uint32_t active, more, stopped, faulted, gangs, partial;
    uint32_t sending, queue, core, flit, last_flit, skips_args, first_of_all, some_free, state;
    uint64_t busy, ended;  // a bit for each core
    uint32_t owners[CORES_MAX], blocks[CORES_MAX];
    uint32_t position, first_fault;
    BlockFault record;
    uint32_t reporting, reported, has_fault, cut_short;
} BlockScheduler;

enum { B_CHOOSE, B_SEND };

// Parameters: x of each core, then y.
static void block_scheduler_reset(BlockScheduler* s, const uint32_t* parameters) {
    for (int k = 0; k < CORES; ++k) s->core_x[k] = parameters[k], s->core_y[k] = parameters[CORES + k];
    urgent_reset(&s->urgent, QUEUES);
    s->some_free = 1;
    s->last_flit = LAUNCH_WORDS;
}

static int core_busy(const BlockScheduler* s, uint32_t core) { return s->busy >> core & 1; }

static uint32_t inline_args(const GridState* g) { return g->order.arg_words > INLINE_ARGS ? 0 : g->order.arg_words; }

// A word of the message to a core, behind its head.
static uint32_t message_word(const BlockScheduler* s, const GridState* g, uint32_t word) {
    switch (word) {
    case LAUNCH_SIZES:
        return g->order.program_words | g->order.arg_words << SIZES_ARG_WORDS_AT |
               g->order.context << SIZES_CONTEXT_AT | s->queue << SIZES_QUEUE_AT |
               g->order.gang << SIZES_GANG_AT;
    case LAUNCH_BLOCK_X:
    case LAUNCH_BLOCK_Y:
    case LAUNCH_BLOCK_Z: return g->place[word - LAUNCH_BLOCK_X];
    default: return g->packet[launch_sources[word]];
    }
}

static void block_scheduler_outputs(BlockScheduler* s) {
    s->o_valid = s->reporting;
    if (s->o_valid) {
        s->o_queue = s->reported;
        s->o_fault = s->has_fault ? s->grids[s->reported].fault : (BlockFault){0};
        if (!s->has_fault && s->cut_short) s->o_fault = (BlockFault){FAULT_ABORTED, UNIT_COMMAND};
    }
    s->retired = s->done_valid && s->position == DONE_ADDRESS;
    s->ended_words[0] = (uint32_t)s->ended, s->ended_words[1] = (uint32_t)(s->ended >> 32);
    s->message_valid = s->state == B_SEND;
    s->shows_head = s->shows_word = 0;
    if (!s->message_valid) return;
    const GridState* g = &s->grids[s->queue];
    s->shows_head = !s->flit, s->shows_word = s->flit != 0;
    if (s->shows_head) {
        s->head_beats = g->order.arg_words > INLINE_ARGS ? LAUNCH_WORDS - 1 : LAUNCH_WORDS - 2 + inline_args(g);
        s->head_address = g->order.watchdog;
    } else {
        s->message_word = message_word(s, g, s->flit - 1);
    }
    s->message_x = s->core_x[s->core], s->message_y = s->core_y[s->core];
    s->message_last = s->flit == s->last_flit;
}

static int is_last_block(const GridState* g) {
    for (int k = 0; k < 3; ++k)
        if (g->place[k] + 1 != g->packet[launch_sources[LAUNCH_GRID_X + k]]) return 0;
    return 1;
}

static void next_block(GridState* g) {
    ++g->number;
    for (int k = 0; k < 3; ++k) {
        if (++g->place[k] != g->packet[launch_sources[LAUNCH_GRID_X + k]]) return;
        g->place[k] = 0;
    }
}

static void block_scheduler_tick(BlockScheduler* s) {
    if (s->state == B_CHOOSE && !(s->active | s->i_valid | s->packet_valid | s->done_valid | s->reporting) &&
        s->some_free && !s->abort) {
        urgent_tick(&s->urgent, 0, 0, 0, s->priorities);
        s->flit = 0, s->first_fault = s->record.code && !(s->faulted >> s->owners[s->record.core % CORES_MAX] & 1);
        s->sending = 0, s->first_of_all = 0,
        s->core = 0;
        while (s->core + 1 < CORES && core_busy(s, s->core)) ++s->core;
        return;
    }
    uint32_t arriving = s->i_valid ? 1u << s->i_queue : 0, running = 0, free = 0, lowest = 0;
    for (int k = 0; k < QUEUES; ++k) running += s->grids[k].running;
    for (int k = CORES; k--;)
        if (!core_busy(s, k)) free = 1, lowest = k;
    int idle = !running, ended = s->retired;
    uint32_t requests = s->more & ~s->stopped, chosen = 0, final = 0, grant = 0;
    uint32_t allowed = idle ? ~0u : s->some_free ? ~s->gangs : 0;
    int moved = 0, start = 0;
    GridState* grid = &s->grids[s->queue];
    uint32_t next_last = LAUNCH_WORDS + inline_args(grid);
    uint32_t core = s->core, sending = s->sending, first_of_all = s->first_of_all, owner = s->owners[s->record.core];
    uint32_t new_partial = s->partial, partial = s->partial, skips_args = s->skips_args, last_flit = s->last_flit;

    if (s->state == B_CHOOSE) {
        s->flit = 0;
        if (free) s->core = lowest;
        else s->core = 0;
        grant = urgent_grant(&s->urgent, requests);
        s->first_of_all = 0;
        if (partial) {
            chosen = partial;
            s->core = core == CORES - 1 ? 0 : core + 1;
        } else if (requests) {
            chosen = grant & allowed;
            moved = chosen != 0;
        } else if (idle || (s->some_free && !s->i_grid.gang)) {
            chosen = arriving;
            s->first_of_all = s->i_valid;
        }
        s->sending = chosen;
        s->queue = chosen ? (uint32_t)__builtin_ctz(chosen) : 0;
        if (chosen) s->state = B_SEND;
    } else {
        start = s->flit == 0;
        if (first_of_all) {
            requests = sending;
            moved = 1;
        }
        grant = urgent_grant(&s->urgent, requests);
        s->first_of_all = 0;
        if (s->message_ready) {
            if (s->flit == LAUNCH_PROGRAM + 1) s->blocks[core] = grid->number;
            int last = s->flit == last_flit;
            s->flit = s->flit == LAUNCH_TAG + 1 && skips_args ? LAUNCH_BLOCK_X + 1 : s->flit + 1;
            if (last) {
                new_partial = grid->order.gang && core != CORES - 1 ? sending : 0;
                if (is_last_block(grid)) final = sending;
                next_block(grid);
                s->state = B_CHOOSE;
            }
        }
    }
    urgent_tick(&s->urgent, requests, grant, moved, s->priorities);
    s->last_flit = next_last;
    s->skips_args = grid->order.arg_words <= INLINE_ARGS;
    s->partial = new_partial;
    s->some_free = free || ended;

    // What cores report.
    uint32_t failed = ended && s->record.code ? 1u << owner : 0;
    int first_fault = s->first_fault;
    s->first_fault = s->record.code && !(s->faulted >> owner & 1);
    if (s->done_valid) {
        if (s->position == DONE_STATUS) {
            s->record.core = s->done_word & 0xFF;
            s->record.code = s->done_word >> 8 & 0xFF;
            s->record.unit = s->done_word >> 16 & 0xF;
        } else if (s->position == DONE_PC) {
            s->record.pc = s->done_word & 0xFFFF;
        }
        s->position = ended ? 0 : s->position + 1;
    }
    if (ended) {
        uint32_t from = s->record.core;
        s->busy &= ~(1ull << from);
        s->ended |= 1ull << from;
        if (first_fault) {
            s->grids[owner].fault = s->record;
            s->grids[owner].fault.block = s->blocks[from];
            s->grids[owner].fault.address = s->done_word;
        }
    }
    if (start) {
        s->busy |= 1ull << core;
        s->owners[core] = s->queue;
        if (grid->order.gang && core == 0) s->ended = 0;
    }

    // Grids that have ended.
    uint32_t none_running = 0, accepted = 0;
    for (int k = 0; k < QUEUES; ++k) none_running |= (uint32_t)!s->grids[k].running << k;
    uint32_t over = s->active & none_running & (~s->more | s->stopped) & ~partial;
    if (s->reporting) {
        if (s->o_ready) s->reporting = 0;
    } else if (over) {
        accepted = over & -over;
        s->reported = (uint32_t)__builtin_ctz(over);
        s->has_fault = (accepted & s->faulted) != 0;
        s->cut_short = (accepted & s->more) != 0;
        s->reporting = 1;
    }
    for (int k = 0; k < QUEUES; ++k)
        s->grids[k].running += (chosen >> k & 1) - (ended && owner == (uint32_t)k);
    uint32_t stopped = (s->stopped | failed | (s->active & s->abort)) & ~arriving;
    s->active = (s->active & ~accepted) | arriving;
    s->more = (s->more & ~final) | arriving;
    s->stopped = stopped;
    s->faulted = (s->faulted | failed) & ~arriving;
    s->gangs = (s->gangs & ~arriving) | (s->i_grid.gang ? arriving : 0);

    if (s->i_valid) {
        GridState* g = &s->grids[s->i_queue];
        g->order = s->i_grid;
        memcpy(g->packet, s->packet, sizeof g->packet);
        memset(g->place, 0, sizeof g->place);
        g->number = 0;
    }
    if (s->packet_valid)
        memcpy(s->packet + s->packet_index * PACKET_LANES, s->packet_data, PACKET_LANES * sizeof(uint32_t));
}
