// Passages of a block that were computed before are not computed again: if the chip is in a moment in which it was, and the
// program does the same, all that follows takes the same cycles, and counts the same.
#pragma once

#include "restore.h"

enum { PASSAGE_CYCLES = 96 };  // at least

typedef struct Repeat {
    Passages* passages;
    Moment *now, *normal, *scratch;
    Follower follower;
    uint32_t follows, wanted;  // registers are those of the follower; a moment is due
    uint32_t program, knows_program;

    // The passage that began last.
    Past* from;
    uint32_t sound, steps, progressed;
    uint64_t since, kind;
    Counted counted;
    Step step[PASSAGE_STEPS];
    uint32_t heads[UNITS_BEHIND];

    uint64_t left_out, moments, returns;  // cycles; moments that were looked at; of them those that had been
    const char* wrong;
} Repeat;

static Repeat* repeat_create(void) {
    Repeat* r = calloc(1, sizeof *r);
    if (r) r->passages = calloc(1, sizeof *r->passages);
    if (!r || !r->passages) abort();
    r->now = calloc(1, sizeof *r->now), r->normal = calloc(1, sizeof *r->now), r->scratch = calloc(1, sizeof *r->now);
    if (!r->now || !r->normal || !r->scratch) abort();
    return r;
}

static void repeat_destroy(Repeat* r) {
    if (!r) return;
    passages_forget(r->passages);
    free(r->now), free(r->normal), free(r->scratch);
    free(r);
}

static inline Counted chip_counted(const Chip* c) {
    Counted now;
    const CounterGroups *core = &c->cores[0].counters.groups, *bus = &c->counters.groups;
    memcpy(now.classes, core->counts, sizeof now.classes);
    memcpy(now.sums, core->sums, sizeof now.sums);
    memcpy(now.bus_classes, bus->counts, sizeof now.bus_classes);
    memcpy(now.bus_sums, bus->sums, sizeof now.bus_sums);
    now.progress = c->progress;
    return now;
}

static inline void counted_add(Counted* to, const Counted* more, int sign) {
    uint32_t *x = (uint32_t*)to, *y = (uint32_t*)more;
    for (size_t k = 0; k < sizeof *to / sizeof *x; ++k) x[k] += sign * y[k];
}

// Whether nothing but the block that runs changes anything in this cycle.
static inline int repeat_alone(const Chip* c) {
    const Sequencer* s = &c->cores[0].sequencer;
    int fetched = !s->l.start && !sequencer_stalls(s) && s->f.phase == FETCH_IDLE && !s->f.expects && !s->f.full;
    int runs = s->state == S_RUN && s->x.state != X_IDLE && !s->abort;  // idle: it failed a cycle ago
    return fetched && runs && c->sleep.asleep && c->gateway.walker.state == WALKER_IDLE && c->reset_state == RESET_RUN &&
           !c->cores[0].invalidate && !c->cores[0].forget;
}

// A moment is due where the last 64 cycles were of a certain kind, so that what comes again is cut in the same places.
static inline void repeat_look(Repeat* r, const Core* core, uint64_t cycle) {
    uint64_t happened = 0;
    for (int k = 0; k < CLASS_GROUPS; ++k) happened = (happened ^ core->happened[k]) * 0x9E3779B97F4A7C15ull;
    r->kind = 2 * r->kind + (happened ^ happened >> 31);
    if (!(r->kind * 0xBF58476D1CE4E5B9ull >> 57) && cycle - r->since >= PASSAGE_CYCLES) r->wanted = 1;
}

