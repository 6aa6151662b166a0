/* sampler.c - samples the yardsticks between a run's steps; see sampler.h. */
#include "exec/yardstick/sampler.h"
#include "base/alloc.h"

#include "exec/yardstick/budget.h"
#include "exec/yardstick/message.h"
#include "base/clock.h"

#include <stdlib.h>

struct hp_sampler {
    hp_sampler_config c;
    hp_yardsticks *yard;
    hp_yard_budget budget; /* rank 0's */
    int64_t next_step;     /* step after which the next burst comes; the same on all ranks */
    int64_t sent_bytes;    /* sent by this rank in bursts */
};

hp_sampler *hp_sampler_open(const hp_sampler_config *config) {
    hp_sampler *s = hp_alloc(sizeof *s);
    *s = (hp_sampler){.c = *config, .yard = hp_yardsticks_open()};
    return s;
}

void hp_sampler_close(hp_sampler *s) {
    if (s) hp_yardsticks_close(s->yard);
    free(s);
}

int64_t hp_sampler_bytes(const hp_sampler *s) {
    return hp_yardsticks_bytes(s->yard);
}

int64_t hp_sampler_sent_bytes(const hp_sampler *s) {
    return s->sent_bytes;
}

static void record(const hp_sampler *s, hp_yardstick which, int32_t iter, double value) {
    hp_ring_sample(s->c.ring, (hp_sample){.name = hp_yardstick_counter(which),
                                          .iter = iter,
                                          .t_ns = hp_clock_now_ns(s->c.clock),
                                          .value = value});
}

static void take_rounds(hp_sampler *s, int64_t rounds, int32_t iter) {
    for (int64_t r = 0; r < rounds; r++)
        for (int k = 0; k < HP_YARD_KERNELS; k++) {
            record(s, (hp_yardstick)k, iter, hp_yardsticks_time_s(s->yard, (hp_yardstick)k));
            if (s->c.watch) hp_watch_beat(s->c.watch);
        }
}

static hp_status exchange_messages(hp_sampler *s, const hp_yard_waiter *w, int32_t iter, hp_error *err) {
    double small_s, large_s;
    int64_t bytes;
    void *scratch = hp_yardsticks_scratch(s->yard, &bytes);
    HP_ASSERT(bytes >= HP_YARD_LARGE_BYTES);
    HP_TRY(hp_yard_messages(w, scratch, &small_s, &large_s, err));
    if (small_s <= 0) return HP_OK;
    record(s, HP_YARD_SMALL, iter, small_s);
    record(s, HP_YARD_LARGE, iter, large_s);
    return HP_OK;
}

static double elapsed_s(const hp_sampler *s) {
    return hp_now_s() - s->c.start_s;
}

static hp_status take_burst(hp_sampler *s, int64_t steps, bool last, double limit_s, hp_error *err) {
    const hp_yard_waiter w = {.comm = s->c.comm, .watch = s->c.watch, .stop = s->c.stop, .limit_s = limit_s};
    const int32_t iter = steps > 0 ? (int32_t)(steps - 1) : 0;
    hp_yard_burst burst = hp_yard_budget_burst(&s->budget, elapsed_s(s), steps == 0 || last);
    double order[] = {(double)burst.rounds, burst.messages};
    HP_TRY(hp_yard_line_up(&w, order, 2, err));
    const double t0_s =
        elapsed_s(s); /* excludes the wait for the slowest rank, for which the next step would wait as well */
    burst = (hp_yard_burst){(int64_t)order[0], order[1] > 0};
    take_rounds(s, burst.rounds, iter);
    const double t1_s = elapsed_s(s);
    if (burst.messages) HP_TRY(exchange_messages(s, &w, iter, err));
    const double t2_s = elapsed_s(s);
    hp_yard_budget_charge(&s->budget, burst, t2_s, t1_s - t0_s, t2_s - t1_s);
    double next = (double)hp_yard_budget_next(&s->budget, t2_s, steps);
    HP_TRY(hp_yard_line_up(&w, &next, 1, err));
    s->next_step = (int64_t)next;
    s->budget.spent_s += elapsed_s(s) - t2_s;
    return HP_OK;
}

hp_status hp_sampler_visit(hp_sampler *s, int64_t steps, bool last, double limit_s, hp_error *err) {
    if (steps < s->next_step && !last) return HP_OK;
    const int64_t before = s->c.comm->sent_bytes;
    const hp_status status = take_burst(s, steps, last, limit_s, err);
    s->sent_bytes += s->c.comm->sent_bytes - before;
    return status;
}
