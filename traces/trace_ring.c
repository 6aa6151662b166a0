/* trace_ring.c - spans in a memory-mapped file, so that a rank's records survive it.
 *
 * Layout: one header page, the span slots, the sample slots. Each array has one slot more than its capacity.
 * The slot after the head may be half written when the rank is killed, so the reader skips it and still gets
 * `capacity` complete entries. Heads count entries ever written and are stored (release) after the entry. */
#include "traces/trace_ring.h"
#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const hp_counter_names[HP_COUNTERS] = {
#define COUNTER(id, name, unit) name,
#include "traces/counters.def"
#undef COUNTER
};

const char *const hp_yardstick_names[HP_YARDSTICKS] = {
#define YARDSTICK(id, name, bound) name,
#include "traces/yardsticks.def"
#undef YARDSTICK
};

enum { HEADER_BYTES = 4096, RING_VERSION = 1 };
static const char magic[8] = "hp-ring";
static const int64_t max_capacity = (int64_t)1
                                    << 32; /* 96 GiB of spans: far above any use, keeps products in range */
static const uint32_t byte_order = 0x01020304; /* a ring from a machine with another byte order is refused */

typedef struct ring_header {
    char magic[8];
    uint32_t version, byte_order;
    int32_t rank, role;
    int64_t span_capacity, sample_capacity;
    _Atomic uint64_t span_head, sample_head; /* entries ever written */
} ring_header;

_Static_assert(sizeof(ring_header) <= HEADER_BYTES, "the header fits its page");
_Static_assert(sizeof(hp_span) == 24 && sizeof(hp_sample) == 24, "entries have no padding");

struct hp_ring {
    ring_header *header;
    hp_span *span;
    hp_sample *sample;
    size_t bytes;
    int64_t span_slot, sample_slot; /* next to write */
};

static size_t ring_bytes(int64_t span_capacity, int64_t sample_capacity) {
    return HEADER_BYTES + ((size_t)span_capacity + 1) * sizeof(hp_span) +
           ((size_t)sample_capacity + 1) * sizeof(hp_sample);
}

/* Reserves every block now, so that no later write through the mapping can hit a full disk. */
static hp_status reserve(int fd, const char *path, size_t bytes, hp_error *err) {
    const int e = posix_fallocate(fd, 0, (off_t)bytes);
    if (e == 0) return HP_OK;
    return hp_fail(
        err, HP_EIO,
        "%s: cannot reserve %zu bytes for the trace: %s; free disk space or give --trace elsewhere", path,
        bytes, strerror(e));
}

static hp_status map_file(int fd, const char *path, size_t bytes, ring_header **header, hp_error *err) {
    HP_TRY(reserve(fd, path, bytes, err));
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED)
        return hp_fail(err, HP_EIO, "%s: cannot map %zu bytes: %s", path, bytes, strerror(errno));
    *header = p;
    return HP_OK;
}

static void fill_header(ring_header *h, int rank, int role, int64_t span_capacity, int64_t sample_capacity) {
    memcpy(h->magic, magic, sizeof magic);
    h->version = RING_VERSION;
    h->byte_order = byte_order;
    h->rank = rank;
    h->role = role;
    h->span_capacity = span_capacity;
    h->sample_capacity = sample_capacity;
}

hp_status hp_ring_create(const char *path, int rank, int role, int64_t span_capacity, int64_t sample_capacity,
                         hp_ring **ring, hp_error *err) {
    HP_ASSERT(span_capacity > 0 && span_capacity <= max_capacity);
    HP_ASSERT(sample_capacity > 0 && sample_capacity <= max_capacity);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return hp_fail(err, HP_ECREATE, "%s: cannot create the trace: %s", path, strerror(errno));
    const size_t bytes = ring_bytes(span_capacity, sample_capacity);
    ring_header *header = NULL;
    const hp_status status = map_file(fd, path, bytes, &header, err);
    close(fd);
    if (status != HP_OK) {
        unlink(path);
        return status;
    }
    fill_header(header, rank, role, span_capacity, sample_capacity);
    hp_ring *r = hp_zeroed(1, sizeof *r);
    r->header = header;
    r->span = (hp_span *)((char *)header + HEADER_BYTES);
    r->sample = (hp_sample *)(r->span + span_capacity + 1);
    r->bytes = bytes;
    *ring = r;
    return HP_OK;
}

/* Publishes the entry just written to `slot`; returns the slot after it. */
static int64_t advance(_Atomic uint64_t *head, int64_t slot, int64_t capacity) {
    const uint64_t n = atomic_load_explicit(head, memory_order_relaxed);
    atomic_store_explicit(head, n + 1, memory_order_release);
    return slot == capacity ? 0 : slot + 1;
}

void hp_ring_span(hp_ring *r, hp_span s) {
    r->span[r->span_slot] = s;
    r->span_slot = advance(&r->header->span_head, r->span_slot, r->header->span_capacity);
}

