/* turn.c - starts operations and polls for their completion; see turn.h. */
#include "exec/bench/turn.h"

#include "exec/bench/pattern.h"
#include "base/clock.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const hp_bench_mode_names[HP_BENCH_MODES] = {"pipelined", "barriered"};

enum { TAG = (1 << 24) + 2 /* next to the yardsticks' tags */ };

/* One iteration: at most a receive and a send. */
typedef struct call {
    hp_comm_op op[2];
    int n;
    const void *from; /* copied to `to` first */
    void *to;
    size_t bytes;
} call;

static call collective(const hp_bench_room *room, const hp_bench_run *s, int64_t count, bool out) {
    const bool barrier = s->what == HP_COLLECTIVE_BARRIER;
    const hp_bench_memory *at = hp_bench_memory_of(room, s->backend);
    return (call){.op = {{.kind = HP_COMM_COLLECTIVE,
                          .group = HP_COMM_WORLD,
                          .what = s->what,
                          .backend = s->backend,
                          .algorithm = s->algorithm,
                          .dtype = room->setup->dtype,
                          .reduction = room->setup->reduction,
                          .root = room->setup->r->root,
                          .per_node = room->setup->r->per_node,
                          .count = count,
                          .data = at->data,
                          .source = out && !barrier ? at->source : NULL}},
                  .n = 1};
}

/* In place, arriving data overwrites what is sent, so that is copied aside first. */
static call sendrecv(const hp_bench_room *room, const hp_bench_run *s, int64_t count, bool out) {
    const int n = room->setup->ranks, me = room->w->comm->rank;
    const hp_bench_memory *at = hp_bench_memory_of(room, s->backend);
    const hp_comm_op message = {
        .tag = TAG, .dtype = room->setup->dtype, .count = count, .backend = s->backend};
    call c = {.op = {message, message}, .n = 2};
    c.op[0].kind = HP_COMM_RECV;
    c.op[0].peer = (me + n - 1) % n;
    c.op[0].data = at->data;
    c.op[1].kind = HP_COMM_SEND;
    c.op[1].peer = (me + 1) % n;
    c.op[1].data = out ? at->source : at->aside;
    if (out) return c;
    c.from = at->data;
    c.to = at->aside;
    c.bytes = (size_t)(count * hp_dtype_bytes(room->setup->dtype));
    return c;
}

static call call_of(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place) {
    const bool out = place == HP_BENCH_OUT_OF_PLACE;
    return s->what == HP_BENCH_SENDRECV ? sendrecv(room, s, count, out) : collective(room, s, count, out);
}

/* --- waiting --- */

static hp_status look_around(const hp_bench_room *room, double *start_s, hp_error *err) {
    const hp_yard_waiter *w = room->w;
    if (w->stop && *w->stop)
        return hp_fail(err, (hp_status)(128 + (int)*w->stop), "ended by signal %d", (int)*w->stop);
    if (*start_s == 0) *start_s = hp_now_s();
    if (hp_now_s() - *start_s > w->limit_s)
        return hp_fail(err, HP_ESTALL,
                       "stalled: rank %d waited %.0f s for the others; is one stopped or dead?",
                       w->comm->rank, w->limit_s);
    sched_yield();
    return HP_OK;
}

/* Polls and rarely makes a system call, which would cost as much as a short message. */
static hp_status wait_for(const hp_bench_room *room, int handle, hp_error *err) {
    enum { SELDOM = 1024 };
    hp_comm *comm = room->w->comm;
    double start_s = 0;
    for (int64_t polls = 1;; polls++) {
        bool done = false;
        HP_TRY(comm->ops->test(comm, handle, &done, err));
        if (done) return HP_OK;
        if (room->crowded || polls % SELDOM == 0) HP_TRY(look_around(room, &start_s, err));
    }
}

