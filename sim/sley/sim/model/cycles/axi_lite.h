// The twin of sley.hw.bus.axi_lite: AXI4-Lite in front of the registers.
#pragma once

#include "twin.h"

#define AXI_LITE_PORTS(IN, OUT)                                                                                   \
    IN(awvalid, "bus.awvalid") IN(awaddr, "bus.awaddr") IN(wvalid, "bus.wvalid") IN(wdata, "bus.wdata")           \
    IN(wstrb, "bus.wstrb") IN(bready, "bus.bready") IN(arvalid, "bus.arvalid") IN(araddr, "bus.araddr")           \
    IN(rready, "bus.rready") IN(read_data, "registers.read_data") IN(read_error, "registers.read_error")          \
    IN(write_error, "registers.write_error")                                                                      \
    OUT(awready, "bus.awready") OUT(wready, "bus.wready") OUT(bvalid, "bus.bvalid") OUT(bresp, "bus.bresp?bus.bvalid") \
    OUT(arready, "bus.arready") OUT(rvalid, "bus.rvalid") OUT(rdata, "bus.rdata?bus.rvalid")                      \
    OUT(rresp, "bus.rresp?bus.rvalid") OUT(read, "registers.read") OUT(read_address, "registers.read_address")    \
    OUT(write, "registers.write") OUT(write_address, "registers.write_address?registers.write")                   \
    OUT(write_data, "registers.write_data?registers.write")

enum { AXI_STROBES = 15, AXI_SLVERR = 2 };

typedef struct AxiLite {
    uint32_t awvalid, awaddr, wvalid, wdata, wstrb, bready, arvalid, araddr, rready, read_data, read_error, write_error;
    uint32_t awready, wready, bvalid, bresp, arready, rvalid, rdata, rresp;
    uint32_t read, read_address, write, write_address, write_data;

    uint32_t address_full, data_full, partial, refused, read_full, executes;
} AxiLite;

static void axi_lite_reset(AxiLite* a, const uint32_t* parameters) {}

static void axi_lite_outputs(AxiLite* a) {
    a->awready = !a->address_full;
    a->wready = !a->data_full;
    a->arready = !a->read_full;
    a->executes = a->address_full && a->data_full && !a->bvalid;
    a->write = a->executes && !a->partial;
    a->read = a->read_full && !a->rvalid;
    if (a->bvalid) a->bresp = a->refused || a->write_error ? AXI_SLVERR : 0;
    if (a->rvalid) {
        a->rdata = a->read_data;
        a->rresp = a->read_error ? AXI_SLVERR : 0;
    }
}

static void axi_lite_tick(AxiLite* a) {
    if (a->bvalid && a->bready) a->bvalid = 0;
    if (a->rvalid && a->rready) a->rvalid = 0;
    if (a->awvalid && a->awready) a->address_full = 1, a->write_address = a->awaddr;
    if (a->wvalid && a->wready) a->data_full = 1, a->write_data = a->wdata, a->partial = a->wstrb != AXI_STROBES;
    if (a->executes) {
        a->address_full = a->data_full = 0;
        a->bvalid = 1;
        a->refused = a->partial;
    }
    if (a->arvalid && a->arready) a->read_full = 1, a->read_address = a->araddr;
    if (a->read) a->read_full = 0, a->rvalid = 1;
}
