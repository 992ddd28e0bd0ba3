// The twin of sley.hw.core.load.request: takes commands, checks them, and asks for their runs.
#pragma once

#include "abi.h"
#include "affine.h"
#include "list_addresses.h"
#include "load_queues.h"
#include "run.h"
#include "unit_params.h"

STREAM_BUFFER(Run, RunBuffer)

typedef struct LoadRequest {
    uint32_t params[PARAMS];
    uint32_t active;  // a command is at hand whose runs have not all been asked for
    uint32_t free;    // a command would be taken
    Loops loops;
    Walk addresses;
    uint32_t strides[2];
    ListAddresses list;
    uint32_t by_list;  // addresses are from there
    uint32_t bytes, share, contiguous, joins;
    RunBuffer runs;  // that the reader has not taken
} LoadRequest;

static void load_request_reset(LoadRequest* r) {
    params_reset(r->params);
    list_addresses_reset(&r->list, 0);
}

// The address of the run at hand is known.
static inline int load_request_known(const LoadRequest* r) { return !r->by_list || r->list.o_valid; }

static inline void load_request_outputs(LoadRequest* r, const LoadQueues* q) {
    ListAddresses* list = &r->list;
    list->enable = r->active && r->by_list;
    if (list->enable | list->read_valid) list_addresses_outputs(list);
    uint32_t asks = !r->runs.full && queue_ready(&q->pending) && load_request_known(r);
    r->free = queue_ready(&q->signals) && (!r->active || (asks && loops_end(&r->loops, 2)));
}

static void load_request_set(LoadRequest* r, LoadQueues* q, const UnitCommand* c) {
    FeedJob* feed = &q->feed_jobs[q->signals.end % COMMAND_RING];
    TargetJob* target = &q->target_jobs[q->signals.end % COMMAND_RING];
    uint32_t param = FLAG(SET_PARAM, c->flags), bad = set_is_bad(UNIT_LOAD, param, c->a), known = bad ? PARAMS : param;
    *feed = (FeedJob){.bad = bad, .param = known, .runs = c->a};
    *target = (TargetJob){.pc = c->pc, .param = known, .row = bad ? param : c->a};
    if (!bad) r->params[param] = c->a;
    r->active = 0;
}

static void load_request_load(LoadRequest* r, LoadQueues* q, const UnitCommand* c, uint32_t gang) {
    const uint32_t* p = r->params;
    uint32_t space = FLAG(LOAD_SPACE, c->flags), interleave = FLAG(LOAD_INTERLEAVE, c->flags), transpose = FLAG(LOAD_TRANSPOSE, c->flags);
    uint32_t chunks = p[PARAM_CHUNKS], slabs = p[PARAM_COUNT2], bytes = p[PARAM_RUN_BYTES];
    uint32_t row_bytes = space == SPACE_ACCUMULATOR ? ACCUMULATOR_ROW_BYTES : ROW_BYTES;
    uint32_t most = !transpose ? INTERLEAVE_CHUNKS : interleave ? TRANSPOSE_CHUNKS / 2 : TRANSPOSE_CHUNKS;
    int too_many = c->c > 0xFFFF, nothing = !c->c || !slabs, too_long = bytes > (uint64_t)chunks * row_bytes;
    int too_wide = (interleave || transpose) && chunks > most;
    int by_list = HAS_LISTS && FLAG(LOAD_BY_LIST, c->flags), too_far = by_list && bytes && list_beyond(p[PARAM_LIST_ROW], c->c);
    int illegal = !too_many && (((interleave || transpose) && space) || (interleave && ELEMENTS != 2));
    int bad = too_many || (!nothing && (too_long || too_wide || too_far));
    int work = !illegal && !bad && !nothing && chunks;
    uint32_t fault = too_many ? c->c : illegal ? 0 : too_long ? bytes : too_wide ? chunks : p[PARAM_LIST_ROW];

    FeedJob* feed = &q->feed_jobs[q->signals.end % COMMAND_RING];
    TargetJob* target = &q->target_jobs[q->signals.end % COMMAND_RING];
    *feed = (FeedJob){space, work, illegal, bad, interleave | transpose << 1, !bytes, PARAMS, c->c + p[PARAM_PAD_RUNS]};
    *target = (TargetJob){space, work, interleave, PARAMS, c->pc, work ? c->b : fault};
    r->active = work && bytes;
    if (!r->active) return;
    loops_start(&r->loops, (uint32_t[]){c->c, slabs}, 2);
    r->by_list = by_list;
    if (by_list)
        list_addresses_begin(&r->list, c->a, c->c, p);
    else
        walk_start(&r->addresses, c->a, 0xFFFFFFFF, 2);
    r->strides[0] = p[PARAM_MEM_STRIDE];
    r->strides[1] = p[PARAM_MEM_STRIDE2];
    r->bytes = bytes;
    r->contiguous = p[PARAM_MEM_STRIDE] == bytes && !by_list;
    r->joins = 0;
    r->share = CORES > 1 && gang ? FLAG(LOAD_SHARE, c->flags) : SHARE_NONE;
}

// Asks for the next run, which the others hear of; not if it is bad, or of a command at fault. Returns whether it does.
static inline int load_request_ask(LoadRequest* r, LoadQueues* q, int curtail, int run_ready) {
    if (r->runs.full || !queue_ready(&q->pending) || !load_request_known(r)) return 0;
    uint32_t addr = r->by_list ? r->list.o : r->addresses.position, last = r->loops.last;
    int bad = curtail || addr + (uint64_t)(r->bytes - 1) >= ADDRESS_LIMIT, final = bad || last == 3;
    q->push_run = 1;
    q->runs[q->pending.end % RUN_RING] = (PendingRun){addr, bad, last & 1, final};
    if (!bad) {
        Run* run = RunBuffer_slot(&r->runs, run_ready);
        run->addr = addr;
        run->bytes = r->bytes;
        run->share = r->share;
        run->more = r->contiguous & ~last & 1;
        run->joins = r->joins;
    }
    r->joins = 1;
    if (final) {
        r->active = 0;
    } else {
        if (!r->by_list) walk_step(&r->addresses, last, r->strides, 2);
        r->list.o_ready = 1;
        loops_step(&r->loops, 2);
    }
    return !bad;
}

static inline void load_request_tick(
    LoadRequest* r, LoadQueues* q, const UnitCommand* command, int curtail, int run_ready, uint32_t gang, int abort) {
    q->push_run = r->list.o_ready = 0;
    int asks = r->active && !abort && load_request_ask(r, q, curtail, run_ready);
    if (r->list.enable) list_addresses_tick(&r->list);
    if (asks | r->runs.here) RunBuffer_moves(&r->runs, asks, run_ready);
    q->push_command = command && r->free && !abort;
    if (q->push_command) {
        q->signal_sets[q->signals.end % COMMAND_RING] = command->signal;
        if (command->op == OP_SET)
            load_request_set(r, q, command);
        else
            load_request_load(r, q, command, gang);
    }
    if (abort) r->active = 0;
}
