// A chip that takes the cycles of the gateware, for host.h.

#include "abi.h"

#include "chip.h"
#include "dram.h"
#include "repeat/repeat.h"

typedef struct Sim {
    Chip chip;
    Dram dram;
    Repeat* repeat;    // if there is one
    uint32_t settled;  // outputs are those of this cycle
    uint32_t none, size, incr;  // pins that do not change, and those that nobody sees
} Sim;

#define PIN_s_axil_awaddr chip.target.awaddr
#define PIN_s_axil_awvalid chip.target.awvalid
#define PIN_s_axil_awready chip.target.awready
#define PIN_s_axil_wdata chip.target.wdata
#define PIN_s_axil_wstrb chip.target.wstrb
#define PIN_s_axil_wvalid chip.target.wvalid
#define PIN_s_axil_wready chip.target.wready
#define PIN_s_axil_bvalid chip.target.bvalid
#define PIN_s_axil_bready chip.target.bready
#define PIN_s_axil_bresp chip.target.bresp
#define PIN_s_axil_araddr chip.target.araddr
#define PIN_s_axil_arvalid chip.target.arvalid
#define PIN_s_axil_arready chip.target.arready
#define PIN_s_axil_rvalid chip.target.rvalid
#define PIN_s_axil_rready chip.target.rready
#define PIN_s_axil_rdata chip.target.rdata
#define PIN_s_axil_rresp chip.target.rresp
#define PIN_irq chip.command.interrupts.irq
#define PIN_m_axi_awvalid chip.gateway.port.aw_valid
#define PIN_m_axi_awready chip.gateway.port.aw_ready
#define PIN_m_axi_awaddr chip.gateway.port.aw.item.addr
#define PIN_m_axi_awlen chip.gateway.port.aw.item.len
#define PIN_m_axi_awid none
#define PIN_m_axi_awsize size
#define PIN_m_axi_awburst incr
#define PIN_m_axi_wvalid chip.gateway.port.w_valid
#define PIN_m_axi_wready chip.gateway.port.w_ready
#define PIN_m_axi_wlast chip.gateway.port.w.item
#define PIN_m_axi_bvalid chip.gateway.port.b_valid
#define PIN_m_axi_bready chip.gateway.port.b_ready
#define PIN_m_axi_bresp chip.gateway.port.b_resp
#define PIN_m_axi_bid none
#define PIN_m_axi_arvalid chip.gateway.port.ar_valid
#define PIN_m_axi_arready chip.gateway.port.ar_ready
#define PIN_m_axi_araddr chip.gateway.port.ar.item.addr
#define PIN_m_axi_arlen chip.gateway.port.ar.item.len
#define PIN_m_axi_arid none
#define PIN_m_axi_arsize size
#define PIN_m_axi_arburst incr
#define PIN_m_axi_rvalid chip.gateway.port.r_valid
#define PIN_m_axi_rready chip.gateway.port.r_ready
#define PIN_m_axi_rlast chip.gateway.port.r_last
#define PIN_m_axi_rresp chip.gateway.port.r_resp
#define PIN_m_axi_rid none

static const WrittenBeat* sim_written(const Sim* sim) { return written_first(&sim->chip.written); }
static const void* sim_data(const Sim* sim) { return sim_written(sim) ? sim_written(sim)->data : 0; }
static const void* sim_strobes(const Sim* sim) { return sim_written(sim) ? sim_written(sim)->strobe : 0; }

#define GET(sim, pin) ((sim)->PIN_##pin)
#define SET(sim, pin, value) ((sim)->PIN_##pin = (value))
#define BYTES_m_axi_wdata sim_data
#define BYTES_m_axi_wstrb sim_strobes
#define GET_BYTES(sim, pin) BYTES_##pin(sim)
#define SET_BYTES(sim, pin, bytes) sim_beat(sim, bytes)

static inline void sim_beat(Sim* sim, const void* beat) {
    if (sim->dram.rvalid) memcpy(sim->chip.beats[sim->chip.beat], beat, BUS_BYTES);
}

static Sim* sim_create(void) {
    Sim* sim = aligned_alloc(64, (sizeof(Sim) + 63) / 64 * 64);
    if (!sim) return 0;
    memset(sim, 0, sizeof *sim);
    sim->size = LANE_BITS;
    sim->incr = DRAM_INCR;
    chip_reset(&sim->chip);
    return sim;
}

static void sim_destroy(Sim* sim) {
    repeat_destroy(sim->repeat);
    free(sim);
}

// Cycles in which what happened before happens again.
static inline uint64_t sim_repeat(Sim* sim, uint64_t limit) {
    Repeat* r = sim->repeat;
    if (!r || !sim->settled) return 0;
    uint64_t passed = repeat_pass(r, &sim->chip, &sim->dram, limit);
    if (r->wrong) sim->dram.violation = r->wrong;
    return passed;
}

// Cycles, at most `limit`, that can be left out as nothing happens in them, or what is known; the host says nothing.
static inline uint64_t sim_pass(Sim* sim, uint64_t limit) {
    Chip* c = &sim->chip;
    uint64_t repeated = sim_repeat(sim, limit);
    if (repeated) return repeated;
    if (c->rested < REST_CYCLES || !dram_idle(&sim->dram) || chip_command_stirs(c)) return 0;
    chip_pass(c, limit);
    sim->dram.cycle += limit;
    return limit;
}

#define SIM_PASS sim_pass

static inline void sim_settle(Sim* sim) {
    chip_outputs(&sim->chip);
    sim->settled = 1;
}

static void sim_drive(Sim* sim);

static inline void sim_clock(Sim* sim) {
    if (sim->repeat) repeat_watch(sim->repeat, &sim->chip, &sim->dram);
    sim->settled = 0;
    chip_tick(&sim->chip);
    sim_drive(sim);
    sim->none = 0;
    for (int k = 0; HAS_LISTS && k < CORES; ++k)
        if (sim->chip.cores[k].unknown)
            sim->dram.violation = "a transfer by a list, whose words are not known with values=off; leave that out";
}

static void sim_trace(Sim* sim, const char* path) {
    (void)sim;
    (void)path;
}

static void sim_trace_flush(Sim* sim) { (void)sim; }

#include "host.h"

// Who computes values, from now on.
API void sley_values(Sim* sim, const Values* values) {
    sim->chip.values = *values;
    for (int k = 0; k < CORES; ++k) sim->chip.cores[k].model = values->cores[k];
}

// From now on passages that come again are left out, where no value is computed and no place in memory is like another.
API int sley_repeat(Sim* sim) {
    const DramTiming* t = &sim->dram.timing;
    if (CORES > 1 || sim->chip.values.memory || t->banks || t->refresh || t->channels > 1) return 0;
    if (!sim->repeat) sim->repeat = repeat_create();
    return 1;
}

// Cycles that were left out so; moments that were compared; those of them that had been before.
API void sley_repeated(const Sim* sim, uint64_t* counts) {
    const Repeat* r = sim->repeat;
    if (r) counts[0] = r->left_out, counts[1] = r->moments, counts[2] = r->returns;
}
