// Conversions between lanes of different sizes for GCC without AVX-512, which makes lane by lane what no instruction of
// the processor does at once: here in steps to twice or half the size, and in pieces that fill a register.
#pragma once

#ifdef __AVX2__
#define REGISTER 32
#else
#define REGISTER 16
#endif

#define STEP(to, by, from) \
    static inline to to##_of_##from(from v) { return to##_of_##by(by##_of_##from(v)); }
#define STEP_SIGNED(bits, by_bits, from_bits, lanes)                                                                 \
    static inline u##bits##x##lanes u##bits##x##lanes##_signed_u##from_bits##x##lanes(u##from_bits##x##lanes v) {   \
        return u##bits##x##lanes##_signed_u##by_bits##x##lanes(u##by_bits##x##lanes##_signed_u##from_bits##x##lanes(v)); \
    }
#define HALVES_SIGNED(bits, from_bits, lanes, half)                                                                \
    static inline u##bits##x##lanes u##bits##x##lanes##_signed_u##from_bits##x##lanes(u##from_bits##x##lanes v) { \
        u##from_bits##x##half from[2];                                                                            \
        u##bits##x##half to[2];                                                                                   \
        u##bits##x##lanes result;                                                                                 \
        memcpy(from, &v, sizeof v);                                                                               \
        for (unsigned i = 0; i < 2; i++)                                                                          \
            to[i] = (u##bits##x##half)__builtin_convertvector((s##from_bits##x##half)from[i], s##bits##x##half);  \
        memcpy(&result, to, sizeof result);                                                                       \
        return result;                                                                                            \
    }
#define SHIFTED_SIGNED(bits, from_bits, lanes)                                                                       \
    static inline u##bits##x##lanes u##bits##x##lanes##_signed_u##from_bits##x##lanes(u##from_bits##x##lanes v) {   \
        return (u##bits##x##lanes)((s##bits##x##lanes)(u##bits##x##lanes##_of_u##from_bits##x##lanes(v)             \
                                                       << (bits - from_bits)) >> (bits - from_bits));              \
    }

static inline u16x8 u16x8_of_u8x8(u8x8 v) { return (u16x8)SHORTS; }
CONVERT(u32x8, u16x8)
CONVERT(u64x8, u32x8)
STEP(u32x8, u16x8, u8x8)
STEP(u64x8, u32x8, u8x8)
STEP(u64x8, u32x8, u16x8)
CONVERT(u16x16, u8x16)
CONVERT(u32x16, u16x16)
STEP(u32x16, u16x16, u8x16)
CONVERT(u16x32, u8x32)

static inline u16x8 u16x8_signed_u8x8(u8x8 v) { return (u16x8)SIGNED_SHORTS; }
CONVERT_SIGNED(32, 16, 8)
HALVES_SIGNED(64, 32, 8, 4)
STEP_SIGNED(32, 16, 8, 8)
STEP_SIGNED(64, 32, 8, 8)
STEP_SIGNED(64, 32, 16, 8)
CONVERT_SIGNED(16, 8, 16)
SHIFTED_SIGNED(32, 16, 16)
STEP_SIGNED(32, 16, 8, 16)
SHIFTED_SIGNED(16, 8, 32)

CONVERT(u8x8, u16x8)
CONVERT(u16x8, u32x8)
CONVERT(u32x8, u64x8)
STEP(u8x8, u16x8, u32x8)
STEP(u16x8, u32x8, u64x8)
STEP(u8x8, u16x8, u64x8)
CONVERT(u8x16, u16x16)
CONVERT(u16x16, u32x16)
STEP(u8x16, u16x16, u32x16)
CONVERT(u8x32, u16x32)

// Bytes of all ones where a byte is not zero, and as lanes of other sizes.
typedef u8 Piece __attribute__((vector_size(REGISTER)));
#define BYTE_MASK(bytes)                                      \
    static inline bytes bytes##_mask_##bytes(bytes select) {  \
        Piece pieces[(sizeof select + REGISTER - 1) / REGISTER] = {0}; \
        memcpy(pieces, &select, sizeof select);               \
        for (unsigned i = 0; i < sizeof pieces / REGISTER; i++) \
            pieces[i] = (Piece)(pieces[i] != 0);              \
        memcpy(&select, pieces, sizeof select);               \
        return select;                                        \
    }
#define LANE_MASK(vector, bytes)                              \
    static inline vector vector##_mask_##bytes(bytes select) { return vector##_signed_##bytes(bytes##_mask_##bytes(select)); }
#define SMALL_MASK(bytes) static inline bytes bytes##_mask_##bytes(bytes select) { return (bytes)(select != 0); }
SMALL_MASK(u8x4)
SMALL_MASK(u8x8)
SMALL_MASK(u8x16)
BYTE_MASK(u8x32)
BYTE_MASK(u8x64)
LANE_MASK(u16x8, u8x8)
LANE_MASK(u32x8, u8x8)
LANE_MASK(u64x8, u8x8)
LANE_MASK(u16x16, u8x16)
LANE_MASK(u32x16, u8x16)
LANE_MASK(u16x32, u8x32)
LANE_MASK(u16x4, u8x4)
LANE_MASK(u32x4, u8x4)
LANE_MASK(u64x4, u8x4)
