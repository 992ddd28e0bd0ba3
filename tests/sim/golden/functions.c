// The functions of the compiled model, for all 2^32 operands.
#include <math.h>

#include "functions.h"

typedef int64_t i64;

void functions(int code, const uint32_t* x, uint32_t* results, i64 count) {
    for (i64 k = 0; k < count; ++k) results[k] = function(code, x[k]);
}

static double exact(int code, double x) {
    switch (code) {
    case FUNCTION_EXP2: return exp2(x);
    case FUNCTION_LOG2: return log2(x);
    case FUNCTION_RECIPROCAL: return 1 / x;
    case FUNCTION_RSQRT: return 1 / sqrt(x);
    case FUNCTION_SQRT: return sqrt(x);
    case FUNCTION_TANH: return tanh(x);
    case FUNCTION_SIGMOID: return 1 / (1 + exp(-x));
    case FUNCTION_NORMAL_CDF: return erfc(-x * 0.70710678118654752440) / 2;
    case FUNCTION_FLOOR: return floor(x);
    default: return rint(x);
    }
}

// Operands first to last: the largest error in last places of those above "from", the largest absolute error of the
// others, and how often a result is on the wrong side of the one before. The operands are in the order of magnitudes.
void sweep(int code, i64 first, i64 last, int direction, double from, double* ulps, double* tail,
           i64* falls) {
    i64 before = 0;
    for (i64 k = first; k <= last; ++k) {
        uint32_t x = (uint32_t)k, bits = function(code, x);
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
