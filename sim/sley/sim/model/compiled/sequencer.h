// The sequencer, its queues and the semaphores: one action of each part at a time.
#pragma once

#include "core.h"
#include "matrix.h"
#include "moves.h"
#include "params.h"
#include "scalar.h"
#include "vector.h"

static int unit_set(Core* core, uint32_t unit, const Command* command) {
    uint32_t number = SET_PARAM(command->word), value = command->a;
    if (unit == UNIT_VECTOR && number >= CHAIN_PARAM) {
        uint32_t chain = (number - CHAIN_PARAM) / WORDS_KEPT, word = (number - CHAIN_PARAM) % WORDS_KEPT;
        if (chain < 1 || chain > CHAINS || word >= CHAIN_WORDS || value & ~chain_masks[word])
            return fail(core, FAULT_BAD_PARAMETER, unit, command->pc, number);
        core->chains[chain][word] = value;
        return 0;
    }
    if (set_is_bad(unit, number, value)) return fail(core, FAULT_BAD_PARAMETER, unit, command->pc, number);
    core->params[unit][number] = param_value(number, value);
    return 0;
}

static void count_move(Core* core, int unit, const Command* command) {
    const int64_t* p = core->params[unit];
    uint64_t size = (uint64_t)p[PARAM_RUN_BYTES], runs = command->c, beats = 0;
    if (!size || !runs) return;
    if (p[PARAM_MEM_STRIDE] == (int64_t)size && !by_list(unit, command)) size *= runs, runs = 1;  // joined
    for (int64_t slab = 0; slab < p[PARAM_COUNT2]; ++slab)
        for (uint64_t run = 0; run < runs; ++run) {
            uint64_t first = run_address(core, unit, command, slab, (int64_t)run);
            beats += (first + size - 1) / BUS_BYTES - first / BUS_BYTES + 1;
        }
    int load = unit == UNIT_LOAD;
    core->traffic_counts[load ? TRAFFIC_LOAD_BYTES : TRAFFIC_STORE_BYTES] += (uint64_t)p[PARAM_COUNT2] * runs * size;
    core->traffic_counts[load ? TRAFFIC_LOAD_BEATS : TRAFFIC_STORE_BEATS] += beats;
}

// Executes an instruction of a unit; what was written before a fault is not defined.
static int execute(Core* core, uint32_t unit, const Command* command) {
    uint32_t op = WORD_OP(command->word);
    if (op == OP_SET) return unit_set(core, unit, command);
    int counts = op == OP_LOAD || op == OP_STORE || op == OP_WEIGHTS || op == OP_MATMUL || op == OP_VECTOR;
    if (counts && command->c > 0xFFFF) return fail(core, FAULT_BAD_PARAMETER, unit, command->pc, command->c);
    int failed;
    switch (op) {
    case OP_LOAD: failed = unit_load(core, command); break;
    case OP_STORE: failed = unit_store(core, command); break;
    case OP_WEIGHTS: failed = unit_weights(core, command); break;
    case OP_MATMUL: failed = unit_matmul(core, command); break;
    case OP_VECTOR: failed = unit_vector(core, command); break;
    case OP_VROW: failed = unit_vrow(core, command); break;
    default: failed = unit_vfold(core, command);
    }
    if (failed || core->frozen) return failed;
    if (op == OP_LOAD || op == OP_STORE) count_move(core, unit, command);
    if (op == OP_MATMUL) {
        int bf16 = MATMUL_DTYPE(command->word) == TYPE_BF16;
        core->matrix_counts[bf16 ? MATRIX_ROW_BF16 : MATRIX_ROW_INT8] += command->c;
    }
    return 0;
}

static int take(Core* core, uint32_t unit, uint32_t mask) {
    for (int i = 0; i < SEMAPHORES; ++i)
        if (mask >> i & 1 && !core->semaphores[i]) return 0;
    for (int i = 0; i < SEMAPHORES; ++i) core->semaphores[i] -= mask >> i & 1;
    HOOK(clocks_take(core, unit, mask);)
    return 1;
}

static int give(Core* core, uint32_t unit, uint32_t mask) {
    for (int i = 0; i < SEMAPHORES; ++i)
        if (mask >> i & 1 && core->semaphores[i] == SEMAPHORE_MAX) return 0;
    for (int i = 0; i < SEMAPHORES; ++i) core->semaphores[i] += mask >> i & 1;
    HOOK(clocks_give(core, unit, mask);)
    return 1;
}

// What an action came to.
enum { WAITS, MOVED, STOPPED };

static int step_unit(Core* core, uint32_t unit) {
    Queue* queue = &core->queues[unit];
    if (queue->signalling) {
        if (!give(core, unit, queue->signal)) return WAITS;
        queue->signalling = 0;
        ++core->retired;
        core->quiet = 0;
        return MOVED;
    }
    if (!queue->count) return WAITS;
    const Command* command = &queue->items[queue->first];
    int is_set = WORD_OP(command->word) == OP_SET;
    if (!is_set && !take(core, unit, WORD_WAIT(command->word))) return WAITS;
    HOOK(clocks_execute(core, unit, command);)
    if (execute(core, unit, command)) return STOPPED;
    queue->signal = is_set ? 0 : WORD_SIGNAL(command->word);
    queue->signalling = 1;
    queue->first = (queue->first + 1) % UNIT_QUEUE;
    --queue->count;
    return MOVED;
}

