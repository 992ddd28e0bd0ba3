// The host of a single design: ticks that its user asks for.
#include "instance.h"

static u64 host_bytes(const Instance* instance, int memory) { return 0; }
static void host_save(const Instance* instance, u8* to, int memory) {}
static void host_load(Instance* instance, const u8* from, int memory) {}

API Instance* fast_create(Hook hook) {
    Instance* instance = (Instance*)aligned_alloc(64, (sizeof(Instance) + 63) / 64 * 64);
    if (!instance) return 0;
    memset(instance, 0, sizeof *instance);
    instance->hook = hook;
    if (instance_create(instance)) return instance;
    instance_destroy(instance);
    free(instance);
    return 0;
}

API void fast_destroy(Instance* instance) {
    instance_destroy(instance);
    free(instance);
}

// Everything combinational, the events of `edges`, and these edges.
static int step(Instance* instance, u64 edges, int half) {
    int result = instance_settle(instance);
    if (!result) result = instance_check(instance, edges);
    if (!result) instance_commit(instance, edges, half);
    return result;
}

static int tick(Instance* instance, u64 first, u64 second) {
    const int result = step(instance, first, 0);
    return result || !second ? result : step(instance, second, 1);
}

// `count` times: the edges `first` of clocks all at once, then the edges `second`. 0, or STOPPED by an event.
API int fast_tick(Instance* instance, u64 first, u64 second, u64 count) {
    instance->failed = 0;
    for (; count; count--) {
        const int result = tick(instance, first, second);
        if (result) return result;
    }
    return instance_settle(instance);
}

// Ticks until the condition holds, at most `limit` times: 0, STOPPED or NOT_YET.
API int fast_run_until(Instance* instance, const Condition* condition, u64 first, u64 second, u64 limit) {
    instance->failed = 0;
    for (;; limit--) {
        int result = instance_settle(instance);
        if (result || holds(instance, condition)) return result;
        if (!limit) return NOT_YET;
        result = tick(instance, first, second);
        if (result) return result;
    }
}
