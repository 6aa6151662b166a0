/* test_parallel.c - further kinds of parallelism on the virtual clock, through the real lowering:
 * zero-bubble's makespan, the bytes of a halo round, several ranks per device, single-replica groups, work
 * under tiling. */
#include "plan/program/work.h"
#include "sim/engine/sim.h"
#include "tests/support/sim/random_world.h"
#include "plan/lower/lower.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_strategy parsed(const char *text) {
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s", err.text);
    return s;
}

/* --- zero-bubble --- */

/* A microsecond for the first task of each kind in a pass: forward, gradients of data, gradients of
 * weights. */
static double one_of_each(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)g;
    const hp_role *r = &p->role[rank % p->n_role];
    const hp_task *t = &r->task[task];
    if (t->op != HP_TASK_FWD && t->op != HP_TASK_BWD && t->op != HP_TASK_BWDW) return 0;
    for (int i = 0; i < task; i++)
        if (r->task[i].op == t->op && r->task[i].micro == t->micro) return 0;
    return 1e-6;
}

/* ZB-H1 (Qi et al. 2023): the bubble of 1F1B is (S - 1)(t_f + t_b + t_w), ZB-H1's (S - 1)(t_f + t_b - t_w).
 */
static void zero_bubble_saves_two_thirds_of_the_bubble(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {HP_OK, ""};
    if (hp_net_build(arena, "vgg19", 32, 32, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_machine m = test_machine(1, 8, false);
    const hp_sim_costs costs = {one_of_each, NULL, NULL};
    for (int stages = 2; stages <= 4; stages++) {
        for (int micro = 2 * stages; micro <= 12; micro++) {
            hp_strategy s = hp_strategy_default();
            s.stages = stages;
            s.micro = micro;
            s.sched = HP_SCHED_ZB;
            assert_int_equal(
                makespan_ns(arena, lower_training(arena, g, &s, micro, false), g, &m, &costs, true),
                1000 * (3 * micro + stages - 1));
            s.sched = HP_SCHED_1F1B;
            assert_int_equal(
                makespan_ns(arena, lower_training(arena, g, &s, micro, false), g, &m, &costs, true),
                1000 * 3 * (micro + stages - 1));
        }
    }
    hp_arena_free(arena);
}

/* --- halo --- */

/* Three convolutions of one window each; the tensor between the first two is exchanged. */
static hp_graph *chain(hp_arena *arena, int h, int w, int kh, int kw, int *tensor) {
    hp_error err = {HP_OK, ""};
    hp_builder b = hp_builder_start(arena, "chain", h, w, 3, &err);
    int x = hp_build_conv_rect(&b, 0, "a", 5, kh, kw);
    *tensor = x;
    x = hp_build_conv_rect(&b, x, "b", 4, kh, kw);
    hp_build_unit(&b);
    hp_build_conv(&b, x, "map", b.g->classes, (hp_window){1, 1, 0, 1, true});
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
    return g;
}

static int64_t sent_bytes(const hp_program *p, int role, int producer, int backward) {
    const hp_role *r = &p->role[role];
    int64_t bytes = 0;
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        if (k->op != HP_TASK_SEND || k->layer != producer || (r->queue[k->queue].channel & 1) != backward)
            continue;
        assert_int_equal(hp_sim_wait_of(p, r, t), HP_SIM_HALO);
        bytes += hp_task_bytes(k);
    }
    return bytes;
}

/* 4 N C [h_w H_t n_LR + h_h W_t n_TB + h_h h_w n_diag] per rank, and as much of gradients received back. */
static void a_halo_round_moves_the_formulas_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        dice d = {seed, 40};
        hp_arena *arena = hp_arena_new();
        const int hh = roll(&d, 0, 2), hw = roll(&d, hh ? 0 : 1, 2), rows = roll(&d, 1, 4),
                  cols = roll(&d, 1, 4);
        const int h = roll(&d, 3 * rows, 20), w = roll(&d, 3 * cols, 20), samples = roll(&d, 1, 3);
        int tensor;
        const hp_graph *g = chain(arena, h, w, 2 * hh + 1, 2 * hw + 1, &tensor);
        hp_strategy s = hp_strategy_default();
        s.sp.n = 1;
        s.sp.rows[0] = rows;
        s.sp.cols[0] = cols;
        const hp_program *p = lower_training(arena, g, &s, samples, false);
        const int producer = g->tensor[tensor].producer;
        int64_t there = 0, back = 0;
        for (int role = 0; role < p->n_role; role++) {
            const int y = role / cols, x = role % cols;
            const int left_right = (x > 0) + (x < cols - 1), top_bottom = (y > 0) + (y < rows - 1);
            const int64_t height = hp_split_at(h, rows, y + 1) - hp_split_at(h, rows, y),
                          width = hp_split_at(w, cols, x + 1) - hp_split_at(w, cols, x);
            assert_int_equal(
                sent_bytes(p, role, producer, 0),
                4 * samples * g->tensor[tensor].c *
                    (hw * height * left_right + hh * width * top_bottom + hh * hw * left_right * top_bottom));
            there += sent_bytes(p, role, producer, 0);
            back += sent_bytes(p, role, producer, 1);
        }
        assert_int_equal(there, back);
        hp_arena_free(arena);
    }
}

