/* space.h - where a GPU's memory lies. Device addresses are a range without mappings, so any use by the
 * host, except passing them on, faults. The bytes lie at the same offset in another range, mapped from a
 * file so that other processes can map it, too; the pages between allocations are inaccessible.
 * Addresses are never reused. */
#ifndef HP_TESTS_SPACE_H
#define HP_TESTS_SPACE_H

#include "tests/standin/runtime.h"

#include <map>
#include <signal.h>

struct space {
    static constexpr size_t RANGE = (size_t)1 << 40, PAGE = 4096;
    const int file;
    unsigned char *const fake, *const real;
    size_t next = PAGE, used = 0;
    std::mutex lock;
    std::map<size_t, size_t> device;        /* offset, bytes */
    std::map<const void *, size_t> pinned;  /* address, bytes */
    std::map<size_t, struct opened> opened; /* by offset: other processes' memory, which is
                                             * in `device` as well */
    struct sigaction before = {};
    space();
    /* Offset of byte `begin` in `pages` new pages; 0: out of addresses. The lock must be held, as below. */
    size_t take(size_t pages, size_t begin);
    void give_back(size_t first, size_t pages);
    void publish() const;
};

struct opened { /* by this process */
    int pid;
    size_t theirs; /* offset there */
    int times;
    void *count; /* theirs, see ipc.cc */
};

space &memory();
size_t whole(size_t bytes, size_t unit); /* units' bytes */

/* Ends the process if another one has this allocation open: CUDA leaves the effect of
 * freeing it undefined. */
void standin_check_unopened(size_t offset);
bool standin_is_opened(const void *p);

#endif
