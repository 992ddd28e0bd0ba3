// Vectors of 4 to 64 lanes (GCC's and Clang's vector extension): types, how they get into and out of memory, whether any
// bit is set, and conversions between lanes of different sizes.
#pragma once
#include "wide.h"

typedef u64 Bits128 __attribute__((vector_size(16)));
typedef u64 Bits256 __attribute__((vector_size(32)));
typedef u64 Bits512 __attribute__((vector_size(64)));

typedef char Char16 __attribute__((vector_size(16)));
typedef short Short8 __attribute__((vector_size(16)));

// GCC 12 converts vectors in halves, some of them lane by lane. With AVX-512 each conversion is one instruction.
#if defined(__AVX512BW__) && defined(__AVX512VL__) && !defined(__clang__)
#define ONE_INSTRUCTION 1
typedef char Char32 __attribute__((vector_size(32)));
typedef short Short16 __attribute__((vector_size(32)));
typedef short Short32 __attribute__((vector_size(64)));
typedef int Int4 __attribute__((vector_size(16)));
typedef int Int8 __attribute__((vector_size(32)));
typedef int Int16 __attribute__((vector_size(64)));
typedef long long Long8 __attribute__((vector_size(64)));
typedef long long Long4 __attribute__((vector_size(32)));
#else
#define ONE_INSTRUCTION 0
#endif

static inline u64 any_128(Bits128 v) { return v[0] | v[1]; }

static inline u64 any_256(Bits256 v) {
#if ONE_INSTRUCTION
    return (u8)__builtin_ia32_ptestmd256((Int8)v, (Int8)v, -1);
#else
    Bits128 half[2];
    memcpy(half, &v, sizeof v);
    return any_128(half[0] | half[1]);
#endif
}

static inline u64 any_512(Bits512 v) {
#if ONE_INSTRUCTION
    return (u16)__builtin_ia32_ptestmd512((Int16)v, (Int16)v, -1);
#else
    Bits256 half[2];
    memcpy(half, &v, sizeof v);
    return any_256(half[0] | half[1]);
#endif
}

// Whether any bit of a vector of so many bytes is set.
static inline u64 any_of(const void* v, unsigned size) {
    if (size <= 8) {
        u64 word = 0;
        memcpy(&word, v, size);
        return word;
    }
    if (size == 16) {
        Bits128 bits;
        memcpy(&bits, v, sizeof bits);
        return any_128(bits);
    }
    if (size == 32) {
        Bits256 bits;
        memcpy(&bits, v, sizeof bits);
        return any_256(bits);
    }
    Bits512 all = {0};
    for (unsigned at = 0; at < size; at += 64) {
        Bits512 bits;
        memcpy(&bits, (const u8*)v + at, sizeof bits);
        all |= bits;
    }
    return any_512(all);
}

#define VECTOR(bits, lanes)                                                              \
    typedef u##bits u##bits##x##lanes __attribute__((vector_size(bits / 8 * lanes)));     \
    typedef s##bits s##bits##x##lanes __attribute__((vector_size(bits / 8 * lanes)));     \
    static inline u##bits##x##lanes load_u##bits##x##lanes(const void* p) {               \
        u##bits##x##lanes v;                                                             \
        memcpy(&v, p, sizeof v);                                                         \
        return v;                                                                        \
    }                                                                                    \
    static inline void store_u##bits##x##lanes(void* p, u##bits##x##lanes v) {            \
        memcpy(p, &v, sizeof v);                                                         \
    }                                                                                    \
    static inline u64 any_u##bits##x##lanes(u##bits##x##lanes v) { return any_of(&v, sizeof v); }

#define VECTORS(lanes) VECTOR(8, lanes) VECTOR(16, lanes) VECTOR(32, lanes) VECTOR(64, lanes)
VECTORS(4)
VECTORS(8)
VECTORS(16)
VECTORS(32)
VECTORS(64)

// Lanes as signed numbers.
#define CONVERT_SIGNED(bits, from_bits, lanes)                                                                      \
    static inline u##bits##x##lanes u##bits##x##lanes##_signed_u##from_bits##x##lanes(u##from_bits##x##lanes v) {  \
        return (u##bits##x##lanes)__builtin_convertvector((s##from_bits##x##lanes)v, s##bits##x##lanes);            \
    }
#define CONVERT(to, from) \
    static inline to to##_of_##from(from v) { return __builtin_convertvector(v, to); }
