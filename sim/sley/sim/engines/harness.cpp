// The Verilated chip for host.h. BUS_BYTES: bytes of a beat on the memory bus.

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

struct Sim {
    VerilatedContext context;
    std::unique_ptr<Vsley> top;
    Dram dram{};
#if VM_TRACE
    std::unique_ptr<TraceFile> trace;
#endif
};

#define GET(sim, port) ((sim)->top->port)
#define SET(sim, port, value) ((sim)->top->port = (value))
#define GET_BYTES(sim, port) (&(sim)->top->port)
#define SET_BYTES(sim, port, bytes)                                                                     \
    do {                                                                                                \
        static_assert(sizeof((sim)->top->port) >= BUS_BYTES, "BUS_BYTES is not the width of " #port); \
        std::memcpy(&(sim)->top->port, (bytes), BUS_BYTES);                                             \
    } while (0)

static Sim* sim_create() {
    auto sim = std::make_unique<Sim>();
#if VM_TRACE
    sim->context.traceEverOn(true);
#endif
    sim->top = std::make_unique<Vsley>(&sim->context, "sley");
    return sim.release();
}

static void sim_destroy(Sim* sim) {
#if VM_TRACE
    if (sim->trace) sim->trace->close();
#endif
    sim->top->final();
    delete sim;
}

static void sim_settle(Sim* sim) { sim->top->eval(); }

static void sim_drive(Sim* sim);

// A cycle of 10 ns whose rising edge is in its middle. Before and after it, all signals have settled with the clock low.
static void sim_dump(Sim* sim, unsigned offset) {
#if VM_TRACE
    if (!sim->trace) return;
    if (offset == 5) sim->top->eval();  // inputs change with the edge in the waveform
    sim->trace->dump(10 * (sim->dram.cycle - 1) + offset);
#else
    (void)sim;
    (void)offset;
#endif
}

static void sim_clock(Sim* sim) {
    sim->top->clk = 1;
    sim->top->eval();
    sim_drive(sim);
    sim_dump(sim, 5);
    sim->top->clk = 0;
    sim->top->eval();
    sim_dump(sim, 10);
}

static void sim_trace(Sim* sim, const char* path) {
#if VM_TRACE
    sim->trace = std::make_unique<TraceFile>();
    sim->top->trace(sim->trace.get(), 99);
    sim->trace->open(path);
    sim->trace->dump(10 * sim->dram.cycle);
#else
    (void)sim;
    (void)path;
#endif
}

static void sim_trace_flush(Sim* sim) {
#if VM_TRACE
    if (sim->trace) sim->trace->flush();
#else
    (void)sim;
#endif
}

#include "host.h"
