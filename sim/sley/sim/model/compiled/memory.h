// Device memory, and what a context sees of it through its page tables.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

#define PAGE_SIZE (1u << PAGE_BITS)
#define PAGES (1u << (32 - PAGE_BITS))

// A translation that is remembered: the page with the rights to it, shifted behind both flags.
enum { SEEN = 1, PRESENT = 2, RIGHTS_SHIFT = 2, SEEN_BITS = 5 };

typedef struct Space {
    uint32_t mode, table;
    uint32_t* seen;  // by page
} Space;

typedef struct Memory {
    uint8_t* data;
    uint64_t size;
#ifdef SANITIZE
    uint8_t* shadow;     // what is known of each byte
    struct Line* lines;  // who accessed them
    int watched;         // somebody says which bytes belong to whom
#endif
    Space spaces[CONTEXTS + 1];  // the last one is that of contexts that do not exist, and sees nothing
} Memory;

// Why an access is refused: a fault code, and the first byte.
typedef struct Refused {
    uint32_t code;
    uint64_t address;
} Refused;

static inline Space* memory_space(Memory* memory, uint32_t context) {
    return &memory->spaces[context < CONTEXTS ? context : CONTEXTS];
}

static int memory_entry(const Memory* memory, uint32_t table, uint32_t index, uint32_t* entry) {
    uint64_t address = ((uint64_t)table << PAGE_BITS) + ENTRY_BYTES * index;
    if (address + ENTRY_BYTES > memory->size) return 0;
    memcpy(entry, memory->data + address, ENTRY_BYTES);
    return ENTRY_VALID(*entry) && !(*entry & ~PAGE_ENTRY_MASK);
}

static uint32_t entry_rights(uint32_t w) {
    return ENTRY_READ(w) << NEED_READ | ENTRY_WRITE(w) << NEED_WRITE | ENTRY_EXECUTE(w) << NEED_EXECUTE;
}

static uint32_t memory_walk(const Memory* memory, const Space* space, uint32_t page) {
    uint32_t entry, lower = page & ((1u << TABLE_BITS) - 1);
    if (space->mode != MODE_PAGED || !memory_entry(memory, space->table, page >> TABLE_BITS, &entry)) return SEEN;
    uint32_t physical = ENTRY_PAGE(entry), rights = entry_rights(entry);
    if (rights) {
        if (physical & ((1u << TABLE_BITS) - 1)) return SEEN;
        physical |= lower;
    } else {
        if (!memory_entry(memory, physical, lower, &entry)) return SEEN;
        physical = ENTRY_PAGE(entry), rights = entry_rights(entry);
    }
    return SEEN | PRESENT | rights << RIGHTS_SHIFT | physical << SEEN_BITS;
}

// The bytes from an address on that lie side by side in memory, at most `length`, or NULL with what refuses them.
static uint8_t* memory_piece(Memory* memory, Space* space, uint64_t address, uint64_t length, int need, uint64_t* size,
                             Refused* refused) {
    uint64_t physical = address;
    *size = length;
    if (space->mode != MODE_PHYSICAL) {
        uint32_t page = (uint32_t)(address >> PAGE_BITS) & (PAGES - 1), offset = address & (PAGE_SIZE - 1);
        if (!space->seen) space->seen = calloc(PAGES, sizeof *space->seen);
        if (!space->seen[page]) space->seen[page] = memory_walk(memory, space, page);
        uint32_t seen = space->seen[page];
        if (!(seen & PRESENT) || !(seen >> RIGHTS_SHIFT >> need & 1)) {
            *refused = (Refused){seen & PRESENT ? FAULT_PERMISSION : FAULT_PAGE_FAULT, address};
            return 0;
        }
        if (*size > PAGE_SIZE - offset) *size = PAGE_SIZE - offset;
        physical = (uint64_t)(seen >> SEEN_BITS) << PAGE_BITS | offset;
    }
    if (physical + *size > memory->size) {
        uint64_t inside = physical < memory->size ? memory->size - physical : 0;
        *refused = (Refused){FAULT_BUS_ERROR, address + inside};
        return 0;
    }
    return memory->data + physical;
}

// Copies up to what is refused; returns whether nothing was.
static int memory_read(Memory* memory, Space* space, uint64_t address, uint8_t* to, uint64_t length, Refused* refused) {
    while (length) {
        uint64_t size;
        const uint8_t* from = memory_piece(memory, space, address, length, NEED_READ, &size, refused);
        if (!from) return 0;
        memcpy(to, from, size);
        to += size, address += size, length -= size;
    }
    return 1;
}

static int memory_check(Memory* memory, Space* space, uint64_t address, uint64_t length, int need, Refused* refused) {
    while (length) {
        uint64_t size;
        if (!memory_piece(memory, space, address, length, need, &size, refused)) return 0;
        address += size, length -= size;
    }
    return 1;
}

// Of bytes that memory_check has found.
static void memory_write(Memory* memory, Space* space, uint64_t address, const uint8_t* from, uint64_t length) {
    Refused refused;
    while (length) {
        uint64_t size;
        uint8_t* to = memory_piece(memory, space, address, length, NEED_WRITE, &size, &refused);
        memcpy(to, from, size);
        from += size, address += size, length -= size;
    }
}
