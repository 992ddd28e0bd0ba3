// The twins of sley.hw.core.affine: nested loops and their positions, dimension 0 innermost.
#pragma once

#include <stdint.h>

enum { LOOPS_MOST = 3, WALK_MOST = 5 };

typedef struct Loops {
    uint32_t count[LOOPS_MOST];
    uint32_t left[LOOPS_MOST];  // turns behind this one
    uint32_t last;              // bit k: dimension k is at its last index
} Loops;

static inline void loops_start(Loops* l, const uint32_t* counts, int dims) {
    l->last = 0;
    for (int k = 0; k < dims; ++k) {
        l->count[k] = counts[k];
        l->left[k] = counts[k] - 1;
        l->last |= (uint32_t)!l->left[k] << k;
    }
}

static inline void loops_step(Loops* l, int dims) {
    for (int k = 0; k < dims; ++k) {
        if (!(l->last >> k & 1)) {
            l->last |= (uint32_t)!--l->left[k] << k;
            return;
        }
        l->left[k] = l->count[k] - 1;
        if (l->left[k]) l->last &= ~(1u << k);
    }
}

static inline int loops_end(const Loops* l, int dims) { return l->last == (1u << dims) - 1; }

typedef struct Walk {
    uint32_t position, outside;
    uint32_t largest;           // position of the space; 0xFFFFFFFF: every one is inside
    uint32_t begin[WALK_MOST];  // where the current index of each outer loop began
} Walk;

static inline void walk_start(Walk* w, uint32_t base, uint32_t largest, int dims) {
    w->position = base;
    w->largest = largest;
    w->outside = base > largest;
    for (int k = 1; k < dims; ++k) w->begin[k] = base;
}

static inline void walk_step(Walk* w, uint32_t last, const uint32_t* strides, int dims) {
    if (!(last & 1)) {
        w->position += strides[0];
    } else {
        int k = __builtin_ctz(~last);
        if (k >= dims) k = dims - 1;
        w->position = w->begin[k] + strides[k];
        for (int j = 1; j <= k; ++j) w->begin[j] = w->position;
    }
    w->outside = w->position > w->largest;
}
