/* test_lowering.c - what lowered programs move: run on integers, every layer reads its tensor, and every
 * gradient returns by the adjoint of that map. No tasks wait for each other in a cycle; sizes do not depend
 * on replicas; every weight has one home. (Which boxes go where: test_exchange.c.) */
#include "plan/check/check.h"
#include "tests/support/plan/brute_tiles.h"
#include "tests/support/plan/integer_ranks.h"
#include "tests/support/plan/odd_net.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_graph *net(hp_arena *arena, const char *name, int h, int w) {
    hp_graph *g = NULL;
    hp_error err;
    if (hp_net_build(arena, name, h, w, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    return g;
}

static hp_strategy parsed(const char *text) {
    hp_strategy s;
    hp_error err;
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return s;
}

static hp_program *lowered(hp_arena *arena, const hp_graph *g, const hp_strategy *s,
                           const hp_lower_options *o, const char *what) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    char text[HP_STRATEGY_TEXT];
    if (hp_lower(arena, g, s, o, &p, &err) != HP_OK)
        fail_msg("%s, %s: %s", what, hp_strategy_text(s, text), err.text);
    return p;
}

/* --- on integers --- */

static void check_adjoint(hp_arena *arena, const integer_ranks *r, const char *what) {
    const bool *wanted = wanted_gradients(arena, r->g);
    for (int l = 1; l < r->g->n_layer; l++) {
        const int t = r->g->layer[l].out;
        if (r->used[t] != wanted[t])
            fail_msg("%s: gradient of %s: used %d", what, r->g->layer[l].name, r->used[t]);
        for (int m = 0; r->used[t] && m < r->p->micro; m++) {
            const int64_t ahead = r->ahead[(int64_t)t * r->p->micro + m],
                          back = r->back[(int64_t)t * r->p->micro + m];
            if (ahead != back)
                fail_msg("%s: %s, micro-batch %d: <Ax, y> = %lld, <x, A'y> = %lld", what, r->g->layer[l].name,
                         m, (long long)ahead, (long long)back);
        }
    }
}

/* Layers read the right tensor, whatever its route. Gradients return by the adjoint, including those that
 * several ranks compute, each its own. */
static void runs_on_integers(const hp_graph *g, const hp_strategy *s, hp_mode mode, int64_t batch,
                             const char *of) {
    char what[HP_STRATEGY_TEXT + 64], text[HP_STRATEGY_TEXT];
    snprintf(what, sizeof what, "%s, mode %d, %s", of, mode, hp_strategy_text(s, text));
    hp_arena *arena = hp_arena_new();
    const hp_lower_options o = {.mode = mode, .dtype = HP_F64, .batch = batch, .place = true};
    const hp_program *p = lowered(arena, g, s, &o, of);
    for (int by_rank = 0; by_rank < (mode == HP_MODE_TRAIN ? 2 : 1); by_rank++) {
        integer_ranks *r = integer_ranks_new(arena, g, p, by_rank);
        if (!integer_ranks_run(r)) fail_msg("%s: %s", what, r->why);
        if (by_rank) check_adjoint(arena, r, what);
    }
    hp_arena_free(arena);
}

static void any_strategy_moves_what_layers_read_and_its_adjoint(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(1000); seed++) {
        dice d = {seed, 7000};
        char of[32];
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = any_net(arena, seed, roll(&d, 3, 8));
        const int groups = roll(&d, 1, 6);
        const hp_strategy s = random_strategy_of(&d, g, groups, seed % 4 ? 16 : 64, DRAW_ALL);
        snprintf(of, sizeof of, "seed %llu", (unsigned long long)seed);
        runs_on_integers(g, &s, HP_MODE_TRAIN, hp_strategy_batch(&s, groups), of);
        runs_on_integers(g, &s, HP_MODE_INFER, hp_strategy_batch(&s, groups), of);
        hp_arena_free(arena);
    }
}

/* Halo exchange, other grids in the next stage, the seam to slices on separate ranks or on the same ones,
 * gathered channels. */
static void layouts_of_real_networks_move_what_layers_read(void **state) {
    (void)state;
    static const struct {
        const char *net, *strategy;
        int h, w;
    } cases[] = {
        {"resnet18", "sp=2x2", 96, 160},
        {"resnet18", "sp=2x2:3x1,stages=3", 96, 160},
        {"resnet18", "sp=5x1,halo=2", 96, 160},
        {"resnet18", "cp=2", 96, 160},
        {"unet:8", "sp=1x3", 101, 67},
        {"unet:8", "sp=2x2,stages=2,tail=shared", 101, 67},
        {"unet:8", "sp=2x1,stages=2,tail=shared,halo=4", 101, 67},
        {"unet:8", "sp=3x2,halo=4,overlap=interior", 101, 67},
        {"unet:8", "cp=3,stages=2", 101, 67},
        {"amoebanetd:3,32", "sp=2x2,stages=2,ldp=2", 96, 160},
        {"amoebanetd:3,32", "sp=2x1,stages=5,sched=gems", 96, 160},
        {"amoebanetd:3,32", "sp=1x2,halo=3,recompute=full", 96, 160},
        {"amoebanetd:3,32", "bp=2", 96, 160},
    };
    const bool all = law_all("eight more layouts of real networks");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!all && i % 3 != 1) continue;
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = net(arena, cases[i].net, cases[i].h, cases[i].w);
        const hp_strategy s = parsed(cases[i].strategy);
        runs_on_integers(g, &s, HP_MODE_TRAIN, hp_strategy_batch(&s, 1), cases[i].net);
        hp_arena_free(arena);
    }
}

