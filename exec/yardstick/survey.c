/* survey.c - keeps every sample and combines those of all ranks at the end; see survey.h. */
#include "exec/yardstick/survey.h"
#include "base/alloc.h"

#include "exec/yardstick/message.h"
#include "exec/yardstick/yardstick.h"
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

typedef struct sampled {
    double *value;
    int64_t n, room;
} sampled;

struct hp_yard_survey {
    hp_yard_waiter w;
    hp_yardsticks *yard;
    sampled of[HP_YARDSTICKS];
    double wall_s, cpu_s; /* in rounds */
};

hp_yard_survey *hp_yard_survey_open(const hp_yard_waiter *w) {
    hp_yard_survey *s = hp_zeroed(1, sizeof *s);
    s->w = *w;
    s->yard = hp_yardsticks_open();
    return s;
}

void hp_yard_survey_close(hp_yard_survey *s) {
    if (!s) return;
    for (int k = 0; k < HP_YARDSTICKS; k++) free(s->of[k].value);
    hp_yardsticks_close(s->yard);
    free(s);
}

/* --- samples --- */

static void add(sampled *s, double value) {
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->value = hp_realloc(s->value, sizeof *s->value * (size_t)s->room);
    }
    s->value[s->n++] = value;
}

static double thread_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_rounds(hp_yard_survey *s, int rounds) {
    const double wall0_s = hp_now_s(), cpu0_s = thread_s();
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < HP_YARD_KERNELS; k++)
            add(&s->of[k], hp_yardsticks_time_s(s->yard, (hp_yardstick)k));
    s->wall_s += hp_now_s() - wall0_s;
    s->cpu_s += thread_s() - cpu0_s;
}

static hp_status exchange_messages(hp_yard_survey *s, hp_error *err) {
    double small_s, large_s;
    int64_t bytes;
    HP_TRY(hp_yard_messages(&s->w, hp_yardsticks_scratch(s->yard, &bytes), &small_s, &large_s, err));
    if (small_s <= 0) return HP_OK;
    add(&s->of[HP_YARD_SMALL], small_s);
    add(&s->of[HP_YARD_LARGE], large_s);
    return HP_OK;
}

hp_status hp_yard_survey_take(hp_yard_survey *s, int rounds, bool messages, hp_error *err) {
    if (messages) HP_TRY(exchange_messages(s, err));
    take_rounds(s, rounds);
    return HP_OK;
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

/* Figures of each yardstick, summed over ranks: QUIET, MEAN, N. The availability follows those
 * of all yardsticks. */
enum { QUIET, MEAN, N, FIGURES };

static json_t *yardstick_of(const hp_yard_survey *s, hp_yardstick k, const double *sum, int ranks) {
    json_t *o = json_pack("{s:f, s:f, s:I}", "quiet_s", sum[QUIET] / ranks, "mean_s", sum[MEAN] / ranks, "n",
                          (json_int_t)sum[N]);
    HP_ASSERT(o);
    if ((int)k >= HP_YARD_KERNELS) return o;
    const char *unit;
    const double work = hp_yardsticks_work(s->yard, k, &unit);
    json_object_set_new(o, "work", json_real(work));
    json_object_set_new(o, "unit", json_string(unit));
    return o;
}

static json_t *answer_of(const hp_yard_survey *s, const double *sum) {
    const int ranks = s->w.comm->size;
    json_t *all = json_object();
    for (int k = 0; k < HP_YARDSTICKS; k++)
        if (sum[FIGURES * k + N] > 0)
            json_object_set_new(
                all, hp_yardstick_names[k],
                yardstick_of(s, (hp_yardstick)k, sum + FIGURES * k, k < HP_YARD_KERNELS ? ranks : 1));
    json_t *o =
        json_pack("{s:o, s:f, s:I}", "yardsticks", all, "availability", sum[FIGURES * HP_YARDSTICKS] / ranks,
                  "yardstick_bytes", (json_int_t)hp_yardsticks_bytes(s->yard));
    HP_ASSERT(o);
    return o;
}

hp_status hp_yard_survey_answer(hp_yard_survey *s, json_t **answer, hp_error *err) {
    double sum[FIGURES * HP_YARDSTICKS + 1];
    *answer = NULL;
    for (int k = 0; k < HP_YARDSTICKS; k++) {
        sum[FIGURES * k + QUIET] = quiet(&s->of[k]);
        sum[FIGURES * k + MEAN] = mean(&s->of[k]);
        sum[FIGURES * k + N] = (double)s->of[k].n;
    }
    sum[FIGURES * HP_YARDSTICKS] = s->wall_s > 0 && s->cpu_s < s->wall_s ? s->cpu_s / s->wall_s : 1;
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = sizeof sum / sizeof *sum,
                           .data = sum};
    HP_TRY(hp_yard_wait(&s->w, &op, err));
    if (s->w.comm->rank == 0) *answer = answer_of(s, sum);
    return HP_OK;
}
