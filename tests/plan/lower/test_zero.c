/* test_zero.c - what each stage of ZeRO keeps and moves (Rajbhandari et al., SC 2020, sections 5 and 7): in
 * closed form, over random networks, replicas, micro-batches and buckets. */
#include "plan/lower/lower.h"
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct made {
    hp_arena *arena;
    const hp_graph *g;
    hp_program *p;
} made;

static made make(uint64_t seed, dice *d, hp_strategy *s) {
    made m = {.arena = hp_arena_new()};
    hp_error err;
    m.g = random_optimizer(d, m.arena, random_net(m.arena, seed, roll(d, 3, 8)));
    s->fuse_bytes = coin(d) ? 25000000 : roll(d, 64, 8192);
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(s, 1), .place = true};
    if (hp_lower(m.arena, m.g, s, &o, &m.p, &err) || hp_program_check(m.p, m.g, &err))
        fail_msg("%s", err.text);
    return m;
}

/* Elements that the role's collectives of a kind move, without metrics and statistics. */
static int64_t moved(const hp_role *r, hp_task_op op) {
    int64_t n = 0;
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        if (k->op == (uint8_t)op && k->dtype == HP_F32 && hp_task_bucket(k) >= 0) n += hp_task_range(k).count;
    }
    return n;
}

/* The forward pass gathers all buckets. The backward pass gathers those that a gradient passes through or
 * batch norm reads: all except buckets of layers that read only the image. */
static void check_moves(const made *m, const hp_strategy *s) {
    const hp_role *r = &m->p->role[0];
    const int64_t all = r->trained_elems, passes = s->micro, shared = s->dp > 1;
    const bool again = s->zero.stage == 3 && !s->zero.keep;
    assert_int_equal(moved(r, HP_TASK_ALLREDUCE), s->zero.stage == 0 ? shared * all : 0);
    assert_int_equal(moved(r, HP_TASK_REDUCE_SCATTER),
                     s->zero.stage == 0 ? 0 : shared * all * (s->zero.stage > 1 ? passes : 1));
    const int64_t gathered = moved(r, HP_TASK_ALL_GATHER);
    if (!again) {
        assert_int_equal(gathered, s->zero.stage ? shared * all : 0);
        return;
    }
    const int64_t last = r->n_bucket ? r->bucket[r->n_bucket - 1].count : 0; /* it has the first layer */
    assert_true(gathered == 2 * passes * shared * all || gathered == passes * shared * (2 * all - last));
}

/* Psi elements with their padding: each kind of state is whole, or one part of dp. */
static void check_kept(const made *m, const hp_strategy *s) {
    const hp_role *r = &m->p->role[0];
    const int64_t all = 4 * r->trained_elems, part = all / s->dp;
    assert_int_equal(r->buffer[HP_BUF_WEIGHTS].bytes, s->zero.stage >= 3 ? part : all);
    assert_int_equal(r->buffer[HP_BUF_GRADS].bytes, s->zero.stage >= 2 ? part : all);
    assert_int_equal(r->buffer[HP_BUF_OPTIMIZER].bytes,
                     hp_optimizer_of(m->g)->states * (s->zero.stage >= 1 ? part : all));
    int64_t params = 0;
    for (int i = 0; i < m->g->n_param; i++)
        if (hp_param_trained(&m->g->param[i])) params += m->g->param[i].count;
    const int64_t padding = 16 * m->g->n_param + (int64_t)r->n_bucket * 16 * s->dp;
    assert_true(r->trained_elems >= params && r->trained_elems < params + padding);
}

static void each_stage_keeps_and_moves_what_the_paper_says(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++)
        for (int zero = 0; zero <= 3; zero++) {
            dice d = {seed, 8100};
            hp_strategy s = hp_strategy_default();
            s.dp = roll(&d, 1, 9);
            s.micro = roll(&d, 1, 3);
            s.sched = s.micro > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
            s.zero.stage = zero;
            s.zero.prefetch = roll(&d, 0, 2);
            s.zero.keep = zero == 3 && coin(&d);
            const made m = make(seed, &d, &s);
            check_moves(&m, &s);
            check_kept(&m, &s);
            hp_arena_free(m.arena);
        }
}

/* Recomputation gathers again. */
static void recomputation_gathers_again(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(30); seed++) {
        dice d = {seed, 8200};
        hp_strategy s = hp_strategy_default();
        s.dp = 4;
        s.zero.stage = 3;
        const made plain = make(seed, &d, &s);
        s.recompute = HP_RECOMPUTE_FULL;
        dice again = {seed, 8200};
        const made full = make(seed, &again, &s);
        const int64_t one = moved(&plain.p->role[0], HP_TASK_ALL_GATHER),
                      more = moved(&full.p->role[0], HP_TASK_ALL_GATHER),
                      all = plain.p->role[0].trained_elems;
        assert_true(more > one || plain.p->role[0].n_bucket < 2); /* the end of one is the beginning of the
                                                                   * next */
        assert_true(more <= one + all);
        hp_arena_free(plain.arena);
        hp_arena_free(full.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_stage_keeps_and_moves_what_the_paper_says),
                                       cmocka_unit_test(recomputation_gathers_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
