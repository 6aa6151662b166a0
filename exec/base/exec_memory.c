/* exec_memory.c - host memory for buffers, and host views of any memory. */
#include "exec/base/exec_memory.h"
#include "base/alloc.h"
#include "exec/base/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

/* One anonymous mapping whose result is aligned to a huge page. The page before it stores the mapping's
 * start. */
static hp_status host_alloc(const hp_memory *m, int64_t bytes, void **at, hp_error *err) {
    (void)m;
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

static void host_free(const hp_memory *m, void *at, int64_t bytes) {
    (void)m;
    if (at) munmap(((void **)at)[-1], (size_t)bytes + 2 * HUGE_PAGE);
}

static hp_status host_copy(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err) {
    (void)m, (void)err;
    memcpy(to, from, (size_t)bytes);
    return HP_OK;
}

static hp_status host_zero(const hp_memory *m, void *at, int64_t bytes, hp_error *err) {
    (void)m, (void)err;
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

/* --- shared with the node's other processes --- */

static hp_status shared_alloc(const hp_memory *m, int64_t bytes, void **at, hp_error *err) {
    (void)m;
    HP_TRY(hp_shared_new(bytes, at, err));
    const hp_status s = hp_shared_reserve(*at, err);
    if (s == HP_OK) return HP_OK;
    hp_shared_free(*at);
    *at = NULL;
    return s;
}

static void shared_free(const hp_memory *m, void *at, int64_t bytes) {
    (void)m, (void)bytes;
    hp_shared_free(at);
}

static hp_status shared_name(const hp_memory *m, void *at, hp_memory_name *name, hp_error *err) {
    (void)m;
    return hp_shared_name(at, name, err);
}

static hp_status shared_open(const hp_memory *m, const hp_memory_name *name, void **at, hp_error *err) {
    (void)m;
    return hp_shared_open(name, false, at, err);
}

static void shared_close(const hp_memory *m, void *at) {
    (void)m;
    hp_shared_free(at);
}

static const hp_peer_ops SHARED_PEERS = {.name = shared_name, .open = shared_open, .close = shared_close};

const hp_memory_ops hp_memory_shared = {.name = "shared",
                                        .alloc = shared_alloc,
                                        .free = shared_free,
                                        .put = host_copy,
                                        .get = host_copy,
                                        .zero = host_zero,
                                        .host = true,
                                        .peers = &SHARED_PEERS};

/* --- any memory --- */

hp_status hp_memory_open(const hp_memory_ops *ops, const struct hp_placement *ranks, hp_memory *m,
                         hp_error *err) {
    *m = (hp_memory){.ops = ops};
    return ops->open ? ops->open(m, ranks, err) : HP_OK;
}

void hp_memory_close(hp_memory *m) {
    if (m->ops && m->ops->close) m->ops->close(m);
    *m = (hp_memory){0};
}

hp_status hp_memory_view(const hp_memory *m, void *at, int64_t bytes, void **view, hp_error *err) {
    *view = at;
    if (m->ops->host) return HP_OK;
    *view = hp_alloc((size_t)bytes + 1);
    const hp_status s = m->ops->get(m, *view, at, bytes, err);
    if (s == HP_OK) return HP_OK;
    free(*view);
    *view = NULL;
    return s;
}

hp_status hp_memory_view_end(const hp_memory *m, void *at, int64_t bytes, void *view, bool changed,
                             hp_error *err) {
    if (m->ops->host || !view) return HP_OK;
    const hp_status s = changed ? m->ops->put(m, at, view, bytes, err) : HP_OK;
    free(view);
    return s;
}