/* --- several ranks on a device --- */

static double compute_only(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)g;
    return p->role[rank % p->n_role].task[task].queue == 0 ? 1e-5 : 0;
}

static double given_share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)p, (void)g, (void)rank, (void)task;
    return *(const double *)self;
}

/* k clients whose kernels use a share u of the device when alone take max(1, k u) times as long: nothing is
 * gained beyond 1/u. */
static void clients_speed_up_to_the_ceiling(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g = random_net(arena, 3, 4);
    const hp_machine m = test_machine(1, 4, false);
    for (int clients = 1; clients <= 4; clients++) {
        for (int dp = 1; dp <= 2; dp++) {
            for (int i = 0; i <= 6; i++) {
                double share = 0.1 + 0.15 * i;
                hp_strategy s = hp_strategy_default();
                s.dp = dp;
                s.clients = clients;
                const hp_program *p = lower_training(arena, g, &s, clients * dp, false);
                const hp_sim_costs costs = {compute_only, given_share, &share},
                                   alone = {compute_only, NULL, NULL};
                const double one = (double)makespan_ns(arena, p, g, &m, &alone, true);
                const double slow = clients * share > 1 ? clients * share : 1;
                for (int fold = 0; fold < 2; fold++)
                    assert_true(fabs((double)makespan_ns(arena, p, g, &m, &costs, fold) - slow * one) <=
                                2.0 * p->role[0].n_task);
            }
        }
    }
    hp_arena_free(arena);
}

/* --- groups --- */

/* Batch-norm groups of one replica: replicas do not wait for each other before the gradients. The second
 * replica's tasks are slow; the first replica's statistics are not. */
static double slow_replica(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)g;
    const bool compute = p->role[rank % p->n_role].task[task].queue == 0;
    return !compute ? 0 : rank / p->n_role == 1 ? 1e-4 : 1e-5;
}

