// A chain of the vector unit: the stages on rows of words.
#pragma once

#include "chain_words.h"
#include "core.h"
#include "float32.h"
#include "functions.h"

static inline int compare(uint32_t op, int32_t x, int32_t y) {
    return op == BINARY_EQ ? x == y : op == BINARY_NE ? x != y : op == BINARY_LT ? x < y : x <= y;
}

static inline int32_t number_order(uint32_t x) {
    x = flush(x);
    return x & SIGN ? -(int32_t)(x & MAGNITUDE) : (int32_t)x;
}

#define EACH(expression) \
    for (int64_t i = 0; i < count; ++i) x[i] = (expression)
#define BOTH(integer, floating) \
    if (is_float) EACH(floating); \
    else EACH(integer); \
    break

// x = x op y, word by word.
static void binary(uint32_t op, uint32_t* restrict x, const uint32_t* restrict y, int64_t count, int is_float) {
    switch (op) {
    case BINARY_NONE: break;
    case BINARY_ADD: BOTH(x[i] + y[i], f_add(x[i], y[i]));
    case BINARY_MAX: BOTH((int32_t)x[i] > (int32_t)y[i] ? x[i] : y[i], f_maximum(x[i], y[i]));
    case BINARY_SUB: BOTH(x[i] - y[i], f_add(x[i], y[i] ^ SIGN));
    case BINARY_RSUB: BOTH(y[i] - x[i], f_add(x[i] ^ SIGN, y[i]));
    case BINARY_MIN: BOTH((int32_t)x[i] < (int32_t)y[i] ? x[i] : y[i], f_minimum(x[i], y[i]));
    case BINARY_SECOND: EACH(y[i]); break;
    case BINARY_AND: EACH(x[i] & y[i]); break;
    case BINARY_OR: EACH(x[i] | y[i]); break;
    case BINARY_XOR: EACH(x[i] ^ y[i]); break;
    case BINARY_SHL: EACH(x[i] << (y[i] & 31)); break;
    case BINARY_SHR: EACH(x[i] >> (y[i] & 31)); break;
    case BINARY_SAR: EACH((uint32_t)((int32_t)x[i] >> (y[i] & 31))); break;
    default:
        for (int64_t i = 0; i < count; ++i) {
            int holds = is_float ? compare(op, number_order(x[i]), number_order(y[i])) : compare(op, x[i], y[i]);
            if (is_float && (is_nan(x[i]) || is_nan(y[i]))) holds = op == BINARY_NE;
            x[i] = holds ? (is_float ? ONE : 1) : 0;
        }
    }
}

static uint32_t identity(uint32_t reduction, int is_float) {
    if (reduction == REDUCE_SUM) return is_float ? IDENTITY_SUM_FP32 : IDENTITY_SUM_INT32;
    if (reduction == REDUCE_MAX) return is_float ? IDENTITY_MAX_FP32 : IDENTITY_MAX_INT32;
    return is_float ? IDENTITY_MIN_FP32 : IDENTITY_MIN_INT32;
}

static uint32_t join_op(uint32_t reduction) {
    return reduction == REDUCE_SUM ? JOIN_SUM : reduction == REDUCE_MAX ? JOIN_MAX : JOIN_MIN;
}

// Rows of x into a row register, one after the other.
static void reduce_rows(Core* core, const Chain* chain, const uint32_t* x, int64_t rows, int is_float) {
    uint32_t reg = chain->register_, row[N];
    if (!chain->reduce || !rows) return;
    if (chain->reduce == REDUCE_LAST) {
        memcpy(core->rows[reg], x + (rows - 1) * N, sizeof core->rows[reg]);
        return;
    }
    for (int64_t r = 0; r < rows; ++r) {
        uint64_t k = core->partial_counts[reg]++;
        uint32_t* partial = core->partials[reg][k % PARTIALS];
        if (k < PARTIALS)
            for (int n = 0; n < N; ++n) partial[n] = identity(chain->reduce, is_float);
        memcpy(row, x + r * N, sizeof row);
        binary(join_op(chain->reduce), row, partial, N, is_float);
        memcpy(partial, row, sizeof row);
    }
}

// The partials in their fixed tree: p with p + 4, then with p + 2, then with p + 1.
static void fold(Core* core, uint32_t reg, uint32_t reduction, int is_float) {
    uint32_t(*partials)[N] = core->partials[reg];
    for (uint64_t p = core->partial_counts[reg]; p < PARTIALS; ++p)
        for (int n = 0; n < N; ++n) partials[p][n] = identity(reduction, is_float);
    for (int distance = PARTIALS / 2; distance; distance /= 2)
        binary(join_op(reduction), partials[0], partials[distance], distance * N, is_float);
    memcpy(core->rows[reg], partials[0], sizeof core->rows[reg]);
    core->partial_counts[reg] = 0;
}

