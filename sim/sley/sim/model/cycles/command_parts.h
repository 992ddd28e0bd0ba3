// What the parts of the command processor hand to each other: sley.hw.command.records, words and executor.
#pragma once

#include "abi.h"
#include "twin.h"

enum { QUEUES_MAX = 8 };

typedef struct BlockFault {
    uint32_t code, unit, core, pc, block, address;
} BlockFault;

#define BLOCK_FAULT_PORTS(PORT, name, path, when)                                                               \
    PORT(name.code, path ".code" when) PORT(name.unit, path ".unit" when) PORT(name.core, path ".core" when)    \
    PORT(name.pc, path ".pc" when) PORT(name.block, path ".block" when) PORT(name.address, path ".address" when)

typedef struct GridOrder {
    uint32_t context, watchdog, program_words, arg_words, gang;
} GridOrder;

#define LAUNCH_PORTS(PORT, queue, grid, path, when)                                                             \
    PORT(queue, path ".payload.queue" when) PORT(grid.context, path ".payload.grid.context" when)               \
    PORT(grid.watchdog, path ".payload.grid.watchdog" when)                                                     \
    PORT(grid.program_words, path ".payload.grid.program_words" when)                                           \
    PORT(grid.arg_words, path ".payload.grid.arg_words" when) PORT(grid.gang, path ".payload.grid.gang" when)

typedef struct WorkResult {
    uint32_t queue;
    BlockFault fault;
} WorkResult;

#define WORK_RESULT_PORTS(PORT, name, path, when) \
    PORT(name.queue, path ".payload.queue" when) BLOCK_FAULT_PORTS(PORT, name.fault, path ".payload.fault", when)

typedef struct CopyCommand {
    uint32_t queue, context, fill, value, src, dst, bytes;
} CopyCommand;

#define COPY_COMMAND_PORTS(PORT, name, path, when)                                                              \
    PORT(name.queue, path ".payload.queue" when) PORT(name.context, path ".payload.job.context" when)           \
    PORT(name.fill, path ".payload.job.fill" when) PORT(name.value, path ".payload.job.value" when)             \
    PORT(name.src, path ".payload.job.src" when) PORT(name.dst, path ".payload.job.dst" when)                   \
    PORT(name.bytes, path ".payload.job.bytes" when)

typedef struct WordCommand {
    uint32_t write, context, addr, size, line[FENCE_BYTES / 4];
} WordCommand;

// `written`: the port while which what is written means something.
#define WORD_COMMAND_PORTS(PORT, name, path, when, written)                                                     \
    PORT(name.write, path ".payload.write" when) PORT(name.context, path ".payload.context" when)               \
    PORT(name.addr, path ".payload.addr" when) PORT(name.size, path ".payload.size" when)                       \
    PORT(name.line[0], path ".payload.line@0" written) PORT(name.line[1], path ".payload.line@1" written)       \
    PORT(name.line[2], path ".payload.line@2" written) PORT(name.line[3], path ".payload.line@3" written)

#define PRIORITY_PORTS(PORT, name, path)                                                                        \
    PORT(name[0], path "[0]") PORT(name[1], "~" path "[1]") PORT(name[2], "~" path "[2]")                       \
    PORT(name[3], "~" path "[3]") PORT(name[4], "~" path "[4]") PORT(name[5], "~" path "[5]")                   \
    PORT(name[6], "~" path "[6]") PORT(name[7], "~" path "[7]")

static inline uint32_t access_fault(uint32_t error) {
    return error == ERROR_PAGE ? FAULT_PAGE_FAULT : error == ERROR_PERMISSION ? FAULT_PERMISSION : FAULT_BUS_ERROR;
}
