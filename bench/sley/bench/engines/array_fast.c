// The array of the fast engine for array_stimulus.h.
#include <stdlib.h>

#include "design.h"

typedef S Model;

static Model* model_create(void) {
    Model* const model = (Model*)aligned_alloc(64, (sizeof(Model) + 63) / 64 * 64);
    memset(model, 0, sizeof *model);
    init(model);
    return model;
}

static void model_destroy(Model* model) { free(model); }

static inline void model_drive(Model* model, const void* activations, u8 swap, const void* weights, u8 valid, u8 row) {
    load_activations(model, activations);
    set_swap(model, swap);
    load_weights(model, weights);
    set_weights_valid(model, valid);
    set_weights_row(model, row);
}

static inline void model_settle(Model* model) { settle(model); }
static inline const void* model_sums(const Model* model) { return &model->OUT_sums; }
static inline void model_clock(Model* model) { commit(model, 1); }

#include "array_stimulus.h"
