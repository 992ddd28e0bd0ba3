// The chip of the fast engine, and how long each of its fragments takes. FRAGMENTS: names of their functions.
#include <time.h>

#include "fast_host.c"

static void (*const functions[])(S*) = {FRAGMENTS};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Nanoseconds of a run of each fragment in the present state, from a copy of which it runs `repeats` times in a row; the
// best of `rounds`. Run again, a fragment of an edge goes on from its own results. 0 without memory.
API int sley_profile(const Sim* sim, u32 repeats, u32 rounds, double* nanoseconds) {
    S* const copy = (S*)aligned_alloc(64, (sizeof(S) + 63) / 64 * 64);
    if (!copy) return 0;
    for (u32 f = 0; f < sizeof functions / sizeof *functions; f++) {
        memcpy(copy, &sim->instance.state, sizeof(S));
        double best = 0;
        for (u32 round = 0; round <= rounds; round++) {
            const double start = seconds();
            for (u32 i = 0; i < repeats; i++) functions[f](copy);
            const double taken = seconds() - start;
            if (round == 1 || (round && taken < best)) best = taken;
        }
        nanoseconds[f] = best / repeats * 1e9;
    }
    free(copy);
    return 1;
}
