// The normal form of the units of a core, and of its sequencer.
#pragma once

#include "normal_parts.h"

static inline void command_normal(UnitCommand* c, uint32_t unit) {
    if (c->op == OP_SET) c->a = set_label(unit, c);
}

// Of a queue only the command at its output counts; those behind it do when they come there.
static inline void front_normal(UnitFront* f, const uint32_t* head) {
    queue_normal(&f->queue);
    if (!f->queue.here) FORGET(f->o);
    else f->o.a = head[0], f->o.b = head[1];
    FORGET(f->i);
}

// A memory asks nothing of a row but its bank.
static inline void sram_normal(Sram* s) {
    for (int k = 0; k < MOST_READERS; ++k) s->read.row[k] >>= s->bank_shift, s->write.row[k] >>= s->bank_shift;
}

// Rows of loads: those of one bank from the first one on.
static inline void placed_normal(LoadUnit* u, uint32_t* rows) {
    LoadQueues* q = &u->queues;
    Walk* w = &u->feed.target.walk;
    TargetJob* now = &q->target_jobs[(q->targets.first - 1) % COMMAND_RING];
    Placed* placed[] = {&u->writes.item, &u->writes.spare};
    for (int k = 0; k < 2; ++k)
        if (placed[k]->space == SPACE_SCRATCHPAD) placed[k]->row /= SCRATCHPAD_ROWS / SCRATCHPAD_BANKS;
    if (rows[0] & ROWS_TOGETHER && now->work && u->feed.target.idle) {
        w->position -= now->row;
        for (int k = 1; k < WALK_MOST; ++k) w->begin[k] -= now->row;
    } else {
        rows[0] = 0;
    }
    for (uint32_t n = q->targets.first; n != q->targets.end; ++n) {
        TargetJob* job = &q->target_jobs[n % COMMAND_RING];
        if (job->work && rows[1 + n - q->targets.first] & ROWS_TOGETHER) job->row = 0;
        else rows[1 + n - q->targets.first] = 0;
    }
}

// Nothing is placed: what the last LOAD was means nothing any more.
static inline void feed_forget(LoadFeed* f) {
    FORGET(f->loops);
    FORGET(f->target.walk);
    FORGET(f->target.strides);
    f->space = f->empty = f->filled = f->padded = f->index = 0;
}

static inline void load_normal(LoadUnit* u, uint32_t* rows) {
    LoadQueues* q = &u->queues;
    placed_normal(u, rows);
    FORGET(u->command);
    u->request.params[PARAM_FILL] = 0;
    if (!u->signal_valid) u->signal_set = 0;
    for (uint32_t n = q->targets.first; n != q->feeds.end; ++n)
        if (q->target_jobs[n % COMMAND_RING].param == PARAM_FILL) q->target_jobs[n % COMMAND_RING].row = 0;
    for (uint32_t n = q->feeds.first; n != q->feeds.end; ++n)
        if (q->feed_jobs[n % COMMAND_RING].param == PARAM_FILL) q->feed_jobs[n % COMMAND_RING].runs = 0;
    RING_NORMAL(q->signal_sets, q->signals.first, q->signals.end);
    RING_NORMAL(q->feed_jobs, q->feeds.first, q->feeds.end);
    RING_NORMAL(q->target_jobs, q->targets.first, q->targets.end);
    for (uint32_t n = q->first_run; n != q->pending.end; ++n) q->runs[n % RUN_RING].addr = 0;  // of faults alone
    RING_NORMAL(q->runs, q->first_run, q->pending.end);
    queue_normal(&q->signals);
    queue_normal(&q->feeds);
    queue_normal(&q->targets);
    q->pending.first -= q->first_run, q->pending.end -= q->first_run, q->first_run = 0;
    BUFFER_NORMAL(u->writes);
    if (u->feed.state != FEED_PLACE && u->feed.target.idle)
        rows[0] = 0, feed_forget(&u->feed);
    BUFFER_NORMAL(u->request.runs);
    if (u->request.active) return;
    FORGET(u->request.loops);
    FORGET(u->request.addresses);
    FORGET(u->request.strides);
}