// In front of each clock edge.
static inline void repeat_watch(Repeat* r, const Chip* c, const Dram* d) {
    const Core* core = &c->cores[0];
    const Sequencer* s = &core->sequencer;
    const Execute* x = &s->x;
    if (s->clear || s->state != S_RUN) {
        if (s->clear) follower_reset(&r->follower);
        r->follows = r->knows_program = r->wanted = 0;
        r->from = 0;
        return;
    }
    r->sound &= repeat_alone(c);
    r->progressed |= s->retired;
    repeat_look(r, core, d->cycle);
    if (x->state != X_EXECUTE && x->state != X_MULTIPLY && x->state != X_LOOP) return;
    if (x->state == X_EXECUTE && x->instruction.kind == KIND_UNIT && x->pending) return;
    if (!r->follows) follower_read(&r->follower, x);
    Step* step = &r->step[r->steps % PASSAGE_STEPS];
    *step = (Step){x->pc, x->state};
    r->sound &= follower_step(&r->follower, &core->path.port.tlb, d->bytes, s->context, s->f.program, step);
    if (r->steps < PASSAGE_STEPS) ++r->steps;
}

// All transfers that are not complete have translations that the core holds.
static inline int repeat_translates(const Repeat* r, const Chip* c) {
    const Transfers* f = &r->follower.transfers;
    const Tlb* tlb = &c->cores[0].path.port.tlb;
    uint32_t context = c->cores[0].sequencer.context;
    for (int unit = 0; unit < TRANSFER_UNITS; ++unit)
        for (uint32_t k = f->taken[unit] - f->most[unit]; k != f->count[unit]; ++k) {
            const Transfer* t = &f->known[unit][k % TRANSFERS];
            if (t->strange) return 0;
            if (t->low == t->high) continue;
            const Translation* e = tlb_holds(tlb, context, t->low, t->high - 1, transfer_access(unit));
            if (!e || e->difference != t->difference) return 0;
        }
    return 1;
}

// Whether the program does from here on what it did in a passage; then `f` has followed it.
static inline int repeat_follows(
    const Chip* c, uint64_t bytes, Follower* f, const uint32_t* heads, const Passage* p) {
    const Tlb* tlb = &c->cores[0].path.port.tlb;
    const Sequencer* s = &c->cores[0].sequencer;
    for (uint32_t k = 0; k < p->steps; ++k) {
        Step step = {p->step[k].pc, p->step[k].state};
        if (!follower_step(f, tlb, bytes, s->context, s->f.program, &step)) return 0;
        if (!step_equal(&step, &p->step[k])) return 0;
    }
    const Handed* command = p->command;
    for (int unit = 0; unit < UNITS_BEHIND; ++unit)
        for (uint32_t k = 0; k < p->commands[unit]; ++k)
            if (!handed_equal(command++, handed_at(f, unit, heads[unit] + k))) return 0;
    return 1;
}

// From a past moment on, along passages that the program follows; the cycles that were left out.
static inline uint64_t repeat_along(Repeat* r, Chip* c, Dram* d, Past* past, uint64_t limit) {
    static __thread Follower f, next;
    uint32_t heads[UNITS_BEHIND];
    f = r->follower;
    memcpy(heads, r->heads, sizeof heads);
    uint64_t cycles = 0;
    Past* at = past;
    Counted counted = r->counted;
    uint32_t watchdog = c->cores[0].sequencer.watchdog_left;
    for (int moved = 1; moved;) {
        moved = 0;
        if (watchdog_label(watchdog) != at->watchdog) break;
        for (const Passage* p = at->passages; p && !moved; p = p->other) {
            if (cycles + p->cycles >= limit) continue;
            next = f;
            if (!repeat_follows(c, d->bytes, &next, heads, p)) continue;
            f = next;
            for (int unit = 0; unit < UNITS_BEHIND; ++unit) heads[unit] += p->commands[unit] - p->stays[unit];
            cycles += p->cycles;
            counted_add(&counted, &p->counted, 1);
            watchdog = p->progressed ? p->watchdog : watchdog ? watchdog - (uint32_t)p->cycles : 0;
            at = p->to;
            moved = 1;
        }
    }
    if (!cycles || !moment_restore(r->passages, at, r->scratch, &f, c, d, d->cycle + cycles, &counted)) return 0;
    c->cores[0].sequencer.watchdog_left = watchdog;
    r->follower = f;
    memcpy(r->heads, heads, sizeof heads);
    r->from = at;
    r->counted = counted;
    r->left_out += cycles;
    return cycles;
}

