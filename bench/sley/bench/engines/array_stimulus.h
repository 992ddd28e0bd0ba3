// Random inputs for a systolic array and a digest of its outputs, the same on every compiler. The host that includes
// this file defines Model, model_create, model_destroy, and what happens in a cycle:
//   model_drive(model, activations, swap, weights, valid, row)       inputs; lanes as bytes; all others are 0
//   model_settle(model)                                              outputs follow
//   model_sums(model)                                                their bytes
//   model_clock(model)                                               the clock's edge
// ARRAY: array rows. LANE_BYTES, SUM_BYTES: of a row of lanes and of a row of sums.
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define API extern "C" __attribute__((visibility("default")))
#else
#define API __attribute__((visibility("default")))
#endif

#define WORDS_OF(bytes) (((bytes) + 7) / 8)

// Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003.
static inline uint64_t random_word(uint64_t* x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

// A digest of the sums of so many cycles from the initial state on. Without `model` it is that of the inputs: the share
// of the stimulus itself.
static uint64_t run(Model* model, uint64_t cycles) {
    uint64_t activations[WORDS_OF(LANE_BYTES)], weights[WORDS_OF(LANE_BYTES)], sums[WORDS_OF(SUM_BYTES)];
    uint64_t x = 88172645463325252u, digest = 0;
    memset(sums, 0, sizeof sums);
    for (; cycles; cycles--) {
        for (int i = 0; i < WORDS_OF(LANE_BYTES); i++) activations[i] = random_word(&x);
        for (int i = 0; i < WORDS_OF(LANE_BYTES); i++) weights[i] = random_word(&x);
        const uint64_t control = random_word(&x);
        if (model) {
            model_drive(model, activations, !(control & 0xF0), weights, control & 1, (control >> 8) % ARRAY);
            model_settle(model);
            memcpy(sums, model_sums(model), SUM_BYTES);
            model_clock(model);
        }
        for (int i = 0; i < WORDS_OF(SUM_BYTES); i++) digest = (digest ^ sums[i] ^ control) * 0x9E3779B97F4A7C15u;
    }
    return digest;
}

API uint64_t bench_run(uint64_t cycles) {
    Model* const model = model_create();
    const uint64_t digest = run(model, cycles);
    model_destroy(model);
    return digest;
}

API uint64_t bench_stimulus(uint64_t cycles) { return run(0, cycles); }