static hp_status execute(const hp_bench_room *room, const call *c, hp_error *err) {
    hp_comm *comm = room->w->comm;
    int handle[2];
    if (c->bytes) memcpy(c->to, c->from, c->bytes);
    for (int i = 0; i < c->n; i++) HP_TRY(comm->ops->start(comm, &c->op[i], &handle[i], err));
    for (int i = 0; i < c->n; i++) HP_TRY(wait_for(room, handle[i], err));
    return HP_OK;
}

static hp_status line_up(const hp_bench_room *room, hp_error *err) {
    const call barrier = {
        .op = {{.kind = HP_COMM_COLLECTIVE, .group = HP_COMM_WORLD, .what = HP_COLLECTIVE_BARRIER}}, .n = 1};
    return execute(room, &barrier, err);
}

/* --- the check --- */

/* Ranks arrive one after another. Clocks can be compared only within a node. */
static hp_status check_barrier(const hp_bench_room *room, const call *c, double *wrong, hp_error *err) {
    static const long APART_NS = 1000000;
    const int n = room->setup->ranks, me = room->w->comm->rank;
    const struct timespec pause = {.tv_nsec = me < 100 ? me * APART_NS : 0};
    double came[n], last = 0;
    HP_TRY(line_up(room, err));
    nanosleep(&pause, NULL);
    const double mine = hp_now_s();
    HP_TRY(execute(room, c, err));
    const double left = hp_now_s();
    HP_TRY(hp_comm_share(room->w->comm, mine, came, "the other ranks to pass a barrier", err));
    for (int r = 0; r < n; r++) last = fmax(last, came[r]);
    const bool one_node = room->setup->r->per_node == 0 || room->setup->r->per_node >= n;
    *wrong = one_node ? left < last : (double)NAN;
    return HP_OK;
}

hp_status hp_bench_check(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place,
                         double *wrong, hp_error *err) {
    const call c = call_of(room, s, count, place);
    if (s->what == HP_COLLECTIVE_BARRIER) return check_barrier(room, &c, wrong, err);
    const hp_bench_case data = {.what = s->what,
                                .ranks = room->setup->ranks,
                                .me = room->w->comm->rank,
                                .root = room->setup->r->root,
                                .dtype = room->setup->dtype,
                                .reduction = room->setup->reduction,
                                .count = count};
    const hp_bench_memory *at = hp_bench_memory_of(room, s->backend);
    hp_bench_fill(&data, at->data, place == HP_BENCH_OUT_OF_PLACE ? at->source : NULL);
    HP_TRY(line_up(room, err));
    HP_TRY(execute(room, &c, err));
    *wrong = (double)hp_bench_wrong(&data, at->data);
    return HP_OK;
}

/* --- the times --- */

static hp_status time_pipelined(const hp_bench_room *room, const call *c, double *sample, hp_error *err) {
    const int64_t n = room->setup->r->iterations;
    HP_TRY(line_up(room, err));
    const double start_s = hp_now_s();
    for (int64_t i = 0; i < n; i++) HP_TRY(execute(room, c, err));
    *sample = (hp_now_s() - start_s) / (double)n;
    return HP_OK;
}

static hp_status time_barriered(const hp_bench_room *room, const call *c, double *sample, hp_error *err) {
    for (int64_t i = 0; i < room->setup->r->iterations; i++) {
        HP_TRY(line_up(room, err));
        const double start_s = hp_now_s();
        HP_TRY(execute(room, c, err));
        sample[i] = hp_now_s() - start_s;
    }
    return HP_OK;
}

hp_status hp_bench_turn(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place, int mode,
                        double *sample, hp_error *err) {
    static hp_status (*const timers[HP_BENCH_MODES])(const hp_bench_room *, const call *, double *,
                                                     hp_error *) = {time_pipelined, time_barriered};
    const call c = call_of(room, s, count, place);
    for (int64_t i = 0; i < room->setup->r->warmup; i++) HP_TRY(execute(room, &c, err));
    return timers[mode](room, &c, sample, err);
}