#ifndef __clang__
static inline Bits128 low_64(const void* v) {
    u64 word;
    memcpy(&word, v, 8);
    return (Bits128){word, 0};
}
// Eight bytes as the low and high bytes of eight lanes. (GCC 12 breaks off when it joins a conversion of half a vector
// with a mask.)
static inline Short8 pairs_64(Bits128 low, Bits128 high) {
    const Char16 order = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    return (Short8)__builtin_shuffle((Char16)low, (Char16)high, order);
}
#define SHORTS pairs_64(low_64(&v), (Bits128){0})
#define SIGNED_SHORTS (pairs_64((Bits128){0}, low_64(&v)) >> 8)
#endif
#if ONE_INSTRUCTION
#define INSTRUCTION(to, from, result) \
    static inline to to##_of_##from(from v) { return (to)(result); }
#define SIGNED(bits, from_bits, lanes, result)                                                                     \
    static inline u##bits##x##lanes u##bits##x##lanes##_signed_u##from_bits##x##lanes(u##from_bits##x##lanes v) { \
        return (u##bits##x##lanes)(result);                                                                        \
    }
#define NARROW(to, from, result)              \
    static inline to to##_of_##from(from v) { \
        const Bits128 whole = (Bits128)(result); \
        to low;                               \
        memcpy(&low, &whole, sizeof low);     \
        return low;                           \
    }
#else
#define INSTRUCTION(to, from, result) CONVERT(to, from)
#define SIGNED(bits, from_bits, lanes, result) CONVERT_SIGNED(bits, from_bits, lanes)
#define NARROW(to, from, result) CONVERT(to, from)
#endif

CONVERT_SIGNED(16, 8, 4)
CONVERT_SIGNED(32, 8, 4)
CONVERT_SIGNED(64, 8, 4)
CONVERT_SIGNED(32, 16, 4)
CONVERT_SIGNED(64, 16, 4)
CONVERT_SIGNED(64, 32, 4)

#define CONVERT_BOTH(small, large) CONVERT(small, large) CONVERT(large, small)
CONVERT_BOTH(u8x4, u16x4)
CONVERT_BOTH(u8x4, u32x4)
CONVERT_BOTH(u8x4, u64x4)
CONVERT_BOTH(u16x4, u32x4)
CONVERT_BOTH(u16x4, u64x4)
CONVERT_BOTH(u32x4, u64x4)

#if ONE_INSTRUCTION || defined(__clang__)
INSTRUCTION(u16x8, u8x8, SHORTS)
INSTRUCTION(u32x8, u8x8, __builtin_ia32_pmovzxwd256(SHORTS))
INSTRUCTION(u64x8, u8x8, __builtin_ia32_pmovzxwq512_mask(SHORTS, (Long8){0}, -1))
INSTRUCTION(u32x8, u16x8, __builtin_ia32_pmovzxwd256((Short8)v))
INSTRUCTION(u64x8, u16x8, __builtin_ia32_pmovzxwq512_mask((Short8)v, (Long8){0}, -1))
INSTRUCTION(u64x8, u32x8, __builtin_ia32_pmovzxdq512_mask((Int8)v, (Long8){0}, -1))
INSTRUCTION(u16x16, u8x16, __builtin_ia32_pmovzxbw256((Char16)v))
INSTRUCTION(u32x16, u8x16, __builtin_ia32_pmovzxbd512_mask((Char16)v, (Int16){0}, -1))
INSTRUCTION(u32x16, u16x16, __builtin_ia32_pmovzxwd512_mask((Short16)v, (Int16){0}, -1))
INSTRUCTION(u16x32, u8x32, __builtin_ia32_pmovzxbw512_mask((Char32)v, (Short32){0}, -1))

SIGNED(16, 8, 8, SIGNED_SHORTS)
SIGNED(32, 8, 8, __builtin_ia32_pmovsxwd256(SIGNED_SHORTS))
SIGNED(64, 8, 8, __builtin_ia32_pmovsxwq512_mask(SIGNED_SHORTS, (Long8){0}, -1))
SIGNED(32, 16, 8, __builtin_ia32_pmovsxwd256((Short8)v))
SIGNED(64, 16, 8, __builtin_ia32_pmovsxwq512_mask((Short8)v, (Long8){0}, -1))
SIGNED(64, 32, 8, __builtin_ia32_pmovsxdq512_mask((Int8)v, (Long8){0}, -1))
SIGNED(16, 8, 16, __builtin_ia32_pmovsxbw256((Char16)v))
SIGNED(32, 8, 16, __builtin_ia32_pmovsxbd512_mask((Char16)v, (Int16){0}, -1))
SIGNED(32, 16, 16, __builtin_ia32_pmovsxwd512_mask((Short16)v, (Int16){0}, -1))
SIGNED(16, 8, 32, __builtin_ia32_pmovsxbw512_mask((Char32)v, (Short32){0}, -1))