static void groups_of_a_replica_leave_the_others_alone(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {HP_OK, ""};
    if (hp_net_build(arena, "resnet-v1-20", 32, 32, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_machine m = test_machine(1, 8, false);
    const hp_sim_costs costs = {slow_replica, NULL, NULL};
    const hp_sim_options o = {.want_spans = true, .straggler_rank = -1};
    static const char *const strategies[] = {"dp=2,sp=2x1", "dp=2,sp=2x1,bn=all"};
    for (int all = 0; all < 2; all++) {
        const hp_strategy s = parsed(strategies[all]);
        const hp_program *p = lower_training(arena, g, &s, 2, false);
        hp_sim_result r;
        if (hp_sim_run(arena, p, g, &m, &costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
        int64_t last[4] = {0};
        for (int rank = 0; rank < 4; rank++)
            for (int64_t i = 0; i < r.n_span[rank]; i++) {
                const hp_task *t = &p->role[rank % 2].task[r.span[rank][i].task];
                if (t->op == HP_TASK_FWD && r.span[rank][i].t1_ns > last[rank])
                    last[rank] = r.span[rank][i].t1_ns;
            }
        assert_int_equal(last[0] * 5 < last[2],
                         !all); /* ten times as fast, unless they meet in every layer */
    }
    hp_arena_free(arena);
}

/* --- work --- */

static double layer_sum(const hp_program *p, const hp_graph *g, int layer, int op, double *flops) {
    double size = 0;
    *flops = 0;
    for (int role = 0; role < p->n_role; role++)
        for (int t = 0; t < p->role[role].n_task; t++) {
            const hp_task *k = &p->role[role].task[t];
            if (k->op != op || k->layer != layer) continue;
            const hp_work w = hp_task_work(p, g, &p->role[role], t);
            size += w.size;
            *flops += w.flops;
        }
    return size;
}

/* However a layer is split over rows, columns, samples or channels, its output is computed once: pixels (and
 * the arithmetic of convolutions) of all parts add up to the whole's. Redundant halo rows are more work, not
 * less. */
static void parts_of_a_layer_add_up_to_the_layer(void **state) {
    (void)state;
    static const char *const strategies[] = {
        "sp=2x2", "sp=1x3", "sp=5x1", "cp=2", "sp=2x1,stages=2,ldp=2", "sp=2x2,halo=2"};
    for (uint64_t seed = 1; seed <= 24; seed++) {
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, 5);
        const hp_strategy one = hp_strategy_default(), s = parsed(strategies[seed % 6]);
        const hp_program *whole = lower_training(arena, g, &one, 2, false);
        if (!hp_strategy_legal(&s, g, 2, 0, NULL)) { /* channels that cannot be split */
            hp_arena_free(arena);
            continue;
        }
        const hp_program *p = lower_training(arena, g, &s, 2, false);
        for (int layer = 1; layer < g->n_layer; layer++) {
            if (g->layer[layer].op != HP_CONV && g->layer[layer].op != HP_BN) continue;
            double flops, all_flops;
            const double all = layer_sum(whole, g, layer, HP_TASK_FWD, &all_flops),
                         parts = layer_sum(p, g, layer, HP_TASK_FWD, &flops);
            if (s.cp > 1) {
                assert_true(g->layer[layer].op != HP_CONV || fabs(flops - all_flops) <= 1e-9 * all_flops);
            } else if (s.sp.halo > 1) {
                assert_true(parts >= all);
            } else {
                assert_true(fabs(parts - all) <= 1e-9 * all);
                assert_true(g->layer[layer].op != HP_CONV || fabs(flops - all_flops) <= 1e-9 * all_flops);
            }
        }
        hp_arena_free(arena);
    }
}

/* A copy's size is the bytes of the boxes' intersection: the unpacking copies of an exchange together write
 * what the exchanged box holds. */
static void copies_are_as_large_as_what_they_move(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    int tensor;
    const hp_graph *g = chain(arena, 12, 12, 3, 3, &tensor);
    const hp_strategy s = parsed("sp=2x2");
    const hp_program *p = lower_training(arena, g, &s, 1, false);
    bool seen[3] = {false};
    for (int role = 0; role < 4; role++) {
        const hp_role *r = &p->role[role];
        double written = 0;
        for (int t = 0; t < r->n_task; t++) {
            if (r->task[t].op != HP_TASK_COPY) continue;
            const hp_work w = hp_task_work(p, g, r, t);
            const bool add = r->task[t].flags & HP_FLAG_ADD;
            const hp_buffer *dst = &r->buffer[r->operand[r->task[t].operand]];
            /* 5 channels of 4 bytes: 20 for a column's pixel, 120 or 140 for a row of 6 or 7 pixels */
            static const char *const runs[] = {"16", "64", "128"};
            bool known = false;
            for (int i = 0; i < 3; i++) {
                char key[40];
                snprintf(key, sizeof key, "copy %sf32 w%s", add ? "add " : "", runs[i]);
                seen[i] |= strcmp(w.key, key) == 0;
                known |= strcmp(w.key, key) == 0;
            }
            if (!known) fail_msg("%s", w.key);
            assert_true(w.bytes == (add ? 3 : 2) * w.size); // NOLINT: small integers
            if (dst->kind == HP_BUF_TENSOR && dst->what == tensor) written += w.size;
        }
        assert_true(written ==
                    4.0 * 5 * 7 * 7); // NOLINT: 5 channels, a tile of 6 x 6 and a row and a column more
    }
    assert_true(seen[0] && (seen[1] || seen[2]));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_bubble_saves_two_thirds_of_the_bubble),
        cmocka_unit_test(a_halo_round_moves_the_formulas_bytes),
        cmocka_unit_test(clients_speed_up_to_the_ceiling),
        cmocka_unit_test(groups_of_a_replica_leave_the_others_alone),
        cmocka_unit_test(parts_of_a_layer_add_up_to_the_layer),
        cmocka_unit_test(copies_are_as_large_as_what_they_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
