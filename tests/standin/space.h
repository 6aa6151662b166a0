/* space.h - where a GPU's memory lies. Its addresses are a range where nothing is mapped, so that whatever
 * the host does with them other than passing them on is a fault; the bytes lie at the same place of another
 * range, a file's, so that other processes can map them, the pages between allocations out of reach.
 * Addresses are never given twice. */
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
    std::map<size_t, struct opened> opened; /* offset: other processes' memory, in `device` as well */
    struct sigaction before = {};
    space();
    /* Offset of byte `begin` in so many new pages; 0: no address is left. The lock is held, as below. */
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

/* Ends the process where another one has this allocation open: CUDA leaves undefined what comes of freeing
 * it. */
void standin_check_unopened(size_t offset);
bool standin_is_opened(const void *p);

#endif