static int stop(Core* core, uint32_t code, uint64_t address) {
    fail(core, code, UNIT_SEQUENCER, core->pc, address);
    return STOPPED;
}

static void write_register(Core* core, uint32_t number, uint32_t value) {
    if (number) core->registers[number] = value;
}

static int step_end(Core* core) {
    uint32_t leftover = 0;
    for (int unit = 0; unit < UNIT_COUNT; ++unit)
        if (core->queues[unit].count || core->queues[unit].signalling) return WAITS;
    for (int i = 0; i < SEMAPHORES; ++i) leftover |= (uint32_t)(core->semaphores[i] != 0) << i;
    if (leftover) return stop(core, FAULT_SEMAPHORE_LEFTOVER, leftover);
    core->running = 0;
    return STOPPED;
}

static int step_sequencer(Core* core) {
    if (core->pc >= core->program_words) return stop(core, FAULT_PC_OUT_OF_RANGE, core->pc);
    Word w = core->program[core->pc];
    uint32_t op = WORD_OP(w), illegal = (uint32_t)w;
    const Format* format = &formats[op];
    if (!format->known || (uint64_t)w & ~format->low || (uint64_t)(w >> 64) & ~format->high)
        return stop(core, FAULT_ILLEGAL_INSTRUCTION, illegal);
    int branch = format->branch;
    Loop* loop = core->loop_depth ? &core->loops[core->loop_depth - 1] : 0;
    int at_end = loop && core->pc == loop->last;
    if (at_end && (branch || op == OP_LOOP || op == OP_END)) return stop(core, FAULT_ILLEGAL_INSTRUCTION, illegal);
    uint32_t a = core->registers[WORD_RA(w)], b = core->registers[WORD_RB(w)], c = core->registers[WORD_RC(w)];
    if (WORD_USE_IMM(w) && format->immediate) {
        uint32_t* replaced = format->immediate == IMM_A ? &a : format->immediate == IMM_B ? &b : &c;
        *replaced = WORD_IMM(w);
    }
    uint32_t next = core->pc + 1, target = WORD_FLAGS(w) & 0xFFFF;
    if (op == OP_END) return step_end(core);
    if (op == OP_SYNC) {
        if (!core->sync_wait_done && !take(core, UNIT_SEQUENCER, WORD_WAIT(w))) return WAITS;
        core->sync_wait_done = 1;
        if (!give(core, UNIT_SEQUENCER, WORD_SIGNAL(w))) return WAITS;
        core->sync_wait_done = 0;
    } else if (branch) {
        if (is_taken(op, a, b)) {
            if (target >= core->program_words) return stop(core, FAULT_PC_OUT_OF_RANGE, target);
            if (loop && (target < loop->first || target > loop->last))
                return stop(core, FAULT_BRANCH_OUT_OF_LOOP, target);
            next = target;
        }
    } else if (op == OP_LOOP) {
        if (target <= core->pc || target >= core->program_words || (!a && target + 1 >= core->program_words))
            return stop(core, FAULT_PC_OUT_OF_RANGE, target);
        if (loop && target >= loop->last) return stop(core, FAULT_BRANCH_OUT_OF_LOOP, target);
        if (!a) {
            next = target + 1;
        } else {
            if (core->loop_depth == LOOP_DEPTH) return stop(core, FAULT_LOOP_OVERFLOW, target);
            core->loops[core->loop_depth++] = (Loop){core->pc + 1, target, a};
        }
    } else if (op == OP_SET || format->unit != UNIT_SEQUENCER) {
        uint32_t unit = op == OP_SET ? SET_UNIT(w) : format->unit;
        if (unit == UNIT_SEQUENCER || unit >= UNIT_COUNT) return stop(core, FAULT_ILLEGAL_INSTRUCTION, illegal);
        Queue* queue = &core->queues[unit];
        if (queue->count == UNIT_QUEUE) return WAITS;
        queue->items[(queue->first + queue->count++) % UNIT_QUEUE] = (Command){w, a, b, c, core->pc};
        HOOK(clocks_dispatch(core, unit);)
        if (WORD_RD(w)) write_register(core, WORD_RA(w), core->registers[WORD_RA(w)] + core->registers[WORD_RD(w)]);
    } else {
        write_register(core, WORD_RD(w), alu(op, a, b));
    }
    if (at_end) {
        if (--loop->remaining) next = loop->first;
        else --core->loop_depth;
    }
    core->pc = next;
    return MOVED;
}

// At most so many actions of every part, until all wait; returns how many. The block has ended if `running` is 0.
static uint64_t run(Core* core, uint64_t steps) {
    for (uint64_t k = 0; k < steps; ++k) {
        int moved = 0, result = WAITS;
        ++core->quiet;
        for (uint32_t unit = UNIT_LOAD; unit < UNIT_COUNT && result != STOPPED; ++unit) {
            result = step_unit(core, unit);
            moved |= result != WAITS;
        }
        if (result != STOPPED) result = step_sequencer(core);
        if (result == STOPPED) {
            core->running = 0;
            return k + 1;
        }
        if (!moved && result == WAITS) return k;
    }
    return steps;
}
