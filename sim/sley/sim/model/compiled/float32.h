// Arithmetic of sley.sim.golden.float32 on bit patterns: every result is flushed, and every NaN is the same.
#pragma once

#include <stdint.h>
#include <string.h>

#define SIGN 0x80000000u
#define MAGNITUDE 0x7FFFFFFFu
#define INFINITE 0x7F800000u
#define NOT_A_NUMBER 0x7FC00000u
#define ONE 0x3F800000u

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline uint32_t flush(uint32_t x) { return x & (x & INFINITE ? ~0u : SIGN); }

static inline int is_nan(uint32_t x) { return (x & MAGNITUDE) > INFINITE; }

static inline uint32_t canonical(uint32_t x) { return is_nan(x) ? NOT_A_NUMBER : flush(x); }

static inline uint32_t f_add(uint32_t a, uint32_t b) {
    return canonical(as_bits(as_float(flush(a)) + as_float(flush(b))));
}

static inline uint32_t f_multiply(uint32_t a, uint32_t b) {
    return canonical(as_bits(as_float(flush(a)) * as_float(flush(b))));
}

// Unsigned keys in the order of the numbers, -0 below +0.
static inline uint32_t order(uint32_t x) { return x & SIGN ? ~x : x | SIGN; }

static inline uint32_t f_maximum(uint32_t a, uint32_t b) {
    a = flush(a), b = flush(b);
    uint32_t larger = order(a) >= order(b) ? a : b;
    return is_nan(a) | is_nan(b) ? NOT_A_NUMBER : larger;
}

static inline uint32_t f_minimum(uint32_t a, uint32_t b) {
    uint32_t larger = f_maximum(a ^ SIGN, b ^ SIGN);
    return is_nan(larger) ? larger : larger ^ SIGN;
}

static inline uint32_t from_int32(int32_t x) { return as_bits((float)x); }

static inline int32_t to_int32(uint32_t x) {
    double value = as_float(is_nan(x) ? 0 : flush(x));
    value = value > 2147483647.0 ? 2147483647.0 : value < -2147483648.0 ? -2147483648.0 : value;
    double rounded = value + 6755399441055744.0;  // 1.5 * 2^52: what is behind the point is rounded, half to even
    int64_t bits;
    memcpy(&bits, &rounded, 8);
    return (int32_t)bits;
}

static inline int32_t clip(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }

static inline uint32_t from_bf16(uint16_t x) { return flush((uint32_t)x << 16); }

static inline uint16_t to_bf16(uint32_t x) {
    x = canonical(x);
    return (uint16_t)((x + 0x7FFF + (x >> 16 & 1)) >> 16);
}

static inline uint32_t from_fp16(uint16_t x) {
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = x & 0x7FFF;
    uint32_t small = as_bits((float)magnitude * 0x1p-24f), normal = (magnitude << 13) + (112u << 23);
    return sign | (magnitude > 0x7BFF ? INFINITE | (magnitude & 0x3FF) << 13 : magnitude < 0x400 ? small : normal);
}

static inline uint16_t to_fp16(uint32_t x) {
    x = flush(x);
    uint32_t sign = x >> 16 & 0x8000, magnitude = x & MAGNITUDE;
    uint32_t small = as_bits(as_float(magnitude) + 0.5f) - 0x3F000000u;  // in units of 2^-24
    uint32_t normal = magnitude - (112u << 23);
    normal = (normal + 0xFFF + (normal >> 13 & 1)) >> 13;
    uint32_t result = magnitude >= 0x47800000u ? 0x7C00 : magnitude < 0x38800000u ? small : normal;
    return (uint16_t)(is_nan(x) ? 0x7E00 : sign | result);
}
