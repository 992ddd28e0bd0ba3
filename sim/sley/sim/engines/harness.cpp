// The C API of a compiled chip: clock, AXI4-Lite host and DRAM around the Verilated model, all inside one library.
// BUS_BYTES: bytes of a beat on the memory bus.

#include <memory>
#include <string>

#include "Vsley.h"
#include "dram.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
using TraceFile = VerilatedFstC;
#elif VM_TRACE_VCD
#include "verilated_vcd_c.h"
using TraceFile = VerilatedVcdC;
#endif

namespace {

constexpr int kHang = -1, kViolation = -2;

struct Sim {
    VerilatedContext context;
    std::unique_ptr<Vsley> top;
    sley::Dram<BUS_BYTES> dram;
#if VM_TRACE
    std::unique_ptr<TraceFile> trace;
#endif

    Sim(uint64_t bytes, sley::DramTiming timing) : dram(bytes, timing) {
#if VM_TRACE
        context.traceEverOn(true);
#endif
        top = std::make_unique<Vsley>(&context, "sley");
        drive();
        top->eval();
    }

    ~Sim() {
#if VM_TRACE
        if (trace) trace->close();
#endif
        top->final();
    }

    // The DRAM's outputs of the current cycle to the chip's inputs.
    void drive() {
        top->m_axi_awready = dram.awready;
        top->m_axi_wready = dram.wready;
        top->m_axi_bvalid = dram.bvalid;
        top->m_axi_bid = dram.bid;
        top->m_axi_bresp = dram.bresp;
        top->m_axi_arready = dram.arready;
        top->m_axi_rvalid = dram.rvalid;
        top->m_axi_rid = dram.rid;
        top->m_axi_rresp = dram.rresp;
        top->m_axi_rlast = dram.rlast;
        static_assert(sizeof(top->m_axi_rdata) >= BUS_BYTES, "BUS_BYTES is not the width of m_axi_rdata");
        std::memcpy(&top->m_axi_rdata, dram.rdata, BUS_BYTES);
    }

    // One clock cycle. Before and after it, all signals have settled with the clock low.
    void cycle() {
        dram.edge({bool(top->m_axi_awvalid), uint8_t(top->m_axi_awid), top->m_axi_awaddr, uint8_t(top->m_axi_awlen),
                   uint8_t(top->m_axi_awsize), uint8_t(top->m_axi_awburst)},
                  top->m_axi_wvalid, &top->m_axi_wdata, &top->m_axi_wstrb, top->m_axi_wlast, top->m_axi_bready,
                  {bool(top->m_axi_arvalid), uint8_t(top->m_axi_arid), top->m_axi_araddr, uint8_t(top->m_axi_arlen),
                   uint8_t(top->m_axi_arsize), uint8_t(top->m_axi_arburst)},
                  top->m_axi_rready);
        top->clk = 1;
        top->eval();
        drive();
        dump(5);
        top->clk = 0;
        top->eval();
        dump(10);
    }

    // A cycle of 10 ns whose rising edge is in its middle.
    void dump(unsigned offset) {
#if VM_TRACE
        if (!trace) return;
        if (offset == 5) top->eval();  // inputs change with the edge in the waveform
        trace->dump(10 * (dram.cycle() - 1) + offset);
#else
        (void)offset;
#endif
    }

    int status(int result) const { return dram.violation ? kViolation : result; }
};

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API Sim* sley_create(uint64_t bytes, uint32_t latency, uint32_t burst_gap, uint32_t depth) {
    auto sim = std::make_unique<Sim>(bytes, sley::DramTiming{latency, burst_gap, depth});
    return sim->dram.memory() ? sim.release() : nullptr;
}

API void sley_destroy(Sim* sim) { delete sim; }

API uint8_t* sley_memory(Sim* sim) { return sim->dram.memory(); }

API uint64_t sley_cycles(Sim* sim) { return sim->dram.cycle(); }

API const char* sley_violation(Sim* sim) { return sim->dram.violation; }

API void sley_trace_open(Sim* sim, const char* path) {
#if VM_TRACE
    sim->trace = std::make_unique<TraceFile>();
    sim->top->trace(sim->trace.get(), 99);
    sim->trace->open(path);
    sim->trace->dump(10 * sim->dram.cycle());
#else
    (void)sim;
    (void)path;
#endif
}

API void sley_trace_flush(Sim* sim) {
#if VM_TRACE
    if (sim->trace) sim->trace->flush();
#else
    (void)sim;
#endif
}

// The response (0 is OKAY), or a negative number.
API int sley_write32(Sim* sim, uint32_t address, uint32_t value, uint64_t limit) {
    Vsley& top = *sim->top;
    top.s_axil_awaddr = address;
    top.s_axil_wdata = value;
    top.s_axil_wstrb = 15;
    top.s_axil_awvalid = top.s_axil_wvalid = top.s_axil_bready = 1;
    int response = kHang;
    for (; limit && response == kHang && !sim->dram.violation; limit--) {
        top.eval();
        const bool address_taken = top.s_axil_awready, data_taken = top.s_axil_wready;
        if (top.s_axil_bvalid) response = top.s_axil_bresp;
        sim->cycle();
        if (address_taken) top.s_axil_awvalid = 0;
        if (data_taken) top.s_axil_wvalid = 0;
    }
    top.s_axil_awvalid = top.s_axil_wvalid = top.s_axil_bready = 0;
    top.eval();
    return sim->status(response);
}

API int sley_read32(Sim* sim, uint32_t address, uint32_t* value, uint64_t limit) {
    Vsley& top = *sim->top;
    top.s_axil_araddr = address;
    top.s_axil_arvalid = top.s_axil_rready = 1;
    int response = kHang;
    for (; limit && response == kHang && !sim->dram.violation; limit--) {
        top.eval();
        const bool address_taken = top.s_axil_arready;
        if (top.s_axil_rvalid) {
            response = top.s_axil_rresp;
            *value = top.s_axil_rdata;
        }
        sim->cycle();
        if (address_taken) top.s_axil_arvalid = 0;
    }
    top.s_axil_arvalid = top.s_axil_rready = 0;
    top.eval();
    return sim->status(response);
}

API int sley_step(Sim* sim, uint64_t cycles) {
    for (; cycles && !sim->dram.violation; cycles--) sim->cycle();
    return sim->status(0);
}

// Whether irq is high, after at most `limit` cycles.
API int sley_run_until_irq(Sim* sim, uint64_t limit) {
    for (; limit && !sim->top->irq && !sim->dram.violation; limit--) sim->cycle();
    return sim->status(sim->top->irq);
}