void hp_ring_sample(hp_ring *r, hp_sample s) {
    r->sample[r->sample_slot] = s;
    r->sample_slot = advance(&r->header->sample_head, r->sample_slot, r->header->sample_capacity);
}

void hp_ring_close(hp_ring *r) {
    if (!r) return;
    munmap(r->header, r->bytes);
    free(r);
}

/* --- reading --- */

static hp_status check_header(const char *path, const ring_header *h, size_t bytes, hp_error *err) {
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->byte_order != byte_order)
        return hp_fail(err, HP_EDATA, "%s: not a trace ring of this machine", path);
    if (h->version != RING_VERSION)
        return hp_fail(err, HP_EDATA, "%s: ring version %u, this hplan reads %d", path, h->version,
                       RING_VERSION);
    const bool sane = h->rank >= 0 && h->role >= 0 && h->span_capacity > 0 &&
                      h->span_capacity <= max_capacity && h->sample_capacity > 0 &&
                      h->sample_capacity <= max_capacity;
    if (!sane) return hp_fail(err, HP_EDATA, "%s: impossible numbers in the ring's header", path);
    const size_t want = ring_bytes(h->span_capacity, h->sample_capacity);
    if (bytes == want) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: %zu bytes, its header says %zu: cut off", path, bytes, want);
}

/* Copies the newest entries of an array of capacity + 1 slots, oldest first; returns how many. */
static int64_t copy_entries(const void *slots, size_t size, int64_t capacity, uint64_t head, void **out) {
    const int64_t n = head < (uint64_t)capacity ? (int64_t)head : capacity;
    const uint64_t n_slot = (uint64_t)capacity + 1;
    char *copy = hp_alloc((size_t)n * size);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t slot = (head - (uint64_t)n + (uint64_t)i) % n_slot;
        memcpy(copy + (size_t)i * size, (const char *)slots + slot * size, size);
    }
    *out = copy;
    return n;
}

static bool entries_possible(const hp_ring_data *d) {
    for (int64_t i = 0; i < d->n_span; i++)
        if (d->span[i].task < 0 || d->span[i].t1_ns < d->span[i].t0_ns) return false;
    for (int64_t i = 0; i < d->n_sample; i++)
        if (d->sample[i].name < 0 || d->sample[i].name >= HP_COUNTERS) return false;
    return true;
}

static hp_status read_mapped(const char *path, const ring_header *h, size_t bytes, hp_ring_data *d,
                             hp_error *err) {
    HP_TRY(check_header(path, h, bytes, err));
    const uint64_t span_head = atomic_load_explicit(&h->span_head, memory_order_acquire);
    const uint64_t sample_head = atomic_load_explicit(&h->sample_head, memory_order_acquire);
    const hp_span *span = (const hp_span *)((const char *)h + HEADER_BYTES);
    const hp_sample *sample = (const hp_sample *)(span + h->span_capacity + 1);
    if (span_head > INT64_MAX / 2 || sample_head > INT64_MAX / 2)
        return hp_fail(err, HP_EDATA, "%s: impossible counts in the ring's header", path);
    d->rank = h->rank;
    d->role = h->role;
    d->n_span = copy_entries(span, sizeof *span, h->span_capacity, span_head, (void **)&d->span);
    d->n_sample = copy_entries(sample, sizeof *sample, h->sample_capacity, sample_head, (void **)&d->sample);
    d->dropped = (int64_t)span_head - d->n_span;
    if (!entries_possible(d)) return hp_fail(err, HP_EDATA, "%s: impossible entries in the ring", path);
    return HP_OK;
}

/* Maps a regular file of at least a header for reading. */
static hp_status map_for_reading(const char *path, const ring_header **h, size_t *bytes, hp_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return hp_fail(err, HP_EDATA, "%s: cannot read the trace: %s", path, strerror(errno));
    struct stat st;
    const bool whole = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= HEADER_BYTES;
    void *p = MAP_FAILED;
    if (whole) p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (!whole) return hp_fail(err, HP_EDATA, "%s: not a trace ring (too short)", path);
    if (p == MAP_FAILED) return hp_fail(err, HP_EDATA, "%s: cannot map: %s", path, strerror(errno));
    *h = p;
    *bytes = (size_t)st.st_size;
    return HP_OK;
}

hp_status hp_ring_read(const char *path, hp_ring_data *data, hp_error *err) {
    memset(data, 0, sizeof *data);
    const ring_header *h = NULL;
    size_t bytes = 0;
    HP_TRY(map_for_reading(path, &h, &bytes, err));
    const hp_status status = read_mapped(path, h, bytes, data, err);
    munmap((void *)(uintptr_t)h, bytes);
    if (status != HP_OK) hp_ring_free(data);
    return status;
}

void hp_ring_free(hp_ring_data *data) {
    free(data->span);
    free(data->sample);
    memset(data, 0, sizeof *data);
}