static inline void store_normal(StoreUnit* u) {
    StoreReads* r = &u->reads;
    FORGET(u->command);
    if (!u->run_valid) FORGET(u->run);
    RING_NORMAL(u->runs, u->queue.first, u->queue.end);
    for (uint32_t n = u->incomplete.first; n != u->incomplete.end; ++n) u->commands[n % STORE_RING].address = 0;
    u->memory_start = 0;  // like these it shows where a fault is
    RING_NORMAL(u->commands, u->incomplete.first, u->incomplete.end);
    RING_NORMAL(r->rows, r->starts.first, r->starts.end);
    queue_normal(&u->queue);
    queue_normal(&u->incomplete);
    queue_normal(&r->starts);
    queue_normal(&r->beats);
    BUFFER_NORMAL(u->offers);
    if (!r->active) r->row = r->index = r->ahead = 0;
    if (!u->preparing && !u->checking) FORGET(u->loops), FORGET(u->addresses), FORGET(u->rows);
}

static inline void until(int64_t* cycle, int64_t now, int64_t never) {
    if (*cycle == INT64_MAX) return;
    *cycle = *cycle < now ? never : *cycle - now;
}

static inline void hazards_normal(Hazards* h, int64_t now) {
    HazardPlace turned[HAZARD_PLACES];
    until(&h->free, now, -1);
    for (uint32_t k = 0; k < HAZARD_PLACES; ++k) {
        HazardPlace* p = &turned[k];
        *p = h->places[(h->place + k) % HAZARD_PLACES];
        if (p->until && p->until < now) FORGET(*p);
        else if (p->until) p->until -= now - 1;
    }
    memcpy(h->places, turned, sizeof turned);
    h->place = 0;
}

// The walk of a job in one bank counts from its first row. Without a position the job means nothing any more.
static inline void walk_normal(RowWalk* w, WalkJob* job, WalkJob* waiting, int waits) {
    uint32_t label = walk_label(job), base = job->base, next = walk_label(waiting), first = waiting->base;
    if (w->valid && label & ROWS_TOGETHER) w->position -= base, job->base = label;
    if (!w->valid) w->position = job->base = 0;
    if (waits && next & ROWS_TOGETHER) waiting->base = next;
    uint32_t by = w->starts ? (next & ROWS_TOGETHER ? first : 0) : label & ROWS_TOGETHER ? base : 0;
    if (w->busy) w->next -= by, w->begin_middle -= by, w->begin_outer -= by;
    else w->next = w->begin_middle = w->begin_outer = 0;
}

static inline void matrix_front_normal(MatrixFront* f) {
    if (!f->here) FORGET(f->command), f->end = 0;
    else if (f->command.op == OP_WEIGHTS && !f->bad) f->command.a = weights_label(f->params, &f->command);
    else if (f->command.op == OP_MATMUL && !f->empty) f->command.a = matmul_label(f->params, &f->command);
}

