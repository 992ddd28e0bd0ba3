// The Verilated chip and the chip of the fast engine in lock-step, behind the C API of host.h.
// Both get the same inputs; outputs are compared before every edge, registers and memories after it. The host and the
// DRAM follow the Verilated chip. HOST_H, DRAM_H: where these headers are. BUS_BYTES: bytes of a beat.
//
// Verilated registers are found by name at run time: their declarations in the Verilog are public.

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vsley.h"
#include DRAM_H
#include "verilated.h"
#include "verilated_syms.h"

static const size_t BLOCK = 256;  // bytes of a memory that are looked at together for a change
static const int DIFFERENT = -5;
static const size_t MAX_DIFFERENCES = 1000;

// Some bits of a register that both sides hold in one word each.
struct Chunk {
    const uint8_t *verilated, *fast;
    uint8_t verilated_bytes, verilated_shift, fast_bytes, fast_shift;
    uint64_t verilated_mask, fast_mask;
    uint32_t number, low;
};

// Chunks of row 0, and how far the next row is.
struct MemoryChunk {
    Chunk chunk;
    size_t verilated_pitch, fast_pitch;
};

struct Memory {
    const uint8_t* verilated = nullptr;
    size_t verilated_pitch = 0, depth = 0;
    std::vector<MemoryChunk> chunks;
    std::vector<uint8_t> shadow;  // of the Verilated one
};

struct Difference {
    uint32_t kind, number, row, low;
    uint64_t verilated, fast;
};

enum { OUTPUT, REGISTER, MEMORY };

struct FastLibrary {
    void* (*create)(void*);
    void (*destroy)(void*);
    uint8_t* (*state)(void*);
    uint64_t (*state_bytes)();
    void (*poke)(void*, uint32_t, const uint64_t*);
    int (*settle)(void*);
    int (*tick)(void*, uint64_t, uint64_t, uint64_t);
};

struct Input {
    const char* name;
    void* verilated;
    size_t bytes;
    uint32_t number;
    uint64_t last[64];
};

struct Sim {
    VerilatedContext context;
    std::unique_ptr<Vsley> top;
    Dram dram{};
    void* fast = nullptr;
    uint8_t* fast_state = nullptr;
    std::vector<Input> inputs;
    std::vector<Chunk> outputs, registers;
    std::vector<Memory> memories;
    std::vector<uint8_t> fast_shadow;
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> fast_blocks;  // memory and chunk in each block of the state
    std::vector<Difference> differences;
    uint64_t compared = 0;
    int failed = 0;
};

static FastLibrary fast_library;

#define INPUTS(X)                                                                                                    \
    X(s_axil_awaddr) X(s_axil_awprot) X(s_axil_awvalid) X(s_axil_wdata) X(s_axil_wstrb) X(s_axil_wvalid)             \
    X(s_axil_bready) X(s_axil_araddr) X(s_axil_arprot) X(s_axil_arvalid) X(s_axil_rready) X(m_axi_awready)           \
    X(m_axi_wready) X(m_axi_bid) X(m_axi_bresp) X(m_axi_bvalid) X(m_axi_arready) X(m_axi_rid) X(m_axi_rdata)         \
    X(m_axi_rresp) X(m_axi_rlast) X(m_axi_rvalid) X(restart)

#define OUTPUTS(X)                                                                                                   \
    X(s_axil_awready) X(s_axil_wready) X(s_axil_bresp) X(s_axil_bvalid) X(s_axil_arready) X(s_axil_rdata)            \
    X(s_axil_rresp) X(s_axil_rvalid) X(m_axi_awid) X(m_axi_awaddr) X(m_axi_awlen) X(m_axi_awsize) X(m_axi_awburst)   \
    X(m_axi_awlock) X(m_axi_awcache) X(m_axi_awprot) X(m_axi_awqos) X(m_axi_awvalid) X(m_axi_wdata) X(m_axi_wstrb)   \
    X(m_axi_wlast) X(m_axi_wvalid) X(m_axi_bready) X(m_axi_arid) X(m_axi_araddr) X(m_axi_arlen) X(m_axi_arsize)      \
    X(m_axi_arburst) X(m_axi_arlock) X(m_axi_arcache) X(m_axi_arprot) X(m_axi_arqos) X(m_axi_arvalid)                \
    X(m_axi_rready) X(irq)

struct Port {
    const char* name;
    void* data;
    size_t bytes;
};

static std::vector<Port> ports(Vsley* top) {
#define PORT(name) {#name, &top->name, sizeof top->name},
    return {INPUTS(PORT) OUTPUTS(PORT)};
}

