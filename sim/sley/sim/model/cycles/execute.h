// The twin of sley.hw.core.sequencer.execute, with its loops, registers and the command that is handed out.
#pragma once

#include "fetch.h"
#include "scalar.h"
#include "unit_front.h"

enum { X_IDLE, X_FETCH, X_READ, X_EXECUTE, X_MULTIPLY, X_WAIT, X_SIGNAL, X_LOOP, X_ENDED };

typedef struct Frame {
    uint32_t first, last, count;
} Frame;

typedef struct Execute {
    uint32_t state, pc, sequential, origin, taken, astray, skipped, failed, code, address;
    int beyond_program, outside_loop, backwards, last_of_all, not_inside_loop;
    Instruction instruction;
    uint32_t registers[REGISTERS];
    Frame frames[LOOP_DEPTH + 2];
    uint32_t depth;
    uint32_t pending;  // the unit of a command that was not accepted yet
    UnitCommand command;
} Execute;

static int execute_waits(const Execute* x) { return x->state == X_WAIT || x->state == X_SIGNAL; }

// The instruction in execution, as the debug registers and faults show it.
static uint32_t execute_pc(const Execute* x) { return x->taken || execute_waits(x) ? x->origin : x->pc; }

static int execute_blocked(const Execute* x) {
    return x->state == X_EXECUTE && x->pending && x->instruction.kind == KIND_UNIT;
}

// Where the program goes on behind the instruction at `pc`, if that does not branch.
static uint32_t execute_following(const Execute* x) {
    const Frame* top = &x->frames[x->depth];
    return x->depth && x->pc == top->last && top->count != 1 ? top->first : (x->pc + 1) & PC_MASK;
}

// Whether `sequential` is that already.
static inline int execute_decided(const Execute* x) {
    return x->state == X_EXECUTE || x->state == X_MULTIPLY || x->state == X_LOOP;
}

// The next instruction that has an effect.
static inline uint32_t execute_next(const Execute* x) { return x->taken ? x->instruction.flags & PC_MASK : x->pc; }

static int execute_fetching(const Execute* x, uint32_t available, int stall) {
    uint32_t target = x->instruction.flags & 0xFFFF;
    return x->state == X_FETCH && !x->taken && (stall || (x->taken ? target : x->sequential) >= available);
}

static void fail_at(Execute* x, uint32_t code, uint32_t address, uint32_t* next) {
    x->failed = 1, x->code = code, x->address = address;
    *next = X_IDLE;
}

static void hand_out(Execute* x, uint32_t a) {
    const Instruction* i = &x->instruction;
    uint32_t* r = x->registers;
    x->pending = i->unit;
    x->command = (UnitCommand){i->op, x->pc, i->wait, i->signal, a, r[i->rb], i->immediate == IMM_C ? i->imm : r[i->rc],
                               i->flags};
    if (i->op != OP_SET && i->ra) r[i->ra] += r[i->rd];
}

// Inputs of a cycle besides the program.
typedef struct ExecuteInputs {
    int go, stall, stop, wait_ready, signal_ready;
    uint32_t words, available;
    uint32_t accepted;  // the unit that takes the command, or 0
} ExecuteInputs;

