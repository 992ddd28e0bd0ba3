// The functions of one operand once more, for all 2^32 operands. The macros in capitals come from the table of functions.
#include <math.h>
#include <stdint.h>

typedef int64_t i64;

enum { EXP2, LOG2, RECIPROCAL, RSQRT, SQRT, TANH, SIGMOID, NORMAL_CDF, FLOOR, ROUND };
#define INFINITE 0x7F800000u
#define NOT_A_NUMBER 0x7FC00000u
#define ONE 0x3F800000u
#define PLACE_MASK ((1 << PLACE_BITS) - 1)

static int top_bit(i64 x) { return x ? 63 - __builtin_clzll(x) : -1; }

static uint32_t integer(uint32_t x, int down) {
    uint32_t sign = x & 0x80000000u, exponent = x >> 23 & 255;
    if (exponent >= 150) return x;
    if (exponent < 127) {
        int one = down ? sign && exponent : exponent == 126 && (x & 0x7FFFFF);
        return sign | (one ? ONE : 0);
    }
    uint32_t unit = 1u << (150 - exponent), rest = x & (unit - 1);
    int up = down ? sign && rest : 2 * rest > unit || (2 * rest == unit && (exponent == 127 || x & unit));
    return x - rest + (up ? unit : 0);
}

static uint32_t special(int code, uint32_t x, int *found) {
    uint32_t sign = x & 0x80000000u, magnitude = x & 0x7FFFFFFF;
    int zero = !magnitude, infinite = magnitude == INFINITE;
    *found = 1;
    if (magnitude > INFINITE) return NOT_A_NUMBER;
    if ((code == LOG2 || code == RSQRT || code == SQRT) && sign && !zero) return NOT_A_NUMBER;
    float f = (union { uint32_t u; float f; }){magnitude}.f;
    switch (code) {
    case EXP2: if (f >= 128) return sign ? 0 : INFINITE; break;
    case LOG2: if (zero) return INFINITE | 0x80000000u; if (infinite) return x; if (x == ONE) return 0; break;
    case RECIPROCAL: case RSQRT: if (zero) return INFINITE | sign; if (infinite) return sign; break;
    case SQRT: if (zero || infinite) return x; break;
    case TANH: if (zero) return x; if (f >= 10) return ONE | sign; break;
    case SIGMOID: case NORMAL_CDF:
        if (zero) return 0x3F000000;
        if (sign && f >= (code == SIGMOID ? 32 : 8)) return 0;
        if (!sign && f >= (code == SIGMOID ? 20 : 6)) return ONE;
    }
    *found = 0;
    return 0;
}

