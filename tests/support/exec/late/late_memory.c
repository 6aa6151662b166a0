/* late_memory.c - memory of a device that works asynchronously. */
#include "tests/support/exec/late/late_memory.h"

_Atomic int64_t late_relaunched; /* number of captured tasks launched */

uint64_t late_seed; /* set before the ranks start */

/* --- memory --- */

static bool late_holds(const late_rank *r, const void *at) {
    const unsigned char *p = at;
    return p >= r->fake && p < r->fake + r->bytes;
}

static const late_peer *late_peer_of(const void *at) {
    for (int i = 0; i < late_me->n_peer; i++)
        if (late_holds(late_me->peer[i].rank, at)) return &late_me->peer[i];
    return NULL;
}

void *late_real(const void *at) {
    const late_peer *peer = late_peer_of(at);
    const late_rank *r = late_holds(late_me, at) ? late_me : peer ? peer->rank : NULL;
    HP_ASSERT(r);
    return r->real + ((const unsigned char *)at - r->fake);
}

static hp_status late_alloc(const hp_memory *m, int64_t bytes, void **at, hp_error *err) {
    (void)m;
    (void)err;
    late_rank *r = late_me = calloc(1, sizeof *r);
    HP_ASSERT(r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->moved, NULL);
    r->seed = late_seed;
    r->bytes = (size_t)(bytes + 4096) / 4096 * 4096;
    r->real = aligned_alloc(4096, r->bytes);
    r->fake = mmap(NULL, r->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HP_ASSERT(r->real && r->fake != MAP_FAILED);
    memset(r->real, 0, r->bytes);
    *at = r->fake;
    return HP_OK;
}

static void late_free(const hp_memory *m, void *at, int64_t bytes) {
    (void)m;
    late_rank *r = late_me;
    (void)at, (void)bytes;
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    for (late_stream *s = r->stream, *next; s; s = next) {
        next = s->next;
        pthread_join(s->thread, NULL);
        free(s);
    }
    munmap(r->fake, r->bytes);
    free(r->real);
    free(r->peer);
    free(r);
    late_me = NULL;
}

static hp_status late_put(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err) {
    (void)m;
    (void)err;
    late_drain();
    if (bytes) memcpy(late_real(to), from, (size_t)bytes);
    return HP_OK;
}

static hp_status late_get(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err) {
    (void)m;
    (void)err;
    late_drain();
    if (bytes) memcpy(to, late_real(from), (size_t)bytes);
    return HP_OK;
}

static hp_status late_zero(const hp_memory *m, void *at, int64_t bytes, hp_error *err) {
    (void)m;
    (void)err;
    late_drain();
    if (bytes) memset(late_real(at), 0, (size_t)bytes);
    return HP_OK;
}

static hp_status late_event_new(const hp_memory *m, hp_event **e, hp_error *err) {
    (void)m;
    (void)err;
    *e = calloc(1, sizeof **e);
    HP_ASSERT(*e);
    return HP_OK;
}

static void late_event_free(const hp_memory *m, hp_event *e) {
    (void)m;
    free(e);
}

hp_status late_query(const hp_memory *m, hp_event *e, bool *yes, hp_error *err) {
    (void)m;
    HP_ASSERT(!late_me->capture);
    pthread_mutex_lock(&late_me->lock);
    *yes = e->query >= e->recorded;
    const hp_status failed = late_me->failed;
    pthread_mutex_unlock(&late_me->lock);
    return failed == HP_OK ? HP_OK : hp_fail(err, failed, "a task of the late device failed");
}

static hp_status late_elapsed(const hp_memory *m, hp_event *from, hp_event *to, double *s, hp_error *err) {
    (void)m;
    (void)err;
    *s = (double)(to->at.tv_sec - from->at.tv_sec) + 1e-9 * (double)(to->at.tv_nsec - from->at.tv_nsec);
    return HP_OK;
}

static hp_status late_record(const hp_memory *m, hp_event *e, hp_error *err) {
    (void)m;
    (void)err;
    late_give(late_stream_of(0, 0, 0), &(hp_order){.done = e}, NULL, NULL);
    late_drain();
    return HP_OK;
}

typedef struct late_copy {
    void *to;
    const void *from;
    size_t bytes;
    bool wrong;
} late_copy;

static void late_do_copy(void *self) {
    const late_copy *c = self;
    if (c->bytes) memcpy(c->to, c->from, c->bytes);
    if (c->bytes && c->wrong) ((unsigned char *)c->to)[c->bytes / 2] ^= 1;
}

atomic_int late_straight, late_by_host, late_opened; /* number of copies and openings so far */

static hp_status late_copy_give(const hp_memory *m, hp_stream stream, void *to, const void *from,
                                int64_t bytes, const hp_order *order, hp_error *err) {
    (void)m;
    (void)err;
    late_copy *c = malloc(sizeof *c);
    const bool out = late_holds(late_me, from), in = late_holds(late_me, to);
    const late_peer *peer = late_peer_of(from);
    HP_ASSERT(c && out != in);
    (*(peer ? &late_straight : &late_by_host))++;
    *c = (late_copy){in ? late_real(to) : to, out || peer ? late_real(from) : from, (size_t)bytes,
                     peer && peer->wrong};
    late_give(late_stream_of((int)stream, 0, 0), order, late_do_copy, c);
    return HP_OK;
}

static hp_status late_host_new(const hp_memory *m, int64_t bytes, void **at, hp_error *err) {
    (void)m;
    (void)err;
    *at = malloc((size_t)bytes + 1);
    HP_ASSERT(*at);
    return HP_OK;
}

/* --- captures --- */

static hp_status late_capture_begin(const hp_memory *m, hp_error *err) {
    (void)m;
    (void)err;
    late_drain();
    late_me->capture = calloc(1, sizeof *late_me->capture);
    HP_ASSERT(late_me->capture);
    return HP_OK;
}

static hp_status late_capture_end(const hp_memory *m, hp_captured **captured, hp_error *err) {
    (void)m;
    (void)err;
    HP_ASSERT(late_me->capture);
    *captured = late_me->capture;
    late_me->capture = NULL;
    return HP_OK;
}

void late_capture_part(const hp_order *order, void (*work)(void *), void *self) {
    hp_captured *c = late_me->capture;
    HP_ASSERT(order->n == 0);
    c->part = realloc(c->part, sizeof *c->part * (size_t)(c->n + 1));
    HP_ASSERT(c->part);
    c->part[c->n++] = (struct late_part){work, self, order->done};
}

static hp_status late_capture_launch(const hp_memory *m, hp_captured *c, const hp_order *order,
                                     hp_error *err) {
    (void)m;
    late_stream *s = late_stream_of(0, 0, 0);
    (void)err;
    HP_ASSERT(!order->done);
    pthread_mutex_lock(&late_me->lock);
    late_put_item(s, late_item_of(order, NULL, NULL));
    for (int i = 0; i < c->n; i++) {
        late_item *item =
            late_item_of(&(hp_order){.done = c->part[i].done}, c->part[i].work, c->part[i].self);
        item->kept = true;
        late_put_item(s, item);
    }
    pthread_mutex_unlock(&late_me->lock);
    late_relaunched += c->n;
    return HP_OK;
}

static void late_capture_free(const hp_memory *m, hp_captured *c) {
    (void)m;
    late_drain();
    for (int i = 0; i < c->n; i++) free(c->part[i].self);
    free(c->part);
    free(c);
}

static void late_host_free(const hp_memory *m, void *at) {
    (void)m;
    free(at);
}

static const hp_capture_ops LATE_CAPTURE = {.begin = late_capture_begin,
                                            .end = late_capture_end,
                                            .launch = late_capture_launch,
                                            .free = late_capture_free};

const hp_stream_ops LATE_STREAMS = {.event_new = late_event_new,
                                    .event_free = late_event_free,
                                    .query = late_query,
                                    .elapsed = late_elapsed,
                                    .record = late_record,
                                    .copy = late_copy_give,
                                    .host_new = late_host_new,
                                    .host_free = late_host_free,
                                    .capture = &LATE_CAPTURE};

/* --- another rank's memory: two in five are out of reach, from one side at least --- */

static hp_status late_peer_name(const hp_memory *m, void *at, hp_memory_name *name, hp_error *err) {
    (void)m;
    (void)err;
    HP_ASSERT(at == late_me->fake);
    memcpy(name->bytes, &late_me, sizeof late_me);
    return HP_OK;
}

static hp_status late_peer_open(const hp_memory *m, const hp_memory_name *name, void **at, hp_error *err) {
    (void)m;
    late_rank *r = late_me;
    late_peer peer;
    const uint64_t draw = hp_rng_below(r->seed, 1, r->draws++, 5);
    memcpy(&peer.rank, name->bytes, sizeof peer.rank);
    peer.wrong = draw == 1;
    if (draw == 0) return hp_fail(err, HP_EUNAVAIL, "the late device was told not to reach it");
    r->peer = realloc(r->peer, sizeof *r->peer * (size_t)(r->n_peer + 1));
    HP_ASSERT(r->peer);
    r->peer[r->n_peer++] = peer;
    late_opened++;
    *at = peer.rank->fake;
    return HP_OK;
}

static void late_peer_close(const hp_memory *m, void *at) {
    (void)m;
    late_rank *r = late_me;
    int i = 0;
    while (r->peer[i].rank->fake != at) i++;
    r->peer[i] = r->peer[--r->n_peer];
}

static const hp_peer_ops LATE_PEERS = {
    .name = late_peer_name, .open = late_peer_open, .close = late_peer_close};

const hp_memory_ops LATE_MEMORY = {.name = "late",
                                   .alloc = late_alloc,
                                   .free = late_free,
                                   .put = late_put,
                                   .get = late_get,
                                   .zero = late_zero,
                                   .streams = &LATE_STREAMS,
                                   .peers = &LATE_PEERS};