// Comparison.

static uint64_t load(const uint8_t* from, unsigned bytes) {
    uint64_t value = 0;
    switch (bytes) {
        case 1: return *from;
        case 2: std::memcpy(&value, from, 2); return value;
        case 4: std::memcpy(&value, from, 4); return value;
        default: std::memcpy(&value, from, 8); return value;
    }
}

static void compare(Sim* sim, const Chunk& c, uint32_t kind, uint32_t row, size_t verilated_at, size_t fast_at) {
    const uint64_t want = load(c.verilated + verilated_at, c.verilated_bytes) >> c.verilated_shift & c.verilated_mask;
    const uint64_t got = load(c.fast + fast_at, c.fast_bytes) >> c.fast_shift & c.fast_mask;
    if (want == got) return;
    sim->failed = DIFFERENT;
    if (sim->differences.size() < MAX_DIFFERENCES) sim->differences.push_back({kind, c.number, row, c.low, want, got});
}

static void compare_row(Sim* sim, const Memory& memory, size_t row) {
    for (const MemoryChunk& c : memory.chunks)
        compare(sim, c.chunk, MEMORY, row, row * c.verilated_pitch, row * c.fast_pitch);
}

// Rows that changed in the Verilated memory since it was looked at last.
static void compare_verilated_changes(Sim* sim, Memory& memory) {
    const size_t bytes = memory.shadow.size();
    for (size_t at = 0; at < bytes; at += BLOCK) {
        const size_t size = std::min(BLOCK, bytes - at);
        if (!std::memcmp(memory.verilated + at, memory.shadow.data() + at, size)) continue;
        std::memcpy(memory.shadow.data() + at, memory.verilated + at, size);
        for (size_t row = at / memory.verilated_pitch; row <= (at + size - 1) / memory.verilated_pitch; row++)
            compare_row(sim, memory, row);
    }
}

// Rows that changed in a memory of the fast engine since then.
static void compare_fast_changes(Sim* sim) {
    for (size_t block = 0; block < sim->fast_blocks.size(); block++) {
        if (sim->fast_blocks[block].empty()) continue;
        const size_t at = block * BLOCK, size = std::min(BLOCK, sim->fast_shadow.size() - at);
        const uint8_t* const now = sim->fast_state + at;
        if (!std::memcmp(now, sim->fast_shadow.data() + at, size)) continue;
        std::memcpy(sim->fast_shadow.data() + at, now, size);
        for (const auto& [number, index] : sim->fast_blocks[block]) {
            const Memory& memory = sim->memories[number];
            const MemoryChunk& c = memory.chunks[index];
            const uint8_t *const first = c.chunk.fast, *const end = first + memory.depth * c.fast_pitch;
            const size_t low = now > first ? (now - first) / c.fast_pitch : 0;
            const size_t high = std::min(end, now + size) - first;
            for (size_t row = low; row * c.fast_pitch < high; row++) compare_row(sim, memory, row);
        }
    }
}

static void compare_state(Sim* sim) {
    for (const Chunk& c : sim->registers) compare(sim, c, REGISTER, 0, 0, 0);
    for (Memory& memory : sim->memories) compare_verilated_changes(sim, memory);
    compare_fast_changes(sim);
    sim->compared++;
}

static int compare_outputs(Sim* sim) {
    for (const Chunk& c : sim->outputs) compare(sim, c, OUTPUT, 0, 0, 0);
    return sim->failed;
}

// What host.h asks for.

#define GET(sim, port) ((sim)->top->port)
#define SET(sim, port, value) ((sim)->top->port = (value))
#define GET_BYTES(sim, port) (&(sim)->top->port)
#define SET_BYTES(sim, port, bytes) std::memcpy(&(sim)->top->port, (bytes), BUS_BYTES)
#define SIM_FAILED(sim) ((sim)->failed)
#define SIM_CHECK(sim) compare_outputs(sim)
#define SIM_BEGIN(sim) (void)0

static Sim* sim_create() {
    auto sim = std::make_unique<Sim>();
    sim->top = std::make_unique<Vsley>(&sim->context, "");
    sim->fast = fast_library.create(nullptr);
    sim->fast_state = fast_library.state(sim->fast);
    sim->fast_shadow.resize(fast_library.state_bytes());
    sim->fast_blocks.resize((sim->fast_shadow.size() + BLOCK - 1) / BLOCK);
    return sim.release();
}

static void sim_destroy(Sim* sim) {
    sim->top->final();
    fast_library.destroy(sim->fast);
    delete sim;
}

