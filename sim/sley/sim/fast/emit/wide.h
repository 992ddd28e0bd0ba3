// Numbers wider than a machine word: arrays of 64-bit words, the least significant first, unused bits zero.
#pragma once
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

// A byte of the state. Loops address arrays like this because they may read past an end, where other arrays are.
#define AT(offset) ((u8*)s + (offset))

// For functions of numbers: GCC would keep some in mask and vector registers, where they are not at hand.
#if defined(__x86_64__) && !defined(__clang__)
#define PLAIN __attribute__((target("general-regs-only")))
#else
#define PLAIN
#endif

#define WORDS(width) (((width) + 63) / 64)

static inline u64 w_mask(unsigned width) { return width >= 64 ? ~(u64)0 : ((u64)1 << width) - 1; }

static inline void w_trim(u64* v, unsigned width) {
    if (width % 64) v[width / 64] &= w_mask(width % 64);
}

// Up to 64 bits from any position; zeros outside.
static inline u64 w_pick(const u64* v, unsigned size, u64 low) {
    if (low >= size) return 0;
    const unsigned word = (unsigned)(low / 64), bit = low % 64;
    u64 result = v[word] >> bit;
    if (bit && word + 1 < WORDS(size)) result |= v[word + 1] << (64 - bit);
    return result;
}

// For each amount, a multiple of 8 bits, the byte that starts there; zero outside.
static inline void w_bytes(u8* bytes, const u64* v, unsigned size, const u16* amounts, unsigned count) {
#if defined(__AVX512VBMI__) && !defined(__clang__)
    if (size == 256 && count <= 32) {
        typedef u8 Bytes __attribute__((vector_size(32)));
        typedef u16 Amounts __attribute__((vector_size(64)));
        Bytes all;
        Amounts at = {0};
        memcpy(&all, v, sizeof all);
        memcpy(&at, amounts, count * 2);
        const Amounts inside = (Amounts)(at < (u16)size);
        all = __builtin_shuffle(all, __builtin_convertvector(at >> 3, Bytes)) & __builtin_convertvector(inside, Bytes);
        memcpy(bytes, &all, count);
        return;
    }
#endif
    for (unsigned i = 0; i < count; i++) bytes[i] = amounts[i] < size ? ((const u8*)v)[amounts[i] / 8] : 0;
}

// Adds bits to a number that has zeros there.
static inline void w_put(u64* v, unsigned low, unsigned width, u64 bits) {
    const unsigned word = low / 64, bit = low % 64;
    v[word] |= bits << bit;
    if (bit && bit + width > 64) v[word + 1] |= bits >> (64 - bit);
}

static inline void w_put_wide(u64* v, unsigned low, unsigned width, const u64* bits) {
    for (unsigned at = 0; at < width; at += 64)
        w_put(v, low + at, width - at < 64 ? width - at : 64, bits[at / 64]);
}

static inline void w_slice(u64* v, unsigned width, const u64* a, unsigned size, u64 low) {
    for (unsigned word = 0; word < WORDS(width); word++) v[word] = w_pick(a, size, low + 64 * word);
    w_trim(v, width);
}

// From `size` bits to `width`, the sign repeated.
static inline void w_sext(u64* v, unsigned width, const u64* a, unsigned size) {
    const u64 sign = a[(size - 1) / 64] >> (size - 1) % 64 & 1 ? ~(u64)0 : 0;
    for (unsigned word = 0; word < WORDS(width); word++) v[word] = word < WORDS(size) ? a[word] : sign;
    if (size % 64) v[size / 64] |= sign & ~w_mask(size % 64);
    w_trim(v, width);
}