// Operands of an instruction as words [rows][N]; b and c are NULL if they are not read.
typedef struct Operands {
    const uint32_t *a, *b, *c;
    int64_t rows;
} Operands;

static const uint32_t* late_rows(const Core* core, const Chain* chain, const Operands* in, int late, uint32_t* to) {
    uint32_t which = chain->late[late], lanes = chain->late_lanes[late];
    const uint32_t* from = which == LATE_A ? in->a : which == LATE_B ? in->b : in->c;
    uint32_t distance = (uint32_t)core->params[UNIT_VECTOR][PARAM_EXCHANGE] % N;
    if (lanes == LANES_OWN) return from;
    for (int64_t r = 0; r < in->rows; ++r)
        for (uint32_t n = 0; n < N; ++n) {
            uint32_t lane = lanes == LANES_EXCHANGE ? n ^ distance : (uint32_t)(r % N);
            to[r * N + n] = from[r * N + lane];
        }
    return to;
}

// The second operand of a stage, which `to` has room for.
static const uint32_t* operand_rows(const Core* core, const Operands* in, const uint32_t* const late[2],
                                    const uint32_t* x, uint32_t operand, uint32_t* to) {
    if (operand == OPERAND_B) return in->b;
    if (operand == OPERAND_LATE0) return late[0];
    if (operand == OPERAND_LATE1) return late[1];
    int64_t count = in->rows * N;
    if (operand == OPERAND_X) {
        memcpy(to, x, count * sizeof *to);
        return to;
    }
    if (operand >= OPERAND_ROW0) {
        for (int64_t r = 0; r < in->rows; ++r) memcpy(to + r * N, core->rows[operand - OPERAND_ROW0], sizeof(uint32_t) * N);
        return to;
    }
    uint32_t value = 0;
    if (operand >= OPERAND_SPLAT0) value = (uint32_t)core->params[UNIT_VECTOR][PARAM_SPLAT0 + operand - OPERAND_SPLAT0];
    for (int64_t i = 0; i < count; ++i) to[i] = value;
    return to;
}

static void keep_rows(const Core* core, const Chain* chain, const uint32_t* late, const uint32_t* other, uint32_t* x,
                      int64_t rows) {
    const int64_t* p = core->params[UNIT_VECTOR];
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t n = 0; n < N; ++n) {
            int64_t i = r * N + n, iota = p[PARAM_IOTA_BASE] + p[PARAM_IOTA_ROW] * r + p[PARAM_IOTA_LANE] * n;
            int stays = chain->keep == KEEP_LATE0_NOT_ZERO ? late[i] != 0 : (int32_t)(uint32_t)iota < 0;
            if (!stays) x[i] = other[i];
        }
}

// x behind the last stage, in place of A; returns whether it is fp32. `room`: for three operands.
static int chain_rows(Core* core, const Chain* chain, const Operands* in, uint32_t* x, uint32_t* room, uint32_t dtype,
                      uint32_t out) {
    int is_float = dtype == TYPE_FP32;
    int64_t count = in->rows * N;
    uint32_t* y = room + 2 * count;
    const uint32_t* late[2] = {0, 0};
    for (int k = 0; k < 2; ++k)
        if (late_uses(chain, k)) late[k] = late_rows(core, chain, in, k, room + k * count);
#define OPERAND(operand) operand_rows(core, in, late, x, operand, y)
    if (chain->binary) binary(chain->binary, x, OPERAND(chain->binary_operand), count, is_float);
    if (chain->add) binary(BINARY_ADD, x, OPERAND(chain->add), count, is_float);
    if (!is_float && becomes_float(chain, out)) {
        EACH(from_int32((int32_t)x[i]));
        is_float = 1;
    }
    if (chain->multiply) {
        const uint32_t* factor = OPERAND(chain->multiply);
        if (chain->integer_product) EACH(x[i] * factor[i]);
        else EACH(f_multiply(x[i], factor[i]));
    }
    if (chain->relu) {
        if (is_float) EACH(f_maximum(x[i], 0));
        else EACH((int32_t)x[i] < 0 ? 0 : x[i]);
    }
    if (chain->keep) keep_rows(core, chain, late[0], OPERAND(chain->other), x, in->rows);
    if (chain->function) {
        int code = (int)chain->function - 1;
        if (code >= OWN_FUNCTION) core->own(code, x, count);
        else EACH(function(code, x[i]));
    }
    if (chain->multiply2) {
        const uint32_t* factor = OPERAND(chain->multiply2);
        EACH(f_multiply(x[i], factor[i]));
    }
    if (chain->binary2) binary(chain->binary2, x, OPERAND(chain->binary2_operand), count, is_float);
#undef OPERAND
    return is_float;
}
