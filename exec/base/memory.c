/* memory.c - host memory for buffers, and host views of any memory. */
#include "exec/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

/* One anonymous mapping whose result is aligned to a huge page. The page before it stores the mapping's
 * start. */
static hp_status host_alloc(int64_t bytes, void **at, hp_error *err) {
    const size_t room = (size_t)bytes + 2 * HUGE_PAGE;
    unsigned char *map =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return hp_fail(err, HP_EPLAN, "%s", strerror(errno));
    unsigned char *begin = map + 2 * HUGE_PAGE - (uintptr_t)map % HUGE_PAGE;
    ((void **)(void *)begin)[-1] = map;
    madvise(begin, (size_t)bytes, MADV_HUGEPAGE);
    *at = begin;
    return HP_OK;
}

static void host_free(void *at, int64_t bytes) {
    if (at) munmap(((void **)at)[-1], (size_t)bytes + 2 * HUGE_PAGE);
}

static hp_status host_copy(void *to, const void *from, int64_t bytes, hp_error *err) {
    (void)err;
    memcpy(to, from, (size_t)bytes);
    return HP_OK;
}

static hp_status host_zero(void *at, int64_t bytes, hp_error *err) {
    (void)err;
    memset(at, 0, (size_t)bytes);
    return HP_OK;
}

const hp_memory_ops hp_memory_host = {.name = "host",
                                      .alloc = host_alloc,
                                      .free = host_free,
                                      .put = host_copy,
                                      .get = host_copy,
                                      .zero = host_zero,
                                      .host = true};

hp_status hp_memory_view(const hp_memory_ops *m, void *at, int64_t bytes, void **view, hp_error *err) {
    *view = at;
    if (m->host) return HP_OK;
    *view = malloc((size_t)bytes + 1);
    HP_ASSERT(*view);
    const hp_status s = m->get(*view, at, bytes, err);
    if (s == HP_OK) return HP_OK;
    free(*view);
    *view = NULL;
    return s;
}

hp_status hp_memory_view_end(const hp_memory_ops *m, void *at, int64_t bytes, void *view, bool changed,
                             hp_error *err) {
    if (m->host || !view) return HP_OK;
    const hp_status s = changed ? m->put(at, view, bytes, err) : HP_OK;
    free(view);
    return s;
}