static inline void w_not(u64* v, unsigned width, const u64* a) {
    for (unsigned word = 0; word < WORDS(width); word++) v[word] = ~a[word];
    w_trim(v, width);
}
static inline void w_and(u64* v, unsigned width, const u64* a, const u64* b) {
    for (unsigned word = 0; word < WORDS(width); word++) v[word] = a[word] & b[word];
}
static inline void w_or(u64* v, unsigned width, const u64* a, const u64* b) {
    for (unsigned word = 0; word < WORDS(width); word++) v[word] = a[word] | b[word];
}
static inline void w_xor(u64* v, unsigned width, const u64* a, const u64* b) {
    for (unsigned word = 0; word < WORDS(width); word++) v[word] = a[word] ^ b[word];
}
static inline void w_add(u64* v, unsigned width, const u64* a, const u64* b) {
    u64 carry = 0;
    for (unsigned word = 0; word < WORDS(width); word++) {
        const u64 sum = a[word] + b[word], result = sum + carry;
        carry = (sum < a[word]) | (result < sum);
        v[word] = result;
    }
    w_trim(v, width);
}
static inline void w_sub(u64* v, unsigned width, const u64* a, const u64* b) {
    u64 borrow = 0;
    for (unsigned word = 0; word < WORDS(width); word++) {
        const u64 difference = a[word] - b[word], result = difference - borrow;
        borrow = (a[word] < b[word]) | (difference < borrow);
        v[word] = result;
    }
    w_trim(v, width);
}
static inline void w_mul(u64* v, unsigned width, const u64* a, const u64* b) {
    const unsigned count = WORDS(width);
    for (unsigned word = 0; word < count; word++) v[word] = 0;
    for (unsigned i = 0; i < count; i++) {
        u64 carry = 0;
        for (unsigned j = 0; i + j < count; j++) {
            const unsigned __int128 sum = (unsigned __int128)a[i] * b[j] + v[i + j] + carry;
            v[i + j] = (u64)sum;
            carry = (u64)(sum >> 64);
        }
    }
    w_trim(v, width);
}
static inline void w_shr(u64* v, unsigned width, const u64* a, u64 amount) { w_slice(v, width, a, width, amount); }
static inline void w_shl(u64* v, unsigned width, const u64* a, u64 amount) {
    const unsigned count = WORDS(width);
    const u64 shift = amount / 64;
    const unsigned bit = amount % 64;
    for (unsigned word = count; word-- > 0;) {
        u64 result = 0;
        if (word >= shift) {
            result = a[word - shift] << bit;
            if (bit && word > shift) result |= a[word - shift - 1] >> (64 - bit);
        }
        v[word] = result;
    }
    w_trim(v, width);
}
static inline unsigned w_bit(const u64* a, unsigned bit) { return a[bit / 64] >> bit % 64 & 1; }
static inline void w_sar(u64* v, unsigned width, const u64* a, u64 amount) {
    const unsigned negative = w_bit(a, width - 1);
    const unsigned keep = amount >= width ? 0 : width - (unsigned)amount;
    w_shr(v, width, a, amount);
    if (!negative) return;
    for (unsigned word = 0; word < WORDS(width); word++) {
        if (keep <= 64 * word)
            v[word] = ~(u64)0;
        else if (keep < 64 * word + 64)
            v[word] |= ~w_mask(keep - 64 * word);
    }
    w_trim(v, width);
}
static inline unsigned w_eq(const u64* a, const u64* b, unsigned width) {
    u64 difference = 0;
    for (unsigned word = 0; word < WORDS(width); word++) difference |= a[word] ^ b[word];
    return !difference;
}
static inline unsigned w_ltu(const u64* a, const u64* b, unsigned width) {
    for (unsigned word = WORDS(width); word-- > 0;)
        if (a[word] != b[word]) return a[word] < b[word];
    return 0;
}
static inline unsigned w_lts(const u64* a, const u64* b, unsigned width) {
    const unsigned sa = w_bit(a, width - 1), sb = w_bit(b, width - 1);
    return sa != sb ? sa : w_ltu(a, b, width);
}
static inline unsigned w_parity(const u64* a, unsigned width) {
    u64 all = 0;
    for (unsigned word = 0; word < WORDS(width); word++) all ^= a[word];
    return (unsigned)__builtin_parityll(all);
}

