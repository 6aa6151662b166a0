/* check_speed.c - how fast this machine is now; see check_speed.h. */
#include "exec/run/check_speed.h"

#include "exec/run/bind.h"
#include "exec/yardstick/message.h"
#include "exec/yardstick/yardstick.h"
#include "plan/base/clock.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ranks line up before so many rounds, some 2 ms; messages follow one line-up in so many. */
enum { ROUNDS = 10, MESSAGES_EVERY = 10 };

typedef struct sampled {
    double *value;
    int64_t n, room;
} sampled;

typedef struct speed_check {
    const hp_yard_waiter *w;
    hp_yardsticks *yard;
    sampled of[HP_YARDSTICKS];
    double wall_s, cpu_s; /* in rounds */
} speed_check;

static void add(sampled *s, double value) {
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->value = realloc(s->value, sizeof *s->value * (size_t)s->room);
        HP_ASSERT(s->value);
    }
    s->value[s->n++] = value;
}

static double thread_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_rounds(speed_check *c) {
    const double wall0_s = hp_now_s(), cpu0_s = thread_s();
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < HP_YARD_KERNELS; k++)
            add(&c->of[k], hp_yardsticks_time_s(c->yard, (hp_yardstick)k));
    c->wall_s += hp_now_s() - wall0_s;
    c->cpu_s += thread_s() - cpu0_s;
}

static hp_status exchange_messages(speed_check *c, hp_error *err) {
    double small_s, large_s;
    int64_t bytes;
    HP_TRY(hp_yard_messages(c->w, hp_yardsticks_scratch(c->yard, &bytes), &small_s, &large_s, err));
    if (small_s <= 0) return HP_OK;
    add(&c->of[HP_YARD_SMALL], small_s);
    add(&c->of[HP_YARD_LARGE], large_s);
    return HP_OK;
}

/* Until rank 0 says that the time is over. */
static hp_status sample(speed_check *c, double seconds, hp_error *err) {
    const double start_s = hp_now_s();
    for (int64_t i = 0;; i++) {
        double more = hp_now_s() - start_s < seconds;
        HP_TRY(hp_yard_line_up(c->w, &more, 1, err));
        if (more <= 0) return HP_OK;
        if (i % MESSAGES_EVERY == 0) HP_TRY(exchange_messages(c, err));
        take_rounds(c);
    }
}

/* --- the answer --- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quiet(sampled *s) {
    static const double SHARE = 0.05;
    if (s->n == 0) return 0;
    qsort(s->value, (size_t)s->n, sizeof *s->value, ascending);
    return s->value[(int64_t)(SHARE * (double)s->n)];
}

static double mean(const sampled *s) {
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) sum += s->value[i];
    return s->n > 0 ? sum / (double)s->n : 0;
}

/* What the ranks have, summed: QUIET and MEAN of each yardstick, N likewise, and the availability last. */
enum { QUIET, MEAN, N, FIGURES };

static json_t *yardstick_of(const speed_check *c, hp_yardstick k, const double *sum, int ranks) {
    json_t *o = json_pack("{s:f, s:f, s:I}", "quiet_s", sum[QUIET] / ranks, "mean_s", sum[MEAN] / ranks, "n",
                          (json_int_t)sum[N]);
    HP_ASSERT(o);
    if ((int)k >= HP_YARD_KERNELS) return o;
    const char *unit;
    const double work = hp_yardsticks_work(c->yard, k, &unit);
    json_object_set_new(o, "work", json_real(work));
    json_object_set_new(o, "unit", json_string(unit));
    return o;
}

static hp_status print(const speed_check *c, const double *sum, hp_error *err) {
    const int ranks = c->w->comm->size;
    json_t *all = json_object();
    for (int k = 0; k < HP_YARDSTICKS; k++)
        if (sum[FIGURES * k + N] > 0)
            json_object_set_new(
                all, hp_yardstick_names[k],
                yardstick_of(c, (hp_yardstick)k, sum + FIGURES * k, k < HP_YARD_KERNELS ? ranks : 1));
    json_t *o = json_pack("{s:i, s:i, s:o, s:f, s:I}", "schema", 1, "ranks", ranks, "yardsticks", all,
                          "availability", sum[FIGURES * HP_YARDSTICKS] / ranks, "yardstick_bytes",
                          (json_int_t)hp_yardsticks_bytes(c->yard));
    HP_ASSERT(o);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
    if (fflush(stdout) == 0 && !ferror(stdout)) return HP_OK;
    return hp_fail(err, HP_EIO, "cannot write to stdout: %s", strerror(errno));
}

static hp_status answer(speed_check *c, hp_error *err) {
    double sum[FIGURES * HP_YARDSTICKS + 1];
    for (int k = 0; k < HP_YARDSTICKS; k++) {
        sampled *s = &c->of[k];
        sum[FIGURES * k + QUIET] = quiet(s);
        sum[FIGURES * k + MEAN] = mean(s);
        sum[FIGURES * k + N] = (double)s->n;
    }
    sum[FIGURES * HP_YARDSTICKS] = c->wall_s > 0 && c->cpu_s < c->wall_s ? c->cpu_s / c->wall_s : 1;
    const hp_comm_op op = {.kind = HP_COMM_ALLREDUCE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = sizeof sum / sizeof *sum,
                           .data = sum};
    HP_TRY(hp_yard_wait(c->w, &op, err));
    return c->w->comm->rank == 0 ? print(c, sum, err) : HP_OK;
}

hp_status hp_check_speed(const hp_exec_options *options, const hp_yard_waiter *w, hp_error *err) {
    bool crowded;
    HP_TRY(hp_bind_rank(w->comm, (int)options->threads, options->bind, &crowded, err));
    speed_check c = {.w = w, .yard = hp_yardsticks_open()};
    hp_status s = sample(&c, options->seconds, err);
    if (s == HP_OK) s = answer(&c, err);
    for (int k = 0; k < HP_YARDSTICKS; k++) free(c.of[k].value);
    hp_yardsticks_close(c.yard);
    return s;
}
