// The twin of sley.hw.core.matrix.front: checks, parameters, and the order of the two engines.
#pragma once

#include "abi.h"
#include "unit_params.h"

enum { MATMUL_ROWS = 1 << 16, ORDER_MASK = 3 };  // too many rows; mask of counts of loads and swaps

typedef struct MatrixFront {
    UnitCommand command;
    uint32_t params[PARAMS];
    uint32_t end;  // accumulator row behind a MATMUL's last one
    uint8_t here, bf16;
    uint8_t bad, ends_outside, bad_param, bad_type, bad_parameter, bad_row;
    uint8_t empty;  // a MATMUL that has no rows, or is bad
    uint8_t settled, set_done, loads, swaps, unused;

    uint8_t ready, go, done;  // in this cycle
} MatrixFront;

static inline void matrix_front_abort(MatrixFront* f) {
    f->here = f->bad = f->ends_outside = f->bad_param = 0;
    f->settled = f->set_done = f->loads = f->swaps = f->unused = 0;
}

// A command comes, and is checked.
static inline void matrix_front_take(MatrixFront* f, const UnitCommand* command) {
    uint32_t b = command->b, c = command->c;
    f->command = *command;
    f->here = 1;
    f->bad = f->ends_outside = f->bad_param = f->bad_type = f->bad_parameter = f->bad_row = f->bf16 = 0;
    if (command->op == OP_SET) {
        f->bad_param = set_is_bad(UNIT_MATRIX, FLAG(SET_PARAM, command->flags), command->a);
        return;
    }
    int loads = command->op == OP_WEIGHTS;
    uint32_t type = loads ? FLAG(WEIGHTS_DTYPE, command->flags) : FLAG(MATMUL_DTYPE, command->flags);
    f->bf16 = type == TYPE_BF16;
    f->bad_type = !(OPERAND_TYPES >> type & 1);
    if (loads) {
        f->bad_parameter = c == 0 || c > N;
        f->bad = f->bad_parameter | f->bad_type;
        return;
    }
    uint32_t end = (b & ACCUMULATOR_ROWS - 1) + (c & 2 * ACCUMULATOR_ROWS - 1);
    f->bad_row = b >= ACCUMULATOR_ROWS;
    f->bad_parameter = c >= MATMUL_ROWS;
    f->bad = f->bad_parameter | f->bad_type | (c >= 2 * ACCUMULATOR_ROWS) | (f->bad_row && c);
    f->end = end;
    f->ends_outside = end > ACCUMULATOR_ROWS;
    f->empty = f->bad | (c == 0);
}

// `takes_weights`, `takes_matmul`, `takes_empty`: the engines accept a job of the kind in this cycle.
static inline void matrix_front_outputs(MatrixFront* f, int takes_weights, int takes_matmul, int takes_empty) {
    f->go = f->ready = 1;
    f->done = 0;
    if (!f->here) return;
    f->go = !(f->bad | f->ends_outside) | f->settled;
    uint32_t op = f->command.op;
    int space = op == OP_WEIGHTS  ? takes_weights
                : op != OP_MATMUL ? !f->set_done
                                  : (f->empty | f->ends_outside) ? takes_empty : takes_matmul;
    f->done = f->ready = f->go && (!f->bad_param || f->settled) && space;
}

static inline int matrix_front_faults(const MatrixFront* f) { return f->done && (f->bad | f->ends_outside | f->bad_param); }

static inline uint32_t matrix_front_fault(const MatrixFront* f, uint32_t* address) {
    if (f->bad_parameter) return *address = f->command.c, FAULT_BAD_PARAMETER;
    if (f->bad_param) return *address = FLAG(SET_PARAM, f->command.flags), FAULT_BAD_PARAMETER;
    if (f->bad_type) return *address = 0, FAULT_ILLEGAL_INSTRUCTION;
    return *address = f->bad_row ? f->command.b : ACCUMULATOR_ROWS, FAULT_LOCAL_ADDRESS;
}

// A clock edge, but for the command that comes. `set_taken`: a SET that is complete signals.
static inline void matrix_front_tick(MatrixFront* f, int engines_idle, int set_taken) {
    f->settled = engines_idle && !f->done;
    if (set_taken) f->set_done = 0;
    if (!f->here) return;
    uint32_t op = f->command.op;
    if (op == OP_SET && !f->bad_param) f->params[FLAG(SET_PARAM, f->command.flags)] = f->command.a;
    if (!f->done) return;
    f->here = 0;
    if (op == OP_SET) {
        f->set_done = 1;
    } else if (op == OP_WEIGHTS && !f->bad) {
        f->loads = f->loads + 1 & ORDER_MASK;
        f->unused = 1;
    } else if (op == OP_MATMUL && !(f->empty | f->ends_outside)) {
        f->swaps = f->swaps + f->unused & ORDER_MASK;
        f->unused = 0;
    }
}