static inline void matrix_normal(MatrixUnit* u) {
    Accumulate* a = &u->accumulate;
    int64_t now = u->now;
    FORGET(u->command);
    for (int k = 0; k < 2; ++k)
        if (!u->signal_valid[k] && !(k ? u->next_started : u->offered)) u->signal_set[k] = 0;
    RING_NORMAL(u->started, u->first_started, u->first_started + u->count_started);
    u->first_started = 0;
    until(&u->settling, now, -1);
    until(&u->until, now, -1);
    until(&u->streamer.flying, now, -1);
    hazards_normal(&u->streamer.hazards, now);
    for (uint32_t n = a->writing; n != a->end; ++n) {
        IssueSlot* s = accumulate_slot(a, n);
        s->read = (int32_t)(n - a->reading) < 0 ? 0 : s->read - (uint32_t)now;
        s->write -= (uint32_t)now;
    }
    RING_NORMAL(a->slots, a->writing, a->end);
    a->reading -= a->writing, a->end -= a->writing, a->writing = 0;
    FORGET(a->read);
    FORGET(a->write);
    u->activations_row = u->weights_row = 0;  // those of the walks
    walk_normal(&u->streamer.walk, &u->streamer.job.walk, &u->streamer.waiting_job.walk, u->streamer.waiting);
    walk_normal(&u->loader.walk, &u->loader.job.walk, &u->loader.waiting_job.walk, u->loader.waiting);
    if (!u->read_valid) u->read_row = 0;
    if (!u->write_valid) u->write_row = 0;
    if (!u->streamer.waiting) FORGET(u->streamer.waiting_job);
    if (!u->loader.waiting) FORGET(u->loader.waiting_job);
    matrix_front_normal(&u->front);
    WeightsJob* weights[] = {&u->loader.job, &u->loader.waiting_job};
    MatmulJob* matmuls[] = {&u->streamer.job, &u->streamer.waiting_job};
    for (int k = 0; k < 2; ++k) {
        PADDING_NORMAL(weights[k]->walk, empty);
        PADDING_NORMAL(*weights[k], swaps);
        PADDING_NORMAL(matmuls[k]->walk, empty);
        PADDING_NORMAL(*matmuls[k], loads);
    }
    u->now = 0;
}

static inline void vector_normal(VectorUnit* u) {
    VectorLanes* l = &u->lanes;
    VectorWrites* w = &u->writes;
    VectorRetirement* r = &u->retirement;
    FORGET(u->command);
    if (u->front.state == VECTOR_NONE) FORGET(u->front.command), FORGET(u->front.kind), u->front.bad = u->front.same = 0;
    command_normal(&u->front.command, UNIT_VECTOR);
    for (uint32_t k = 0; k < PARAMS; ++k)
        if (param_is_value(k)) u->front.params[k] = 0;
    if (!u->signal_valid) u->signal_set = 0;
    for (int k = 0; k < VECTOR_READ_PORTS; ++k)
        if (!u->read_valid[k]) u->read_row[k] = u->read_part[k] = 0;
    if (!u->scratchpad_valid && !u->accumulator_valid) u->write_row = u->write_enable = 0;
    RING_NORMAL(w->to, w->first, w->end);
    w->end -= w->first, w->first = 0;
    RING_NORMAL(r->commands, r->first, r->first + r->count);
    r->first = 0;
    RING_NORMAL(l->due, (uint32_t)l->now, (uint32_t)l->now + LANES_LONGEST);
    l->joined = l->joined < l->now ? 0 : l->joined - l->now + 1;
    l->now = 0;
    if (!u->leaves) FORGET(u->leaving);
    if (!u->issuing && !u->faulted) {
        FORGET(u->reads.rows);
        u->reads.part = u->reads.left = u->reads.served = 0;
    }
}

enum { WATCHDOG_FAR = 1 << 16 };

// What is left to a watchdog, if it can end within a passage.
static inline uint32_t watchdog_label(uint32_t left) { return left > WATCHDOG_FAR ? WATCHDOG_FAR + 1 : left; }

static inline int sequencer_normal(Sequencer* s) {
    Execute* x = &s->x;
    int sound = s->state == S_RUN && s->f.phase == FETCH_IDLE && !s->f.full && !s->f.expects && !s->f.args_left;
    sound &= !s->l.inside && !s->l.start && !s->abort && !s->launch_valid;
    uint32_t available = s->f.available;
    memset(&s->f, 0, offsetof(Fetch, program));
    s->f.available = available;
    s->launch_word = s->launch_address = 0;
    s->watchdog_left = watchdog_label(s->watchdog_left);
    FORGET(s->beat_data);
    s->l.order.program = s->l.order.args = s->l.order.tagged = s->l.order.same = 0;
    FORGET(s->l.before);
    FORGET(x->registers);
    for (uint32_t k = 0; k < LOOP_DEPTH + 2; ++k) {
        if (k > x->depth + 1) FORGET(x->frames[k]);
        x->frames[k].count = 0;
    }
    if (execute_decided(x)) x->sequential = 0;  // says whether a loop goes on, which the program says in a passage's steps
    FORGET(x->command);
    return sound;
}
