// The twin of sley.hw.core.vector.lanes, lane_control, stages and reductions: how long rows are on their way. All that
// are in the lanes at a time take the same way, which depends on no data.
#pragma once

#include "vector_kind.h"

enum {
    LANES_LONGEST = 256,  // cycles from the read of a part to its end, a power of 2
    FUNCTION_CODES = 32,
    PART_ARRIVES = 1,
    ROW_JOINS = 2,  // a part comes to the adder of a reduction
    SOURCE_LATENCY = 1,
    RELU_LATENCY = 1,
    SELECT_LATENCY = 1,
    SUM_INTEGER = 2,  // of the adder of the bias
    SUM_CONVERT = 1 + FP32_FROM_INT32,
    SUM_FLOAT = 2 + FP32_ADD,
    FOLD_JOINS = 2 * (PARTIALS - 1),  // cycles that join pairs of partials in a fold
};

typedef struct VectorLanes {
    uint32_t functions[FUNCTION_CODES];     // latencies, by the code in a chain; from 0 on for none
    uint32_t latency, joins, join_latency;  // from a read to its end; to a join, if not 0; from that to its end
    uint32_t inside, part;                  // rows; the part that arrives next
    uint64_t now, joined;                   // cycles; up to which a join or a fold is on its way
    uint8_t counts;                         // what they do begins anew with each command
    uint8_t due[LANES_LONGEST];             // what happens in each of the next cycles

    uint8_t row_arrives, busy;  // in this cycle; busy: with joins
} VectorLanes;

static inline uint32_t adder_latency(uint32_t op, int is_float) {
    if (op == BINARY_MAX || op == BINARY_MIN) return FP32_MAXIMUM;
    return is_float && op != BINARY_NONE ? FLOAT_ADD : INTEGER_ADD;
}

static inline uint32_t join_latency(uint32_t reduce, int is_float) {
    return 1 + (reduce == REDUCE_SUM ? adder_latency(BINARY_ADD, is_float) : FP32_MAXIMUM);
}

// A VROW, a VECTOR, which has a chain or not, or a VFOLD changes what the lanes do.
static inline void vector_lanes_vrow(VectorLanes* l) {
    l->latency = SRAM_READ + 1;
    l->joins = l->counts = 0;
}

static inline void vector_lanes_fold(VectorLanes* l, uint32_t flags) {
    uint32_t latency = join_latency(FLAG(VFOLD_REDUCE, flags), FLAG(VFOLD_DTYPE, flags) == TYPE_FP32);
    l->joined = l->now + FOLD_JOINS + __builtin_ctz(PARTIALS) * (1 + latency);
}

static inline void vector_lanes_vector(VectorLanes* l, uint32_t flags, const Chain* chain) {
    uint32_t out = FLAG(VECTOR_OUT, flags), op = chain ? chain->binary : FLAG(VECTOR_B_OP, flags);
    int fp32 = FLAG(VECTOR_DTYPE, flags) == TYPE_FP32, bias = chain ? chain->add : FLAG(VECTOR_BIAS, flags);
    int scale = chain ? chain->multiply : FLAG(VECTOR_SCALE, flags);
    int needs_float = chain ? becomes_float(chain, out) : has(FLOAT_TYPES, out) || scale;
    int to_float = !fp32 && needs_float, is_float = fp32 || to_float;
    uint32_t first = has(LOGIC_OPS, op) ? FP32_MAXIMUM : adder_latency(op, fp32);
    uint32_t sum = fp32 && bias ? SUM_FLOAT : to_float ? SUM_CONVERT : SUM_INTEGER;
    uint32_t at = SRAM_READ + SOURCE_LATENCY + first + sum + (scale ? FP32_MULTIPLY : 0) + RELU_LATENCY;
    l->joins = l->counts = 0;
    if (chain) {
        int joins = has(FOLDS, chain->reduce);
        int tail = chain->keep | chain->other | chain->function | chain->multiply2 | chain->binary2 | chain->binary2_operand;
        if (tail | joins) at += SELECT_LATENCY + l->functions[chain->function];
        if (chain->multiply2) at += FP32_MULTIPLY;
        if (joins) {
            l->joins = at;
            l->join_latency = join_latency(chain->reduce, is_float);
        } else if (tail) {
            at += adder_latency(chain->binary2, is_float);
        }
        l->counts = chain->keep == KEEP_IOTA_NEGATIVE || chain->reduce == REDUCE_LAST ||
                    chain->late_lanes[0] == LANES_BROADCAST || chain->late_lanes[1] == LANES_BROADCAST;
    }
    int rounds = is_float && out != TYPE_FP32 && out != TYPE_BF16;
    at += 1 + (out == TYPE_BF16 ? FP32_TO_BF16 : rounds ? FP32_TO_INT32 : 0);
    l->latency = at + 1;
}

static inline void vector_lanes_outputs(VectorLanes* l) {
    l->row_arrives = l->due[l->now & LANES_LONGEST - 1] & PART_ARRIVES && l->part == ROW_PARTS - 1;
    l->busy = l->now <= l->joined;
}

// A clock edge. `advance`: a part is read; `row`: it is the last one of its row.
static inline void vector_lanes_tick(VectorLanes* l, int advance, int row) {
    uint8_t* due = &l->due[l->now & LANES_LONGEST - 1];
    if (*due) {
        if (*due & ROW_JOINS) l->joined = l->now + l->join_latency;
        if (*due & PART_ARRIVES) l->part = l->row_arrives ? 0 : l->part + 1;
        *due = 0;
    }
    if (advance) {
        l->due[l->now + l->latency & LANES_LONGEST - 1] |= PART_ARRIVES;
        if (l->joins) l->due[l->now + l->joins & LANES_LONGEST - 1] |= ROW_JOINS;
    }
    l->inside += row - l->row_arrives;
    ++l->now;
}

static inline void vector_lanes_abort(VectorLanes* l) {
    memset(l->due, 0, sizeof l->due);
    l->inside = l->part = 0;
    l->joined = l->now - 1;
}
