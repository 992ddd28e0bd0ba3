// What the program of a block does, without its time: registers, loops, and the transfers that it hands out.
#pragma once

#include "labels.h"

enum { TRANSFER_LOAD, TRANSFER_STORE, TRANSFER_UNITS };
enum { TRANSFERS = 64 + UNIT_QUEUE };  // more than are on their way

// A LOAD or STORE: its addresses are from `low` to before `high`, whose pages differ from physical ones in `difference`.
typedef struct Transfer {
    uint32_t first, low, high, difference, bytes, stride;
    uint32_t label;    // of its address, all that timing depends on
    uint32_t strange;  // its time depends on more
} Transfer;

typedef struct Transfers {
    Transfer known[TRANSFER_UNITS][TRANSFERS];
    uint32_t count[TRANSFER_UNITS], end[TRANSFER_UNITS];  // physical end of the last run
    // Of a moment: those that are in no queue any more, and of them those that are not complete, and one more.
    uint32_t taken[TRANSFER_UNITS], most[TRANSFER_UNITS];
} Transfers;

// A command that was handed out, and of its `a` and `b` all that timing depends on.
typedef struct Handed {
    UnitCommand command;
    uint32_t label, rows;
} Handed;

enum { HANDED = 256 };  // that are known; a power of 2

typedef struct Follower {
    uint32_t registers[REGISTERS], depth, skips;
    Frame frames[LOOP_DEPTH + 2];
    uint32_t pc;  // of the next effect
    uint32_t params[UNITS_BEHIND][PARAMS];
    Transfers transfers;
    Handed handed[UNITS_BEHIND][HANDED];
    uint32_t count[UNITS_BEHIND];
} Follower;

// A cycle in which an instruction has an effect, and which.
typedef struct Step {
    uint16_t pc;
    uint8_t state, outcome;
} Step;

enum { STEP_TAKEN = 1, STEP_LAST = 2, STEP_AGAIN = 4 };

static inline uint32_t physical(uint32_t address, uint32_t difference) { return address ^ difference << PAGE_BITS; }

// The translation that holds all of these addresses; 0 if there is none, or it does not allow the access.
static inline const Translation* tlb_holds(const Tlb* t, uint32_t context, uint32_t low, uint32_t last, uint32_t access) {
    for (uint32_t k = 0; k < TLB_ENTRIES && !t->overlaps; ++k) {
        const Translation* e = &t->entries[k];
        if (translation_matches(e, context, low >> PAGE_BITS) && translation_matches(e, context, last >> PAGE_BITS))
            return e->access & access ? e : 0;
    }
    return 0;
}

static inline uint32_t transfer_access(int unit) { return 1u << (unit == TRANSFER_STORE ? NEED_WRITE : NEED_READ); }

// The last transfer that a unit has taken, or the one `back` before it.
static inline const Transfer* transfer_taken(const Transfers* t, int unit, uint32_t back) {
    return &t->known[unit][(t->taken[unit] - 1 - back) % TRANSFERS];
}