// Inputs of the Verilated chip that changed become those of the other one.
static void mirror_inputs(Sim* sim) {
    for (Input& input : sim->inputs) {
        if (!std::memcmp(input.last, input.verilated, input.bytes)) continue;
        std::memcpy(input.last, input.verilated, input.bytes);
        fast_library.poke(sim->fast, input.number, input.last);
    }
}

static void sim_settle(Sim* sim) {
    sim->top->eval();
    mirror_inputs(sim);
    fast_library.settle(sim->fast);
}

static void sim_drive(Sim* sim);

static void clock_edge(Sim* sim) {
    sim->top->clk = 1;
    sim->top->eval();
    if (fast_library.tick(sim->fast, 1, 0, 1)) sim->failed = DIFFERENT;
    compare_state(sim);
    sim->top->clk = 0;
}

static void sim_clock(Sim* sim) {
    clock_edge(sim);
    sim_drive(sim);
    sim->top->eval();
}

static void sim_trace(Sim*, const char*) {}
static void sim_trace_flush(Sim*) {}

#include HOST_H

// Which fast library there is, what is where in its state, and where it is in the Verilated chip.

API const char* lockstep_open(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    find(fast_library.create, "fast_create");
    find(fast_library.destroy, "fast_destroy");
    find(fast_library.state, "fast_state");
    find(fast_library.state_bytes, "fast_state_bytes");
    find(fast_library.poke, "fast_poke");
    find(fast_library.settle, "fast_settle");
    find(fast_library.tick, "fast_tick");
    return nullptr;
}

// Names of all ports but the clock.
API const char* lockstep_ports(Sim* sim) {
    static std::string names;
    names.clear();
    for (const Port& port : ports(sim->top.get())) names += std::string(port.name) + " ";
    return names.c_str();
}

static const VerilatedVar* find_variable(Sim* sim, const char* scope, const std::string& name) {
    const VerilatedScope* const found = sim->context.scopeFind(scope);
    if (!found) return nullptr;
    const VerilatedVar* const plain = found->varFind(name.c_str());
    return plain ? plain : found->varFind(("\\" + name + " ").c_str());
}

static uint64_t ones(unsigned bits) { return bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1; }

// Chunks of the piece of `width` bits at bit `low` of a Verilated value, which has `bytes` bytes.
static void add_chunks(std::vector<Chunk>& to, const void* verilated, size_t bytes, const uint8_t* fast, uint32_t number,
                       uint32_t low, uint32_t width, uint32_t size) {
    const uint32_t word = bytes <= 8 ? bytes : 4;
    for (uint32_t done = 0; done < width;) {
        const uint32_t at = low + done, shift = at % (8 * word), inside = done % 64;
        const uint32_t bits = std::min({width - done, 8 * word - shift, 64 - inside});
        const bool last = done + bits == width;
        const uint64_t all = ~(uint64_t)0;
        to.push_back({(const uint8_t*)verilated + at / (8 * word) * word, fast + done / 64 * 8, (uint8_t)word,
                      (uint8_t)shift, (uint8_t)std::min<uint32_t>(size, 8), (uint8_t)inside, ones(bits),
                      last ? all : ones(bits), number, at});
        done += bits;
    }
}

API int lockstep_input(Sim* sim, const char* name, uint32_t number) {
    for (const Port& port : ports(sim->top.get()))
        if (!std::strcmp(port.name, name)) {
            sim->inputs.push_back({port.name, port.data, port.bytes, number, {}});
            return 1;
        }
    return 0;
}

API int lockstep_output(Sim* sim, const char* name, uint32_t number, uint32_t low, uint32_t width, uint64_t offset,
                        uint32_t size) {
    for (const Port& port : ports(sim->top.get()))
        if (!std::strcmp(port.name, name)) {
            add_chunks(sim->outputs, port.data, port.bytes, sim->fast_state + offset, number, low, width, size);
            return 1;
        }
    return 0;
}

// Bits of the Verilated variable, or 0 if there is none.
API uint32_t lockstep_register(Sim* sim, const char* scope, const char* name, uint32_t number, uint32_t low,
                               uint32_t width, uint64_t offset, uint32_t size) {
    const VerilatedVar* const variable = find_variable(sim, scope, name);
    if (!variable || variable->udims()) return 0;
    add_chunks(sim->registers, variable->datap(), variable->entSize(), sim->fast_state + offset, number, low, width,
               size);
    return variable->entBits();
}