/* --- memory --- */

/* Bytes of all buffers in use at one task. */
static int64_t alive_at(const hp_role *r, int task) {
    int64_t n = 0;
    for (int b = 0; b < r->n_buffer; b++)
        if (r->buffer[b].first <= task && task <= r->buffer[b].last) n += r->buffer[b].bytes;
    return n;
}

static void check_peak(const hp_role *r) {
    int64_t most = 0, end = 0;
    for (int t = 0; t < r->n_task; t++) {
        const int64_t n = alive_at(r, t);
        if (n > most) most = n;
    }
    for (int b = 0; b < r->n_buffer; b++)
        if (r->buffer[b].offset + r->buffer[b].bytes > end) end = r->buffer[b].offset + r->buffer[b].bytes;
    assert_true(r->live_bytes >= most && r->live_bytes < most + (int64_t)64 * r->n_buffer); /* cache lines */
    assert_true(r->arena_bytes >= most && r->arena_bytes >= end);
}

static void any_strategy_is_proved_and_peaks_above_what_is_alive(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        dice d = {seed, 8000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = any_net(arena, seed, roll(&d, 3, 10));
        const int groups = roll(&d, 1, 8);
        const hp_strategy s = random_strategy_of(&d, g, groups, 64, DRAW_ALL);
        for (int mode = 0; mode < 2; mode++) {
            const hp_lower_options o = {.mode = (hp_mode)mode,
                                        .dtype = coin(&d) ? HP_F32 : HP_F64,
                                        .batch = hp_strategy_batch(&s, groups),
                                        .place = true};
            hp_error err;
            char text[HP_STRATEGY_TEXT];
            const hp_program *p = lowered(arena, g, &s, &o, "random");
            if (hp_program_check(p, g, &err) != HP_OK)
                fail_msg("seed %llu, mode %d, %s: %s", (unsigned long long)seed, mode,
                         hp_strategy_text(&s, text), err.text);
            for (int r = 0; r < p->n_role; r++) check_peak(&p->role[r]);
        }
        hp_arena_free(arena);
    }
}

/* --- size --- */

static hp_program *with_replicas(hp_arena *arena, const hp_graph *g, hp_strategy s, int dp, int64_t batch) {
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = batch / s.dp * dp, .place = true};
    s.dp = dp;
    return lowered(arena, g, &s, &o, "replicas");
}

static bool same_size(const hp_role *a, const hp_role *b, bool parts) {
    bool same = a->n_task == b->n_task && a->n_operand == b->n_operand && a->n_buffer == b->n_buffer &&
                a->n_queue == b->n_queue &&
                (parts || (a->n_dep == b->n_dep && a->arena_bytes == b->arena_bytes));
    for (int t = 0; same && t < a->n_task; t++)
        same = a->task[t].op == b->task[t].op && a->task[t].layer == b->task[t].layer;
    return same;
}

/* Ranks that do the same share a list: 1000 replicas need as many tasks, buffers and bytes as two, unless
 * each keeps a part of what they share (ZeRO). */
static void programs_do_not_grow_with_replicas(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 9000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = any_net(arena, seed, roll(&d, 3, 8));
        const int groups = roll(&d, 1, 4);
        const hp_strategy s = random_strategy_of(&d, g, groups, 32, DRAW_ALL - DRAW_SHARES);
        const int64_t batch = hp_strategy_batch(&s, groups);
        const hp_program *two = with_replicas(arena, g, s, 2, batch),
                         *more = with_replicas(arena, g, s, 1000, batch);
        assert_true(two->n_role == more->n_role && two->n_group == more->n_group &&
                    two->n_member == more->n_member);
        for (int r = 0; r < two->n_role; r++)
            assert_true(same_size(&two->role[r], &more->role[r], s.zero.stage > 0));
        hp_arena_free(arena);
    }
}

/* --- homes --- */

static void check_homes(hp_arena *arena, const hp_graph *g, const hp_program *p) {
    for (int i = 0; i < g->n_param; i++) {
        if (!hp_param_trained(&g->param[i])) continue;
        uint8_t *homes = HP_NEW(arena, uint8_t, g->param[i].count);
        for (int r = 0; r < p->n_role; r++) {
            const hp_param_place *at = &p->role[r].place[i];
            for (int64_t e = at->first; at->here & HP_HOME && e < at->first + at->count; e++) homes[e]++;
        }
        for (int64_t e = 0; e < g->param[i].count; e++)
            if (homes[e] != 1)
                fail_msg("%s: element %lld has %d homes", g->param[i].name, (long long)e, homes[e]);
    }
}

static void every_weight_has_one_home(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        dice d = {seed, 11000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = any_net(arena, seed, roll(&d, 3, 8));
        const int groups = roll(&d, 1, 6);
        const hp_strategy s = random_strategy_of(&d, g, groups, 32, DRAW_ALL);
        const hp_lower_options o = {.dtype = HP_F32, .batch = hp_strategy_batch(&s, groups)};
        check_homes(arena, g, lowered(arena, g, &s, &o, "homes"));
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_strategy_moves_what_layers_read_and_its_adjoint),
        cmocka_unit_test(layouts_of_real_networks_move_what_layers_read),
        cmocka_unit_test(any_strategy_is_proved_and_peaks_above_what_is_alive),
        cmocka_unit_test(programs_do_not_grow_with_replicas),
        cmocka_unit_test(every_weight_has_one_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
