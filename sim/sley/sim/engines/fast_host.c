// The chip of the fast engine for host.h. BUS_BYTES: bytes of a beat on the memory bus.

#include "instance.h"

#include "dram.h"

typedef struct Sim {
    Instance instance;
    Dram dram;
} Sim;

#define GET(sim, port) ((sim)->instance.state.OUT_##port)
#define SET(sim, port, value) set_##port(&(sim)->instance.state, (value))
#define GET_BYTES(sim, port) (&(sim)->instance.state.OUT_##port)
#define SET_BYTES(sim, port, bytes) load_##port(&(sim)->instance.state, (bytes))
#define SIM_FAILED(sim) ((sim)->instance.failed)

static Sim* sim_create(void) {
    Sim* sim = (Sim*)aligned_alloc(64, (sizeof(Sim) + 63) / 64 * 64);
    if (!sim) return 0;
    memset(sim, 0, sizeof *sim);
    if (instance_create(&sim->instance)) return sim;
    instance_destroy(&sim->instance);
    free(sim);
    return 0;
}

static void sim_destroy(Sim* sim) {
    instance_destroy(&sim->instance);
    free(sim);
}

static void sim_settle(Sim* sim) { instance_settle(&sim->instance); }

#define SIM_CHECK(sim) instance_check(&(sim)->instance, 1)
#define SIM_BEGIN(sim) ((sim)->instance.failed = 0)

static void sim_drive(Sim* sim);

static void sim_clock(Sim* sim) {
    instance_commit(&sim->instance, 1, 0);
    sim_drive(sim);
}

static void sim_trace(Sim* sim, const char* path) {
    (void)sim;
    (void)path;
}

static void sim_trace_flush(Sim* sim) { (void)sim; }

#include "host.h"

// The DRAM in a snapshot: the structure, the bursts of its queues in order, and on request the device memory.

static BurstQueue* queue_of(Dram* dram, int number) {
    return number == 0 ? &dram->reads : number == 1 ? &dram->writes : &dram->responses;
}

static u64 host_bytes(const Instance* instance, int memory) {
    const Dram* const dram = &((const Sim*)instance)->dram;
    const u64 bursts = (u64)dram->reads.count + dram->writes.count + dram->responses.count;
    return sizeof(Dram) + bursts * sizeof(Burst) + (memory ? dram->bytes : 0);
}

static void host_save(const Instance* instance, u8* to, int memory) {
    Dram* const dram = &((Sim*)instance)->dram;
    memcpy(to, dram, sizeof *dram);
    to += sizeof *dram;
    for (int number = 0; number < 3; number++) {
        const BurstQueue* const queue = queue_of(dram, number);
        for (u32 i = 0; i < queue->count; i++, to += sizeof(Burst))
            memcpy(to, &queue->items[(queue->first + i) % queue->room], sizeof(Burst));
    }
    if (memory) memcpy(to, dram->memory, dram->bytes);
}

static void host_load(Instance* instance, const u8* from, int memory) {
    Dram* const dram = &((Sim*)instance)->dram;
    const Dram old = *dram;
    Dram saved;
    memcpy(&saved, from, sizeof saved);
    from += sizeof saved;
    *dram = saved;
    dram->memory = old.memory;
    dram->bytes = old.bytes;
    dram->timing = old.timing;
    for (int number = 0; number < 3; number++) {
        BurstQueue* const queue = queue_of(dram, number);
        *queue = *queue_of((Dram*)&old, number);
        queue->first = queue->count = 0;
        for (u32 i = queue_of(&saved, number)->count; i; i--, from += sizeof(Burst)) {
            Burst burst;
            memcpy(&burst, from, sizeof burst);
            queue_push(queue, burst);
        }
    }
    if (memory) memcpy(dram->memory, from, dram->bytes);
}

// Cycles until the condition holds, at most `limit`: 0, NOT_YET, or what stopped the chip.
API int sley_run_until(Sim* sim, const Condition* condition, uint64_t limit) {
    SIM_BEGIN(sim);
    for (sim_settle(sim);; limit--) {
        if (sim_stopped(sim)) return sim_status(sim, 0);
        if (holds(&sim->instance, condition)) return 0;
        if (!limit) return NOT_YET;
        sim_cycle(sim);
        sim_settle(sim);
    }
}
