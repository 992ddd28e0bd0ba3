// DRAM behind an AXI4 manager, cycle by cycle. The rule is published in dram.py, which is the same in Python.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace sley {

struct DramTiming {
    uint32_t latency, burst_gap, depth;
};

struct AddressBeat {
    bool valid;
    uint8_t id;
    uint64_t address;
    uint8_t len, size, burst;
};

template <unsigned BusBytes>
class Dram {
  public:
    // Outputs in the current cycle.
    bool awready = true, wready = false, bvalid = false, arready = true, rvalid = false, rlast = false;
    uint8_t bid = 0, bresp = 0, rid = 0, rresp = 0;
    uint8_t rdata[BusBytes] = {};
    // Set for good when the manager broke a rule.
    const char* violation = nullptr;

    Dram(uint64_t bytes, DramTiming timing)
        : bytes_(bytes), timing_(timing), memory_(static_cast<uint8_t*>(std::calloc(bytes, 1))) {}
    ~Dram() { std::free(memory_); }
    Dram(const Dram&) = delete;
    Dram& operator=(const Dram&) = delete;

    uint8_t* memory() { return memory_; }
    uint64_t cycle() const { return cycle_; }

    // Ends the current cycle with these inputs; the outputs are then those of the next cycle.
    void edge(const AddressBeat& aw, bool wvalid, const void* wdata, const void* wstrb, bool wlast, bool bready,
              const AddressBeat& ar, bool rready) {
        const uint64_t now = cycle_, next = ++cycle_;
        if (!(aw.valid || ar.valid) && idle()) return;

        if (wvalid && wready) write_beat(writes_.front(), wdata, wstrb, wlast);
        if (bvalid && bready) responses_.pop_front();
        if (aw.valid && awready) push(writes_, aw, write_end_, next);
        if (rvalid && rready) {
            Burst& head = reads_.front();
            head.address += BusBytes;
            head.earliest = 0;
            rvalid = false;
            if (!--head.beats) {
                reads_.pop_front();
                read_free_ = next;
            }
        }
        if (ar.valid && arready) push(reads_, ar, read_end_, now + timing_.latency);

        awready = writes_.size() < timing_.depth;
        arready = reads_.size() < timing_.depth;
        wready = !writes_.empty() && next >= writes_.front().earliest && next >= write_free_ + writes_.front().gap;
        bvalid = !responses_.empty() && next >= responses_.front().due;
        if (!responses_.empty()) {
            bid = responses_.front().id;
            bresp = responses_.front().resp;
        }
        if (!rvalid && !reads_.empty()) {
            Burst& head = reads_.front();
            if (next >= head.earliest && next >= read_free_ + head.gap) offer(head);
        }
    }

  private:
    static constexpr uint8_t kOkay = 0, kDecErr = 3, kIncr = 1;
    static constexpr uint64_t kBoundary = 4096, kNone = ~uint64_t{0};

    struct Burst {
        uint64_t address;
        uint32_t beats;
        uint64_t earliest;
        uint32_t gap;
        uint8_t id;
        bool error;
    };
    struct Response {
        uint64_t due;
        uint8_t id, resp;
    };

    uint64_t bytes_;
    DramTiming timing_;
    uint8_t* memory_;
    uint64_t cycle_ = 0;
    std::deque<Burst> reads_, writes_;
    std::deque<Response> responses_;
    uint64_t read_end_ = kNone, write_end_ = kNone;  // address after the youngest burst
    uint64_t read_free_ = 0, write_free_ = 0;        // first cycle after the last beat of the burst served last

    bool idle() const { return reads_.empty() && writes_.empty() && responses_.empty(); }

    void push(std::deque<Burst>& queue, const AddressBeat& a, uint64_t& end, uint64_t earliest) {
        const uint64_t start = a.address & ~uint64_t{BusBytes - 1};
        const uint64_t bytes = (uint64_t{a.len} + 1) * BusBytes;
        if ((1u << a.size) != BusBytes || a.burst != kIncr)
            violation = "a burst that is not INCR or not of the full bus width";
        else if (start / kBoundary != (start + bytes - 1) / kBoundary)
            violation = "a burst across a 4096-byte boundary";
        const uint32_t gap = end == kNone || end == start ? 0 : timing_.burst_gap;
        queue.push_back({start, a.len + 1u, earliest, gap, a.id, false});
        end = start + bytes;
    }

    void write_beat(Burst& head, const void* data, const void* strobes, bool last) {
        if (last != (head.beats == 1)) violation = "wlast is not on the last beat of the burst";
        if (head.address + BusBytes > bytes_) {
            head.error = true;
        } else {
            uint8_t strobe[(BusBytes + 7) / 8];
            std::memcpy(strobe, strobes, sizeof strobe);
            for (unsigned byte = 0; byte < BusBytes; byte++)
                if (strobe[byte / 8] >> (byte % 8) & 1)
                    memory_[head.address + byte] = static_cast<const uint8_t*>(data)[byte];
        }
        head.address += BusBytes;
        head.gap = 0;
        if (!--head.beats) {
            responses_.push_back({cycle_ - 1 + timing_.latency, head.id, head.error ? kDecErr : kOkay});
            writes_.pop_front();
            write_free_ = cycle_;
        }
    }

    void offer(Burst& head) {
        rvalid = true;
        rid = head.id;
        rlast = head.beats == 1;
        head.gap = 0;
        const bool inside = head.address + BusBytes <= bytes_;
        rresp = inside ? kOkay : kDecErr;
        if (inside)
            std::memcpy(rdata, memory_ + head.address, BusBytes);
        else
            std::memset(rdata, 0, BusBytes);
    }
};

}  // namespace sley