static inline void repeat_begin(Repeat* r, const Chip* c, const Dram* d, Past* from) {
    r->from = from;
    r->sound = 1;
    r->steps = r->progressed = 0;
    r->since = d->cycle;
    for (int k = 0; k < UNITS_BEHIND; ++k) r->heads[k] = handed_head(&r->follower, &c->cores[0], k);
    r->counted = chip_counted(c);
}

static inline void repeat_passed(Repeat* r, const Chip* c, const Dram* d, Past* to) {
    Past* from = r->from;
    if (!from || !r->sound || from->count == MOMENT_PASSAGES) return;
    if (r->steps >= PASSAGE_STEPS || d->cycle - r->since >= WATCHDOG_FAR) return;
    uint32_t commands = 0, count[UNITS_BEHIND], stays[UNITS_BEHIND];
    for (int k = 0; k < UNITS_BEHIND; ++k) {
        stays[k] = c->cores[0].fronts[k].queue.here;
        count[k] = handed_head(&r->follower, &c->cores[0], k) + stays[k] - r->heads[k];
        if (r->follower.count[k] - r->heads[k] > HANDED) return;
        commands += count[k];
    }
    Passage* p = calloc(1, sizeof *p);
    Step* step = malloc((r->steps + 1) * sizeof *step);
    Handed* command = malloc((commands + 1) * sizeof *command);
    if (!p || !step || !command) abort();
    *p = (Passage){.to = to, .cycles = d->cycle - r->since, .steps = r->steps, .step = step, .command = command};
    p->counted = chip_counted(c);
    p->progressed = r->progressed, p->watchdog = c->cores[0].sequencer.watchdog_left;
    p->other = from->passages;
    memcpy(p->commands, count, sizeof count);
    memcpy(p->stays, stays, sizeof stays);
    for (int unit = 0; unit < UNITS_BEHIND; ++unit)
        for (uint32_t k = 0; k < count[unit]; ++k) *command++ = *handed_at(&r->follower, unit, r->heads[unit] + k);
    from->passages = p, ++from->count;
    memcpy(p->step, r->step, r->steps * sizeof *p->step);
    counted_add(&p->counted, &r->counted, -1);
}

// Cycles, at most `limit`, that are left out; outputs of this cycle have settled.
static inline uint64_t repeat_pass(Repeat* r, Chip* c, Dram* d, uint64_t limit) {
    if (!r->wanted) return 0;
    Sequencer* s = &c->cores[0].sequencer;
    r->wanted = 0;
    if (!repeat_alone(c) || d->violation) return 0;
    if (!r->follows) {
        follower_read(&r->follower, &s->x);
        r->follows = 1;
    }
    if (!follower_agrees(&r->follower, &s->x)) {
        r->wrong = "of a program what its follower did not (a fault of the exact model)";
        return 0;
    }
    if (!r->knows_program) r->program = passages_program(r->passages, s->f.program, s->f.available), r->knows_program = 1;
    ++r->moments;
    follower_taken(&r->follower, &c->cores[0]);
    if (!repeat_translates(r, c) || !moment_take(r->now, c, d, &r->follower)) {
        repeat_begin(r, c, d, 0);
        return 0;
    }
    moment_copy(r->normal, r->now);
    if (!moment_normal(r->normal)) {
        repeat_begin(r, c, d, 0);
        return 0;
    }
    uint64_t hash = moment_hash(r->normal);
    Past** slot = passages_find(r->passages, r->normal, hash, r->program, r->scratch);
    Past* past = *slot;
    if (!past && r->passages->count < MOMENTS) {
        past = *slot = past_write(r->passages, r->now);
        past->hash = hash, past->program = r->program;
        past->watchdog = watchdog_label(s->watchdog_left);
        repeat_passed(r, c, d, past);
        repeat_begin(r, c, d, past);
        return 0;
    }
    if (past) repeat_passed(r, c, d, past), ++r->returns;
    repeat_begin(r, c, d, past);
    if (!past) return 0;
    uint64_t cycles = repeat_along(r, c, d, past, limit);
    r->since = d->cycle;
    return cycles;
}