// A LOAD or STORE is handed out; 0 if its time depends on more than its label.
static inline int follower_transfer(
    Follower* f, const Tlb* tlb, uint64_t bytes, uint32_t context, int unit, const UnitCommand* c, uint32_t* label) {
    const uint32_t* p = f->params[unit];
    int by_list = HAS_LISTS && (unit == TRANSFER_LOAD ? FLAG(LOAD_BY_LIST, c->flags) : FLAG(STORE_BY_LIST, c->flags));
    uint32_t runs = c->c, slabs = p[PARAM_COUNT2], length = p[PARAM_RUN_BYTES];
    Transfers* all = &f->transfers;
    Transfer* t = &all->known[unit][all->count[unit]++ % TRANSFERS];
    *t = (Transfer){.first = c->a, .low = c->a, .high = c->a, .stride = 1, .label = c->a & PLACES - 1};
    *label = t->label;
    t->strange = by_list || runs > 0xFFFF;
    if (t->strange) return 0;
    if (!runs || !slabs || !length) return 1;
    int32_t stride = p[PARAM_MEM_STRIDE], stride2 = p[PARAM_MEM_STRIDE2];
    int64_t inner = (int64_t)stride * (runs - 1), outer = (int64_t)stride2 * (slabs - 1);
    int64_t low = c->a + (inner < 0 ? inner : 0) + (outer < 0 ? outer : 0);
    int64_t high = c->a + (inner > 0 ? inner : 0) + (outer > 0 ? outer : 0) + length;
    t->strange = 1;
    if (low < 0 || high > UINT32_MAX || (uint64_t)high > ADDRESS_LIMIT) return 0;
    const Translation* e = tlb_holds(tlb, context, low, high - 1, transfer_access(unit));
    if (!e || physical(high - 1, e->difference) >= bytes || physical(low, e->difference) >= bytes) return 0;
    *t = (Transfer){c->a, low, high, e->difference, length, runs > 1 ? stride : stride2};
    // All of it where its runs are not at one distance from the lowest on.
    int apart = (runs > 1 || slabs > 1) && (int32_t)t->stride > 0 && !(runs > 1 && slabs > 1 && stride2 % stride);
    if (!apart) t->bytes = t->stride = high - low;
    int alike = runs_alike(length, runs, stride, slabs, stride2);
    *label = t->label = place_label(physical(c->a, e->difference), length, alike, all->end[unit]);
    all->end[unit] = physical(c->a + inner + outer + length - 1, e->difference) + 1;
    return 1;
}

static inline int follower_command(
    Follower* f, const Tlb* tlb, uint64_t bytes, uint32_t context, const Instruction* i, Step* s) {
    uint32_t* r = f->registers;
    UnitCommand c = {.op = i->op, .pc = s->pc, .wait = i->wait, .signal = i->signal,
                     .a = i->immediate == IMM_A ? i->imm : r[i->ra], .b = r[i->rb], .c = i->immediate == IMM_C ? i->imm : r[i->rc], .flags = i->flags};
    int unit = i->unit == UNIT_LOAD ? TRANSFER_LOAD : i->unit == UNIT_STORE ? TRANSFER_STORE : TRANSFER_UNITS, sound = 1;
    uint32_t label = c.op == OP_SET ? set_label(i->unit, &c) : c.a, number = i->unit - UNIT_LOAD;
    uint32_t rows = c.b;
    const uint32_t* p = f->params[number];
    if (c.op == OP_SET) {
        uint32_t param = FLAG(SET_PARAM, c.flags);
        if (param < PARAMS && !set_is_bad(i->unit, param, c.a)) f->params[number][param] = c.a;
    } else if (c.op == OP_WEIGHTS) {
        label = weights_label(p, &c);
    } else if (c.op == OP_MATMUL) {
        label = matmul_label(p, &c);
    } else if (unit != TRANSFER_UNITS) {
        sound = follower_transfer(f, tlb, bytes, context, unit, &c, &label);
        if (unit == TRANSFER_LOAD) rows = load_rows(p, &c);
    }
    if (i->op != OP_SET && i->ra) r[i->ra] += r[i->rd];
    f->handed[number][f->count[number]++ % HANDED] = (Handed){c, label, rows};
    return sound;
}

