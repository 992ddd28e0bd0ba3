// What the sequencer's scalar instructions compute.
#pragma once

#include "abi.h"

static uint32_t alu(uint32_t op, uint32_t a, uint32_t b) {
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_MIN: return (int32_t)a < (int32_t)b ? a : b;
    case OP_MAX: return (int32_t)a > (int32_t)b ? a : b;
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    case OP_SHL: return a << (b & 31);
    case OP_SHR: return a >> (b & 31);
    default: return (uint32_t)((int32_t)a >> (b & 31));
    }
}

static int is_taken(uint32_t op, uint32_t a, uint32_t b) {
    switch (op) {
    case OP_BEQ: return a == b;
    case OP_BNE: return a != b;
    case OP_BLT: return (int32_t)a < (int32_t)b;
    default: return (int32_t)a >= (int32_t)b;
    }
}
