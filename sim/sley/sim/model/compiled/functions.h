// The functions of one operand, as sley.sim.golden.functions defines them: a segment of a table, and its polynomial.
#pragma once

#include "abi.h"
#include "float32.h"

#define PLACE_MASK ((1 << PLACE_BITS) - 1)

static int top_bit(int64_t x) { return x ? 63 - __builtin_clzll(x) : -1; }

static uint32_t integer(uint32_t x, int down) {
    uint32_t sign = x & SIGN, exponent = x >> 23 & 255;
    if (exponent >= 150) return x;
    if (exponent < 127) {
        int one = down ? sign && exponent : exponent == 126 && (x & 0x7FFFFF);
        return sign | (one ? ONE : 0);
    }
    uint32_t unit = 1u << (150 - exponent), rest = x & (unit - 1);
    int up = down ? sign && rest : 2 * rest > unit || (2 * rest == unit && (exponent == 127 || x & unit));
    return x - rest + (up ? unit : 0);
}

static uint32_t special(int code, uint32_t x, int* found) {
    uint32_t sign = x & SIGN, magnitude = x & MAGNITUDE;
    int zero = !magnitude, infinite = magnitude == INFINITE;
    *found = 1;
    if (magnitude > INFINITE) return NOT_A_NUMBER;
    if ((code == FUNCTION_LOG2 || code == FUNCTION_RSQRT || code == FUNCTION_SQRT) && sign && !zero) return NOT_A_NUMBER;
    float f = as_float(magnitude);
    switch (code) {
    case FUNCTION_EXP2: if (f >= 128) return sign ? 0 : INFINITE; break;
    case FUNCTION_LOG2: if (zero) return INFINITE | SIGN; if (infinite) return x; if (x == ONE) return 0; break;
    case FUNCTION_RECIPROCAL: case FUNCTION_RSQRT: if (zero) return INFINITE | sign; if (infinite) return sign; break;
    case FUNCTION_SQRT: if (zero || infinite) return x; break;
    case FUNCTION_TANH: if (zero) return x; if (f >= 10) return ONE | sign; break;
    case FUNCTION_SIGMOID: case FUNCTION_NORMAL_CDF:
        if (zero) return 0x3F000000;
        if (sign && f >= (code == FUNCTION_SIGMOID ? 32 : 8)) return 0;
        if (!sign && f >= (code == FUNCTION_SIGMOID ? 20 : 6)) return ONE;
    }
    *found = 0;
    return 0;
}

static uint32_t function(int code, uint32_t x) {
    x = flush(x);
    int found, sign = x >> 31, exponent = x >> 23 & 255;
    if (code >= FUNCTION_FLOOR) return is_nan(x) ? NOT_A_NUMBER : integer(x, code == FUNCTION_FLOOR);
    uint32_t result = special(code, x, &found);
    if (found) return result;

    int64_t fraction = x & 0x7FFFFF, significand = fraction | 1 << 23, place = fraction << 2, w = 0, addend = 0;
    int fine = 0, relative = 0, invert = 0, mirror = 0, segment, out = 127, odd = ~exponent & 1, negative = 0;
    int distance = 133 + 2 * (code == FUNCTION_SIGMOID) - exponent;
    int64_t number = distance > 63 ? 0 : significand << 8 >> (distance < 0 ? 0 : distance);
    switch (code) {
    case FUNCTION_EXP2:
        if (sign) number = ~number;
        place = number & PLACE_MASK;
        out = 127 + (number >> PLACE_BITS);
        segment = place >> OFFSET_BITS;
        break;
    case FUNCTION_LOG2: {
        int e = exponent - 127;
        negative = e < 0;
        if ((e == 0 || e == -1) && fraction) {
            int64_t d = negative ? (1 << 23) - fraction : fraction;
            place = d << 2, fine = 1, relative = !(place >> (PLACE_BITS - 2));
            w = d << (25 - top_bit(d));
            segment = (place >> (PLACE_BITS - FINE_BITS)) + 128 * negative;
            if (relative) out = 127 - 23 + top_bit(d);
        } else {
            int k = top_bit(negative ? ~e : e);
            if (k < 0) k = 0;
            addend = (int64_t)(e << (6 - k) & 127) << (P_BITS - 7);
            invert = negative;
            segment = 256 + 32 * k + (place >> OFFSET_BITS);
        }
        break;
    }
    case FUNCTION_RECIPROCAL: segment = place >> OFFSET_BITS, out = 254 - exponent, invert = 1, negative = sign; break;
    case FUNCTION_RSQRT: segment = (place >> OFFSET_BITS) + 32 * odd, out = 127 - ((exponent - 127) >> 1), invert = 1; break;
    case FUNCTION_SQRT: segment = (place >> OFFSET_BITS) + 32 * odd, out = (exponent + 127) >> 1; break;
    default:
        mirror = 1, place = number & PLACE_MASK, segment = number >> OFFSET_BITS;
        if (code == FUNCTION_TANH) {
            fine = !(number >> PLACE_BITS), relative = !(number >> (PLACE_BITS - 2)), negative = sign;
            segment = fine ? place >> (PLACE_BITS - FINE_BITS) : segment + 96;
            w = significand << 2, invert = !relative;
            if (relative) out = exponent;
        } else {
            invert = !sign;
            if (sign) segment += code == FUNCTION_SIGMOID ? 160 : 192;
        }
    }
    const int64_t* c = segments[code][segment];
    int64_t t = (place ^ (mirror ? PLACE_MASK : 0)) & ((1 << (PLACE_BITS - (fine ? FINE_BITS : COARSE_BITS))) - 1);
    int64_t s = (fine ? t << (FINE_BITS - COARSE_BITS) : t) >> (OFFSET_BITS - INNER_BITS);
    int64_t r = (c[2] << 2) + (c[3] * s >> 13), q = (c[1] << 2) + (r * s >> 16);
    if (!relative) w = t;
    int64_t product = (w * q - (w & ((1 << W_LOW) - 1)) * (q & ((1 << Q_LOW) - 1))) >> 25;
    int64_t p = ((c[0] ^ addend ^ -invert) + (product ^ -invert)) & ((1 << P_BITS) - 1);
    int large = p >> 28;
    int64_t rounded = ((p >> large) + 8) >> 4;  // 24 bits, the leading one included, or the next power of two
    int64_t magnitude = ((int64_t)(out + (int)c[4] - 2 + large) << 23) + rounded;
    if (magnitude < 0x800000) magnitude = 0;
    if (magnitude > INFINITE) magnitude = INFINITE;
    return (uint32_t)magnitude | (uint32_t)negative << 31;
}