// The effect of the instruction at `s->pc` in state `s->state` of the sequencer; 0 if no passage may have it, or the program
// is not there.
static inline int follower_step(
    Follower* f, const Tlb* tlb, uint64_t bytes, uint32_t context, const Instruction* program, Step* s) {
    const Instruction* i = &program[s->pc % PROGRAM_WORDS];
    uint32_t* r = f->registers;
    uint32_t a = i->immediate == IMM_A ? i->imm : r[i->ra], b = i->immediate == IMM_B ? i->imm : r[i->rb];
    Frame* top = &f->frames[f->depth];
    int step = 0, sound = 1, last = f->depth && s->pc == top->last;
    s->outcome = 0;
    if (s->pc != f->pc) return 0;
    if (s->state == X_LOOP) {
        f->pc = (f->skips ? i->flags + 1 : s->pc + 1) & PC_MASK;
        if (!f->skips) ++f->depth;
        return f->depth <= LOOP_DEPTH;
    }
    if (s->state == X_MULTIPLY) {
        if (i->rd) r[i->rd] = r[i->ra] * b;
        step = 1;
    } else if (i->kind == KIND_UNIT) {
        sound = follower_command(f, tlb, bytes, context, i, s);
        step = 1;
    } else if (i->kind == KIND_SIMPLE) {
        if (i->rd) r[i->rd] = alu(i->op, a, b);
        step = 1;
    } else if (i->kind == KIND_BRANCH) {
        s->outcome = is_taken(i->op, a, b) ? STEP_TAKEN : 0;
        f->pc = (s->outcome ? i->flags : s->pc + 1) & PC_MASK;
        sound = !last;
    } else if (i->kind == KIND_LOOP) {
        f->skips = !a;
        s->outcome = a ? 0 : STEP_TAKEN;
        sound = !last && f->depth < LOOP_DEPTH;
        if (!sound) return 0;
        f->frames[f->depth + 1] = (Frame){s->pc + 1 & PC_MASK, i->flags & PC_MASK, a};
    } else if (i->kind == KIND_SYNC) {
        step = 1;
    } else if (i->kind == KIND_MULTIPLY) {
        return 1;
    } else {
        return i->kind == KIND_END;
    }
    if (!step) return sound;
    f->pc = s->pc + 1 & PC_MASK;
    if (!last) return sound;
    s->outcome |= STEP_LAST;
    if (top->count != 1) {
        s->outcome |= STEP_AGAIN;
        --top->count;
        f->pc = top->first;
    } else {
        --f->depth;
    }
    return sound;
}

static inline int step_equal(const Step* x, const Step* y) {
    return x->pc == y->pc && x->state == y->state && x->outcome == y->outcome;
}

static inline const Handed* handed_at(const Follower* f, int unit, uint32_t number) {
    return &f->handed[unit][number % HANDED];
}

static inline int handed_equal(const Handed* x, const Handed* y) {
    const UnitCommand *c = &x->command, *d = &y->command;
    return x->label == y->label && x->rows == y->rows && c->op == d->op && c->pc == d->pc && c->wait == d->wait &&
           c->signal == d->signal && c->c == d->c && c->flags == d->flags;
}

// The number of the command at the output of the queue of a unit, or of the next one that comes to it.
static inline uint32_t handed_head(const Follower* f, const Core* core, int unit) {
    const Queue* q = &core->fronts[unit].queue;
    return f->count[unit] - (core->sequencer.x.pending == UNIT_LOAD + (uint32_t)unit) - (q->end - q->first);
}

// What the units have taken of the commands that were handed out.
static inline void follower_taken(Follower* f, const Core* core) {
    const Queue *loads = &core->load.queues.signals, *stores = &core->store.incomplete;
    for (int unit = 0; unit < TRANSFER_UNITS; ++unit) {
        f->transfers.taken[unit] = f->transfers.count[unit];
        for (uint32_t n = handed_head(f, core, unit); n != f->count[unit]; ++n)
            f->transfers.taken[unit] -= handed_at(f, unit, n)->command.op != OP_SET;
        uint32_t head = handed_head(f, core, unit), most = 1;
        uint32_t taken = unit == TRANSFER_LOAD ? loads->end - loads->first : stores->end - stores->first + !core->store.idle;
        for (uint32_t n = 0; n < taken && n < head; ++n) most += handed_at(f, unit, head - 1 - n)->command.op != OP_SET;
        f->transfers.most[unit] = most < f->transfers.taken[unit] ? most : f->transfers.taken[unit];
    }
}

// A block begins.
static inline void follower_reset(Follower* f) {
    memset(f, 0, sizeof *f);
    for (int k = 0; k < UNITS_BEHIND; ++k) params_reset(f->params[k]);
}

// Registers and loops of the sequencer, from which on the program is followed.
static inline void follower_read(Follower* f, const Execute* x) {
    memcpy(f->registers, x->registers, sizeof f->registers);
    memcpy(f->frames, x->frames, sizeof f->frames);
    f->depth = x->depth;
    f->skips = x->skipped;
    f->pc = execute_next(x);
}

// Whether the sequencer is where the follower says that it is.
static inline int follower_agrees(const Follower* f, const Execute* x) {
    int same = f->depth == x->depth && f->pc == execute_next(x);
    same = same && !memcmp(f->registers, x->registers, sizeof f->registers);
    return same && !memcmp(f->frames + 1, x->frames + 1, f->depth * sizeof *f->frames);
}