uint32_t function(int code, uint32_t x, const i64 (*rows)[5]) {
    if (!(x & INFINITE)) x &= 0x80000000u;
    int found, sign = x >> 31, exponent = x >> 23 & 255;
    if (code >= FLOOR) return (x & 0x7FFFFFFF) > INFINITE ? NOT_A_NUMBER : integer(x, code == FLOOR);
    uint32_t result = special(code, x, &found);
    if (found) return result;

    i64 fraction = x & 0x7FFFFF, significand = fraction | 1 << 23, place = fraction << 2, w = 0, addend = 0;
    int fine = 0, relative = 0, invert = 0, mirror = 0, segment, out = 127, odd = ~exponent & 1, negative = 0;
    int distance = 133 + 2 * (code == SIGMOID) - exponent;
    i64 number = distance > 63 ? 0 : significand << 8 >> (distance < 0 ? 0 : distance);
    switch (code) {
    case EXP2:
        if (sign) number = ~number;
        place = number & PLACE_MASK;
        out = 127 + (number >> PLACE_BITS);
        segment = place >> OFFSET_BITS;
        break;
    case LOG2: {
        int e = exponent - 127;
        negative = e < 0;
        if ((e == 0 || e == -1) && fraction) {
            i64 d = negative ? (1 << 23) - fraction : fraction;
            place = d << 2, fine = 1, relative = !(place >> (PLACE_BITS - 2));
            w = d << (25 - top_bit(d));
            segment = (place >> (PLACE_BITS - FINE_BITS)) + 128 * negative;
            if (relative) out = 127 - 23 + top_bit(d);
        } else {
            int k = top_bit(negative ? ~e : e);
            if (k < 0) k = 0;
            addend = (i64)(e << (6 - k) & 127) << (P_BITS - 7);
            invert = negative;
            segment = 256 + 32 * k + (place >> OFFSET_BITS);
        }
        break;
    }
    case RECIPROCAL: segment = place >> OFFSET_BITS, out = 254 - exponent, invert = 1, negative = sign; break;
    case RSQRT: segment = (place >> OFFSET_BITS) + 32 * odd, out = 127 - ((exponent - 127) >> 1), invert = 1; break;
    case SQRT: segment = (place >> OFFSET_BITS) + 32 * odd, out = (exponent + 127) >> 1; break;
    default:
        mirror = 1, place = number & PLACE_MASK, segment = number >> OFFSET_BITS;
        if (code == TANH) {
            fine = !(number >> PLACE_BITS), relative = !(number >> (PLACE_BITS - 2)), negative = sign;
            segment = fine ? place >> (PLACE_BITS - FINE_BITS) : segment + 96;
            w = significand << 2, invert = !relative;
            if (relative) out = exponent;
        } else {
            invert = !sign;
            if (sign) segment += code == SIGMOID ? 160 : 192;
        }
    }
    const i64 *c = rows[segment];
    i64 t = (place ^ (mirror ? PLACE_MASK : 0)) & ((1 << (PLACE_BITS - (fine ? FINE_BITS : COARSE_BITS))) - 1);
    i64 s = (fine ? t << (FINE_BITS - COARSE_BITS) : t) >> (OFFSET_BITS - INNER_BITS);
    i64 r = (c[2] << 2) + (c[3] * s >> 13), q = (c[1] << 2) + (r * s >> 16);
    if (!relative) w = t;
    i64 product = (w * q - (w & ((1 << W_LOW) - 1)) * (q & ((1 << Q_LOW) - 1))) >> 25;
    i64 p = ((c[0] ^ addend ^ -invert) + (product ^ -invert)) & ((1 << P_BITS) - 1);
    int large = p >> 28;
    i64 rounded = ((p >> large) + 8) >> 4;  // 24 bits, the leading one included, or the next power of two
    i64 magnitude = ((i64)(out + (int)c[4] - 2 + large) << 23) + rounded;
    if (magnitude < 0x800000) magnitude = 0;
    if (magnitude > INFINITE) magnitude = INFINITE;
    return (uint32_t)magnitude | (uint32_t)negative << 31;
}

void functions(int code, const i64 (*rows)[5], const uint32_t *x, uint32_t *results, i64 count) {
    for (i64 k = 0; k < count; ++k) results[k] = function(code, x[k], rows);
}

static double exact(int code, double x) {
    switch (code) {
    case EXP2: return exp2(x);
    case LOG2: return log2(x);
    case RECIPROCAL: return 1 / x;
    case RSQRT: return 1 / sqrt(x);
    case SQRT: return sqrt(x);
    case TANH: return tanh(x);
    case SIGMOID: return 1 / (1 + exp(-x));
    case NORMAL_CDF: return erfc(-x * 0.70710678118654752440) / 2;
    case FLOOR: return floor(x);
    default: return rint(x);
    }
}

// Operands first to last: the largest error in last places of those above "from", the largest absolute error of the
// others, and how often a result is on the wrong side of the one before. The operands are in the order of magnitudes.
void sweep(int code, const i64 (*rows)[5], i64 first, i64 last, int direction, double from, double *ulps, double *tail,
           i64 *falls) {
    i64 before = 0;
    for (i64 k = first; k <= last; ++k) {
        uint32_t x = (uint32_t)k, bits = function(code, x, rows);
        double operand = (union { uint32_t u; float f; }){x & INFINITE ? x : x & 0x80000000u}.f;
        double result = (union { uint32_t u; float f; }){bits}.f, wanted = exact(code, operand);
        i64 now = bits >> 31 ? -(i64)(bits & 0x7FFFFFFF) : bits;
        if (result == result) {
            if (k > first && (x >> 31 ? before - now : now - before) * direction < 0) ++*falls;
            before = now;
        }
        if (!isfinite(wanted) || !isfinite(result) || fabs(wanted) < 0x1p-126) continue;
        double error = fabs(result - wanted);
        if (operand <= from) {
            if (error > *tail) *tail = error;
        } else if (error > 0) {
            int exponent;
            frexp(wanted, &exponent);
            error = ldexp(error, 24 - exponent);
            if (error > *ulps) *ulps = error;
        }
    }
}
