// The C API of a compiled chip: AXI4-Lite host and DRAM around the design, all inside one library.
// Included by a harness that defines, for its kind of compiled design:
//   BUS_BYTES                     bytes of a beat on the memory bus
//   struct Sim                    with a member `Dram dram`
//   GET(sim, port)                value of an output; SET(sim, port, value) sets an input
//   GET_BYTES(sim, port)          address of an output's bytes; SET_BYTES(sim, port, bytes) sets an input from there
//   sim_settle(sim)               lets everything combinational follow the inputs
//   sim_clock(sim)                the rising edge, after which `sim_drive` puts the DRAM's new outputs on the inputs
//   sim_create(), sim_destroy(sim), sim_trace(sim, path), sim_trace_flush(sim)
// and, if it can leave out cycles:
//   SIM_PASS(sim, limit)          leaves out at most so many in which nothing happens; how many it were
// and, if its designs have assertions:
//   SIM_FAILED(sim)               other than 0 after one failed
//   SIM_CHECK(sim)                checks those of the coming edge; other than 0 if one fails
//   SIM_BEGIN(sim)                forgets a failure
#pragma once

#ifndef SIM_FAILED
#define SIM_FAILED(sim) 0
#define SIM_CHECK(sim) 0
#define SIM_BEGIN(sim) (void)0
#endif

#ifndef SIM_PASS
#define SIM_PASS(sim, limit) 0
#endif

#undef API
#ifdef __cplusplus
#define API extern "C" __attribute__((visibility("default")))
#else
#define API __attribute__((visibility("default")))
#endif

enum { HANG = -1, VIOLATION = -2 };

// The DRAM's outputs of the current cycle to the chip's inputs.
static void sim_drive(Sim* sim) {
    const Dram* dram = &sim->dram;
    SET(sim, m_axi_awready, dram->awready);
    SET(sim, m_axi_wready, dram->wready);
    SET(sim, m_axi_bvalid, dram->bvalid);
    SET(sim, m_axi_bid, dram->bid);
    SET(sim, m_axi_bresp, dram->bresp);
    SET(sim, m_axi_arready, dram->arready);
    SET(sim, m_axi_rvalid, dram->rvalid);
    SET(sim, m_axi_rid, dram->rid);
    SET(sim, m_axi_rresp, dram->rresp);
    SET(sim, m_axi_rlast, dram->rlast);
    SET_BYTES(sim, m_axi_rdata, dram->rdata);
}

// One clock cycle. Before it, everything has settled. There is none if an assertion fails.
static void sim_cycle(Sim* sim) {
    if (SIM_FAILED(sim) || SIM_CHECK(sim)) return;
    const AddressBeat aw = {(bool)GET(sim, m_axi_awvalid),   (uint8_t)GET(sim, m_axi_awid),
                            (uint64_t)GET(sim, m_axi_awaddr), (uint8_t)GET(sim, m_axi_awlen),
                            (uint8_t)GET(sim, m_axi_awsize), (uint8_t)GET(sim, m_axi_awburst)};
    const AddressBeat ar = {(bool)GET(sim, m_axi_arvalid),   (uint8_t)GET(sim, m_axi_arid),
                            (uint64_t)GET(sim, m_axi_araddr), (uint8_t)GET(sim, m_axi_arlen),
                            (uint8_t)GET(sim, m_axi_arsize), (uint8_t)GET(sim, m_axi_arburst)};
    dram_edge(&sim->dram, aw, GET(sim, m_axi_wvalid), GET_BYTES(sim, m_axi_wdata), GET_BYTES(sim, m_axi_wstrb),
              GET(sim, m_axi_wlast), GET(sim, m_axi_bready), ar, GET(sim, m_axi_rready));
    sim_clock(sim);
}

static bool sim_stopped(const Sim* sim) { return sim->dram.violation || SIM_FAILED(sim); }

static int sim_status(const Sim* sim, int result) {
    return SIM_FAILED(sim) ? SIM_FAILED(sim) : sim->dram.violation ? VIOLATION : result;
}