static void execute_tick(Execute* x, const Instruction* program, const ExecuteInputs* in) {
    uint32_t state = x->state, next = state, pending = x->pending;
    if (in->accepted) x->pending = 0;
    if ((state == X_IDLE || state == X_ENDED) && !in->go && !in->stop && !x->taken) {
        x->failed = x->astray = 0;
        return;
    }
    const Instruction* i = &x->instruction;
    uint32_t pc = x->pc, target = i->flags & 0xFFFF, low_target = target & PC_MASK, after_target = (target + 1) & PC_MASK;
    uint32_t taken = x->taken, sequential = x->sequential, onward = taken ? low_target : sequential;
    int low_present = low_target < in->available, sequential_present = sequential < in->available;
    int waits = state == X_WAIT || state == X_SIGNAL, active = x->depth != 0;
    Frame* top = &x->frames[x->depth];
    int at_last = active && pc == top->last, again = top->count != 1;
    int step = 0, falls_through = 0, completes = 0, jump = 0, sync = 0, refused = 0, push = 0, now_taken = 0;
    int beyond_program = x->beyond_program, outside_loop = x->outside_loop, astray = x->astray;
    x->failed = 0;
    x->astray = state == X_FETCH && !in->stall && pc == in->words;

    switch (state) {
    case X_FETCH:
        if (astray) {
            if (!taken) fail_at(x, FAULT_PC_OUT_OF_RANGE, pc, &next);
        } else if (!in->stall && sequential_present) {
            next = X_READ;
        }
        break;
    case X_READ:
        next = X_EXECUTE;
        break;
    case X_EXECUTE: {
        x->origin = pc;
        int control = i->kind == KIND_BRANCH || i->kind == KIND_LOOP || i->kind == KIND_END;
        if (i->kind == KIND_ILLEGAL || (at_last && control)) {
            fail_at(x, FAULT_ILLEGAL_INSTRUCTION, i->low, &next);
            break;
        }
        uint32_t a = i->immediate == IMM_A ? i->imm : x->registers[i->ra];
        uint32_t b = i->immediate == IMM_B ? i->imm : x->registers[i->rb];
        switch (i->kind) {
        case KIND_UNIT:
            if (!pending && !in->stop) hand_out(x, a), step = 1;
            break;
        case KIND_SIMPLE:
            if (i->rd) x->registers[i->rd] = alu(i->op, a, b);
            step = 1;
            break;
        case KIND_BRANCH:
            falls_through = 1;
            now_taken = is_taken(i->op, a, b);
            break;
        case KIND_LOOP:
            x->frames[x->depth + 1] = (Frame){sequential, target & PC_MASK, a};
            x->skipped = !a;
            next = X_LOOP;
            break;
        case KIND_END: next = X_ENDED; break;
        case KIND_SYNC: step = sync = 1; break;
        case KIND_MULTIPLY: next = X_MULTIPLY; break;
        }
        x->beyond_program = target >= in->words;
        x->outside_loop = active && (low_target < top->first || low_target > top->last);
        x->backwards = low_target <= pc;
        x->last_of_all = after_target == in->words;
        x->not_inside_loop = active && low_target >= top->last;
        break;
    }
    case X_LOOP:
        if (beyond_program || x->backwards || (x->skipped && x->last_of_all))
            fail_at(x, FAULT_PC_OUT_OF_RANGE, target, &next);
        else if (x->not_inside_loop) fail_at(x, FAULT_BRANCH_OUT_OF_LOOP, target, &next);
        else if (x->skipped) jump = 1;
        else if (x->depth == LOOP_DEPTH) fail_at(x, FAULT_LOOP_OVERFLOW, target, &next);
        else push = step = 1;
        break;
    case X_MULTIPLY:
        if (i->rd) {
            uint32_t b = i->immediate == IMM_B ? i->imm : x->registers[i->rb];
            x->registers[i->rd] = x->registers[i->ra] * b;
        }
        step = 1;
        break;
    case X_WAIT: refused = !in->wait_ready; break;
    case X_SIGNAL: refused = !in->signal_ready; break;
    }

    if (step || falls_through || waits) next = sequential_present ? X_READ : X_FETCH;
    if (sync && i->wait) next = X_WAIT;
    else if ((sync || state == X_WAIT) && i->signal) next = X_SIGNAL;
    if (jump) next = X_FETCH;

    uint32_t new_pc = pc, new_sequential = sequential;
    if (state != X_FETCH && !waits) new_sequential = execute_following(x);
    if (taken) {
        next = low_present ? X_READ : X_FETCH;
        if (beyond_program || outside_loop) {
            fail_at(x, beyond_program ? FAULT_PC_OUT_OF_RANGE : FAULT_BRANCH_OUT_OF_LOOP, target, &next);
            new_pc = x->origin;
        } else {
            completes = 1;
        }
    }
    if (state == X_READ && !taken) x->instruction = program[pc % PROGRAM_WORDS];
    if (step || falls_through || completes) new_pc = new_sequential = onward;
    if (jump) new_pc = new_sequential = after_target;

    if (push) {
        ++x->depth;
    } else if (step && at_last) {
        if (again) --top->count;
        else --x->depth;
    }
    x->taken = now_taken;
    if (in->go) new_pc = new_sequential = x->depth = 0, next = X_FETCH;
    if (in->stop) {
        next = X_IDLE;
        if (waits) new_pc = x->origin;
    }
    x->pc = new_pc, x->sequential = new_sequential;
    if (!refused || in->go || in->stop) x->state = next;
}