// Quotient and remainder of unsigned numbers, bit by bit; both 0 for a divisor of 0.
static inline void w_divide(u64* quotient, u64* remainder, unsigned width, const u64* a, const u64* b) {
    const unsigned count = WORDS(width);
    u64 nonzero = 0;
    for (unsigned word = 0; word < count; word++) {
        quotient[word] = remainder[word] = 0;
        nonzero |= b[word];
    }
    if (!nonzero) return;
    for (unsigned bit = width; bit-- > 0;) {
        u64 carry = w_bit(a, bit);
        for (unsigned word = 0; word < count; word++) {
            const u64 next = remainder[word] >> 63;
            remainder[word] = remainder[word] << 1 | carry;
            carry = next;
        }
        // A carry out of the top word means that the remainder is larger than any divisor.
        u64 less = 0;
        if (!carry)
            for (unsigned word = count; word-- > 0;)
                if (remainder[word] != b[word]) {
                    less = remainder[word] < b[word];
                    break;
                }
        if (less) continue;
        u64 borrow = 0;
        for (unsigned word = 0; word < count; word++) {
            const u64 difference = remainder[word] - b[word], result = difference - borrow;
            borrow = (remainder[word] < b[word]) | (difference < borrow);
            remainder[word] = result;
        }
        quotient[bit / 64] |= (u64)1 << bit % 64;
    }
}
static inline void w_divu(u64* v, unsigned width, const u64* a, const u64* b) {
    u64 rest[WORDS(width)];
    w_divide(v, rest, width, a, b);
}
static inline void w_modu(u64* v, unsigned width, const u64* a, const u64* b) {
    u64 quotient[WORDS(width)];
    w_divide(quotient, v, width, a, b);
}
// Floor division: the quotient is rounded down, the remainder has the sign of the divisor.
static inline void w_floor(u64* quotient, u64* rest, unsigned width, const u64* a, const u64* b) {
    const unsigned count = WORDS(width), na = w_bit(a, width - 1), nb = w_bit(b, width - 1);
    u64 zero[WORDS(width)], pa[WORDS(width)], pb[WORDS(width)];
    u64 nonzero = 0;
    memset(zero, 0, sizeof zero);
    if (na) w_sub(pa, width, zero, a); else memcpy(pa, a, sizeof pa);
    if (nb) w_sub(pb, width, zero, b); else memcpy(pb, b, sizeof pb);
    w_divide(quotient, rest, width, pa, pb);
    for (unsigned word = 0; word < count; word++) nonzero |= rest[word];
    if (na != nb) {
        w_sub(quotient, width, zero, quotient);
        if (nonzero) {
            u64 one[WORDS(width)];
            memset(one, 0, sizeof one);
            one[0] = 1;
            w_sub(quotient, width, quotient, one);
            w_sub(rest, width, pb, rest);
        }
    }
    if (nb) w_sub(rest, width, zero, rest);
}
static inline void w_divs(u64* v, unsigned width, const u64* a, const u64* b) {
    u64 rest[WORDS(width)];
    w_floor(v, rest, width, a, b);
    if (w_eq(b, memset(rest, 0, sizeof rest), width)) memset(v, 0, sizeof rest);
}
static inline void w_mods(u64* v, unsigned width, const u64* a, const u64* b) {
    u64 quotient[WORDS(width)];
    w_floor(quotient, v, width, a, b);
    if (w_eq(b, memset(quotient, 0, sizeof quotient), width)) memset(v, 0, sizeof quotient);
}

// The same for numbers of at most a word.
static inline u64 n_divu(u64 a, u64 b) { return b ? a / b : 0; }
static inline u64 n_modu(u64 a, u64 b) { return b ? a % b : 0; }
static inline s64 n_sext(u64 a, unsigned width) { return (s64)(a << (64 - width)) >> (64 - width); }
static inline u64 n_divs(u64 a, u64 b, unsigned width) {
    const s64 x = n_sext(a, width), y = n_sext(b, width);
    if (!y) return 0;
    if (y == -1) return -(u64)x;
    const s64 q = x / y;
    return (u64)(x % y && (x < 0) != (y < 0) ? q - 1 : q);
}
static inline u64 n_mods(u64 a, u64 b, unsigned width) {
    const s64 x = n_sext(a, width), y = n_sext(b, width);
    if (!y || y == -1) return 0;
    const s64 r = x % y;
    return (u64)(r && (r < 0) != (y < 0) ? r + y : r);
}
