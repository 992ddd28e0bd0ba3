// The twin of sley.hw.mmu.tlb: translations that a node holds.
#pragma once

#include "abi.h"
#include "twin.h"

typedef struct Translation {
    uint32_t page, difference;  // of which page, and in which bits the page's address differs
    uint8_t valid, context, access, large;
} Translation;

typedef struct Tlb {
    Translation entries[TLB_ENTRIES];
    uint32_t victim, hint;
    int overlaps;  // several entries may match
    uint32_t hit, allowed, page;
} Tlb;

static inline int translation_matches(const Translation* t, uint32_t context, uint32_t page) {
    return t->valid && t->context == context && !((t->page ^ page) >> (t->large ? TABLE_BITS : 0));
}

// Sets `hit`, `allowed` and `page` of a page for an access, a bit each to read, write and execute.
static void tlb_look(Tlb* t, uint32_t context, uint32_t page, uint32_t access) {
    const Translation* last = &t->entries[t->hint];
    if (!t->overlaps && translation_matches(last, context, page)) {
        t->hit = 1;
        t->allowed = (last->access & access) != 0;
        t->page = page ^ last->difference;
        return;
    }
    uint32_t difference = 0;
    t->hit = t->allowed = 0;
    for (uint32_t k = 0; k < TLB_ENTRIES; ++k)
        if (translation_matches(&t->entries[k], context, page)) {
            t->hit = 1;
            t->allowed |= (t->entries[k].access & access) != 0;
            difference |= t->entries[k].difference;
            t->hint = k;
        }
    t->page = page ^ difference;
}

// The answer to a WALK, for a page that does not hit.
static void tlb_fill(Tlb* t, uint32_t context, uint32_t page, uint32_t answer) {
    Translation* entry = &t->entries[t->victim];
    uint32_t difference = ANSWER_PAGE(answer) ^ page, large = ANSWER_LARGE(answer);
    entry->valid = 0;
    for (uint32_t k = 0; large && k < TLB_ENTRIES; ++k)
        t->overlaps |= t->entries[k].valid && t->entries[k].context == context &&
                       t->entries[k].page >> TABLE_BITS == page >> TABLE_BITS;
    *entry = (Translation){page,
                           large ? difference & ~((1u << TABLE_BITS) - 1) : difference,
                           1,
                           context,
                           ANSWER_READ(answer) | ANSWER_WRITE(answer) << 1 | ANSWER_EXECUTE(answer) << 2,
                           large};
    t->hint = t->victim;
    t->victim = t->victim == TLB_ENTRIES - 1 ? 0 : t->victim + 1;
}

static void tlb_forget(Tlb* t, uint32_t context) {
    for (uint32_t k = 0; k < TLB_ENTRIES; ++k)
        if (t->entries[k].context == context) t->entries[k].valid = 0;
}