API Sim* sley_create(uint64_t bytes, const DramTiming* timing) {
    Sim* sim = sim_create();
    if (!sim) return 0;
    dram_create(&sim->dram, bytes, *timing);
    if (!sim->dram.memory) {
        sim_destroy(sim);
        return 0;
    }
    sim_drive(sim);
    sim_settle(sim);
    return sim;
}

API void sley_destroy(Sim* sim) {
    dram_destroy(&sim->dram);
    sim_destroy(sim);
}

API uint8_t* sley_memory(Sim* sim) { return sim->dram.memory; }

API uint64_t sley_cycles(const Sim* sim) { return sim->dram.cycle; }

API const char* sley_violation(const Sim* sim) { return sim->dram.violation; }

API void sley_trace_open(Sim* sim, const char* path) { sim_trace(sim, path); }

API void sley_trace_flush(Sim* sim) { sim_trace_flush(sim); }

// Cycles after which a register access is given up.
static uint64_t access_limit;

API void sley_access_limit(uint64_t cycles) { access_limit = cycles; }

// The response (0 is OKAY), or a negative number. What changes last settles with the next call.
API int sley_write32(Sim* sim, uint32_t address, uint32_t value) {
    uint64_t limit = access_limit;
    SIM_BEGIN(sim);
    SET(sim, s_axil_awaddr, address);
    SET(sim, s_axil_wdata, value);
    SET(sim, s_axil_wstrb, 15);
    SET(sim, s_axil_awvalid, 1);
    SET(sim, s_axil_wvalid, 1);
    SET(sim, s_axil_bready, 1);
    int response = HANG;
    for (; limit && response == HANG && !sim_stopped(sim); limit--) {
        sim_settle(sim);
        const bool address_taken = GET(sim, s_axil_awready), data_taken = GET(sim, s_axil_wready);
        if (GET(sim, s_axil_bvalid)) response = GET(sim, s_axil_bresp);
        sim_cycle(sim);
        if (address_taken) SET(sim, s_axil_awvalid, 0);
        if (data_taken) SET(sim, s_axil_wvalid, 0);
    }
    SET(sim, s_axil_awvalid, 0);
    SET(sim, s_axil_wvalid, 0);
    SET(sim, s_axil_bready, 0);
    return sim_status(sim, response);
}

// What was read, or a negative number: READ_FAILED more than the response (or its negative number).
enum { READ_FAILED = -256 };

API int64_t sley_read32(Sim* sim, uint32_t address) {
    uint64_t limit = access_limit;
    uint32_t value = 0;
    SIM_BEGIN(sim);
    SET(sim, s_axil_araddr, address);
    SET(sim, s_axil_arvalid, 1);
    SET(sim, s_axil_rready, 1);
    int response = HANG;
    for (; limit && response == HANG && !sim_stopped(sim); limit--) {
        sim_settle(sim);
        const bool address_taken = GET(sim, s_axil_arready);
        if (GET(sim, s_axil_rvalid)) {
            response = GET(sim, s_axil_rresp);
            value = GET(sim, s_axil_rdata);
        }
        sim_cycle(sim);
        if (address_taken) SET(sim, s_axil_arvalid, 0);
    }
    SET(sim, s_axil_arvalid, 0);
    SET(sim, s_axil_rready, 0);
    response = sim_status(sim, response);
    return response ? READ_FAILED + response : (int64_t)value;
}

API int sley_step(Sim* sim, uint64_t cycles) {
    SIM_BEGIN(sim);
    while (cycles && !sim_stopped(sim)) {
        const uint64_t passed = SIM_PASS(sim, cycles);
        cycles -= passed;
        if (passed) continue;
        sim_settle(sim);
        sim_cycle(sim);
        cycles--;
    }
    sim_settle(sim);
    return sim_status(sim, 0);
}

// Whether irq is high, after at most `limit` cycles.
API int sley_run_until_irq(Sim* sim, uint64_t limit) {
    SIM_BEGIN(sim);
    sim_settle(sim);
    while (limit && !GET(sim, irq) && !sim_stopped(sim)) {
        const uint64_t passed = SIM_PASS(sim, limit);
        limit -= passed;
        if (passed) continue;
        sim_cycle(sim);
        sim_settle(sim);
        limit--;
    }
    return sim_status(sim, GET(sim, irq));
}