NARROW(u8x8, u16x8, __builtin_ia32_pmovwb128_mask((Short8)v, (Char16){0}, -1))
NARROW(u8x8, u32x8, __builtin_ia32_pmovdb256_mask((Int8)v, (Char16){0}, -1))
NARROW(u8x8, u64x8, __builtin_ia32_pmovqb512_mask((Long8)v, (Char16){0}, -1))
INSTRUCTION(u16x8, u32x8, __builtin_ia32_pmovdw256_mask((Int8)v, (Short8){0}, -1))
INSTRUCTION(u16x8, u64x8, __builtin_ia32_pmovqw512_mask((Long8)v, (Short8){0}, -1))
INSTRUCTION(u32x8, u64x8, __builtin_ia32_pmovqd512_mask((Long8)v, (Int8){0}, -1))
INSTRUCTION(u8x16, u16x16, __builtin_ia32_pmovwb256_mask((Short16)v, (Char16){0}, -1))
INSTRUCTION(u8x16, u32x16, __builtin_ia32_pmovdb512_mask((Int16)v, (Char16){0}, -1))
INSTRUCTION(u16x16, u32x16, __builtin_ia32_pmovdw512_mask((Int16)v, (Short16){0}, -1))
INSTRUCTION(u8x32, u16x32, __builtin_ia32_pmovwb512_mask((Short32)v, (Char32){0}, -1))
#else
#include "steps.h"
#endif

#if ONE_INSTRUCTION || defined(__clang__)
#define MASK(vector, bytes, select) ((vector)(vector##_of_##bytes(select) != 0))
#else
#define MASK(vector, bytes, select) vector##_mask_##bytes(select)
#endif
// One of two vectors, lane by lane: `a` where a byte is not zero.
#define CHOOSE(vector, bytes)                                                \
    static inline vector choose_##vector(bytes select, vector a, vector b) { \
        const vector mask = MASK(vector, bytes, select);                     \
        return (mask & a) | (~mask & b);                                     \
    }
#if ONE_INSTRUCTION
typedef char Char64 __attribute__((vector_size(64)));
#define SELECTED(vector, bytes, test, blend)                                 \
    static inline vector choose_##vector(bytes select, vector a, vector b) { \
        const u64 lanes = test;                                              \
        return (vector)blend;                                                \
    }
#define TEST_64 (u8)__builtin_ia32_ptestmb128((Char16)low_64(&select), (Char16)low_64(&select), -1)
#define TEST_128 (u16)__builtin_ia32_ptestmb128((Char16)select, (Char16)select, -1)
#define TEST_256 (u32)__builtin_ia32_ptestmb256((Char32)select, (Char32)select, -1)
#define TEST_512 __builtin_ia32_ptestmb512((Char64)select, (Char64)select, -1)
#else
#define SELECTED(vector, bytes, test, blend) CHOOSE(vector, bytes)
#endif
#define u8x4_of_u8x4
#define u8x8_of_u8x8
#define u8x16_of_u8x16
#define u8x32_of_u8x32
#define u8x64_of_u8x64

SELECTED(u16x8, u8x8, TEST_64, __builtin_ia32_blendmw_128_mask((Short8)b, (Short8)a, lanes))
SELECTED(u32x8, u8x8, TEST_64, __builtin_ia32_blendmd_256_mask((Int8)b, (Int8)a, lanes))
SELECTED(u64x8, u8x8, TEST_64, __builtin_ia32_blendmq_512_mask((Long8)b, (Long8)a, lanes))
SELECTED(u8x16, u8x16, TEST_128, __builtin_ia32_blendmb_128_mask((Char16)b, (Char16)a, lanes))
SELECTED(u16x16, u8x16, TEST_128, __builtin_ia32_blendmw_256_mask((Short16)b, (Short16)a, lanes))
SELECTED(u32x16, u8x16, TEST_128, __builtin_ia32_blendmd_512_mask((Int16)b, (Int16)a, lanes))
SELECTED(u8x32, u8x32, TEST_256, __builtin_ia32_blendmb_256_mask((Char32)b, (Char32)a, lanes))
SELECTED(u16x32, u8x32, TEST_256, __builtin_ia32_blendmw_512_mask((Short32)b, (Short32)a, lanes))
SELECTED(u8x64, u8x64, TEST_512, __builtin_ia32_blendmb_512_mask((Char64)b, (Char64)a, lanes))
CHOOSE(u8x8, u8x8)
CHOOSE(u8x4, u8x4)
CHOOSE(u16x4, u8x4)
CHOOSE(u32x4, u8x4)
CHOOSE(u64x4, u8x4)
