// The Verilated array for array_stimulus.h.
#include "Varray.h"
#include "verilated.h"

struct Model {
    VerilatedContext context;
    Varray top{&context, "array"};
};

static Model* model_create() { return new Model; }

static void model_destroy(Model* model) {
    model->top.final();
    delete model;
}

static inline void model_drive(Model* model, const void* activations, bool swap, const void* weights, bool valid,
                               int row) {
    model->top.clk = 0;
    std::memcpy(&model->top.activations, activations, LANE_BYTES);
    std::memcpy(&model->top.weights, weights, LANE_BYTES);
    model->top.swap = swap;
    model->top.weights_valid = valid;
    model->top.weights_row = row;
}

static inline void model_settle(Model* model) { model->top.eval(); }
static inline const void* model_sums(const Model* model) { return &model->top.sums; }

static inline void model_clock(Model* model) {
    model->top.clk = 1;
    model->top.eval();
}

#include "array_stimulus.h"