// Begins a memory: rows of the Verilated one, or 0 if there is none.
API uint32_t lockstep_memory(Sim* sim, const char* scope, const char* name) {
    const VerilatedVar* const variable = find_variable(sim, scope, name);
    if (!variable || variable->udims() != 1) return 0;
    Memory memory;
    memory.verilated = (const uint8_t*)variable->datap();
    memory.verilated_pitch = variable->entSize();
    memory.depth = variable->unpackedRanges()[0].elements();
    memory.shadow.assign(memory.verilated, memory.verilated + memory.depth * memory.verilated_pitch);
    sim->memories.push_back(memory);
    return memory.depth;
}

// A piece of the memory begun last.
API void lockstep_memory_piece(Sim* sim, uint32_t low, uint32_t width, uint64_t offset, uint32_t size, uint64_t pitch) {
    const uint32_t number = sim->memories.size() - 1;
    Memory& memory = sim->memories.back();
    std::vector<Chunk> chunks;
    add_chunks(chunks, memory.verilated, memory.verilated_pitch, sim->fast_state + offset, number, low, width, size);
    const uint64_t end = offset + (memory.depth - 1) * pitch + size;
    for (uint64_t block = offset / BLOCK; block <= (end - 1) / BLOCK; block++)
        sim->fast_blocks[block].push_back({number, (uint32_t)memory.chunks.size()});
    for (const Chunk& chunk : chunks) memory.chunks.push_back({chunk, memory.verilated_pitch, pitch});
}

// Compares everything, whether it changed or not; what is kept to notice changes begins anew.
API int lockstep_compare_all(Sim* sim) {
    sim_settle(sim);
    compare_outputs(sim);
    for (const Chunk& c : sim->registers) compare(sim, c, REGISTER, 0, 0, 0);
    for (const Memory& memory : sim->memories)
        for (size_t row = 0; row < memory.depth; row++) compare_row(sim, memory, row);
    std::memcpy(sim->fast_shadow.data(), sim->fast_state, sim->fast_shadow.size());
    return sim->failed;
}

API uint64_t lockstep_compared(const Sim* sim) { return sim->compared; }

API uint32_t lockstep_differences(const Sim* sim, Difference* to, uint32_t limit) {
    const uint32_t count = std::min<size_t>(limit, sim->differences.size());
    std::copy_n(sim->differences.begin(), count, to);
    return count;
}

// All public variables of the Verilated chip, one a line: scope, a tab, the name.
API const char* lockstep_variables(Sim* sim) {
    static std::string text;
    text.clear();
    for (const auto& [name, scope] : *sim->context.scopeNameMap()) {
        if (!scope->varsp()) continue;
        for (const auto& variable : *scope->varsp()) text += std::string(name) + "\t" + variable.first + "\n";
    }
    return text.c_str();
}

// Traffic that no host and no memory would make.

static uint64_t random_state, cycles_between_resets;

static uint64_t random_bits() {  // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1D;
}

static uint64_t random_input(const char* name, uint32_t width, const uint32_t* addresses, uint32_t count) {
    const uint64_t value = random_bits();
    if (std::strstr(name, "addr") && value % 8) return addresses[random_bits() % count];
    if (!std::strcmp(name, "restart")) return value % cycles_between_resets == 0;
    return value & ones(width);
}

// `cycles` with random values on all inputs; the DRAM stands still. `widths` are those of the inputs, in order.
API int lockstep_noise(Sim* sim, uint64_t seed, uint64_t cycles, const uint32_t* widths, const uint32_t* addresses,
                       uint32_t count) {
    random_state = seed * 2 + 1;
    cycles_between_resets = seed % 2 ? 4096 : 64;
    for (; cycles && !sim->failed; cycles--) {
        for (size_t i = 0; i < sim->inputs.size(); i++) {
            if (random_bits() % 4 == 0) continue;
            const Input& input = sim->inputs[i];
            if (widths[i] <= 64) {
                const uint64_t value = random_input(input.name, widths[i], addresses, count);
                std::memcpy(input.verilated, &value, input.bytes);
                continue;
            }
            for (size_t at = 0; at < widths[i] / 8; at += 8) {
                const uint64_t value = random_bits();
                std::memcpy((uint8_t*)input.verilated + at, &value, 8);
            }
        }
        sim_settle(sim);
        if (!compare_outputs(sim)) clock_edge(sim);
    }
    for (const Input& input : sim->inputs) std::memset(input.verilated, 0, input.bytes);
    sim_drive(sim);
    sim_settle(sim);
    return sim->failed;
}

// Holds the chip's reset input for some cycles while everything else goes on.
API int lockstep_restart(Sim* sim, uint64_t cycles) {
    SET(sim, restart, 1);
    const int status = sley_step(sim, cycles);
    SET(sim, restart, 0);
    return status;
}
