/* test_exhaustive.c - the law of the search: on small spaces, its answer is the best of all strategies, each
 * lowered, placed and simulated separately; it finds none only if none fits. */
#include "sim/search/predict.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/sim/search_world.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Largest space to be tried one by one. */
static int most_points(void) {
    return law_all("spaces of more than 800 strategies") ? 5000 : 800;
}

/* The best value over all points, and the least memory of any. */
typedef struct optimum {
    double value;
    int64_t least_bytes;
    int fit, points;
} optimum;

static hp_evaluation evaluate(hp_eval *e, hp_arena *arena, const hp_point *p) {
    hp_error err = {HP_OK, ""};
    hp_evaluation v;
    hp_strategy s = hp_space_strategy(p);
    if (hp_strategy_legal(&s, hp_eval_get(e)->graph, hp_eval_get(e)->batch, 0, NULL))
        hp_eval_complete(e, &s, (hp_cut_kind)p->cut);
    if (hp_evaluate(e, arena, &s, HP_EVAL_RANK, &v, &err) != HP_OK) fail_msg("%s", err.text);
    return v;
}

static void take(optimum *o, const hp_evaluation *v) {
    const double value = v->figures.step_s;
    if (v->figures.memory_bytes > 0 && v->figures.memory_bytes < o->least_bytes)
        o->least_bytes = v->figures.memory_bytes;
    if (v->reject.code) return;
    o->fit++;
    if (value < o->value) o->value = value;
}

/* Evaluates every point with its cut; one that is too large also with the cut by memory, as the space
 * does. */
static optimum try_all(world *w, const hp_space *space, int most) {
    optimum o = {.value = INFINITY, .least_bytes = INT64_MAX};
    hp_point *list;
    hp_eval *e = hp_eval_new(w->arena, &w->setup);
    o.points = hp_space_list(w->arena, space, &list);
    for (int i = 0; i < o.points && o.points <= most; i++) {
        hp_arena *own = hp_arena_new();
        hp_point p = list[i];
        const hp_evaluation v = evaluate(e, own, &p);
        take(&o, &v);
        if (v.reject.code == HP_REJECT_MEM && p.stages * p.chunks > 1 && p.cut == HP_CUT_TIME) {
            p.cut = HP_CUT_MEMORY;
            const hp_evaluation again = evaluate(e, own, &p);
            take(&o, &again);
        }
        hp_arena_free(own);
    }
    return o;
}

/* Draws a network, a machine of a few odd nodes and a batch. */
static world draw_world(dice *d, int *devices) {
    static const char *const machines[] = {"local", "thesis-a100", "lassen", "dgx-h200"};
    world w = make_world(machines[roll(d, 0, 3)], "cnn", 28, 1);
    const bool train = roll(d, 0, 3) > 0;
    w.g = random_net(w.arena, d->seed, roll(d, 2, 4));
    w.m.nodes = w.m.share_cpu ? 1 : roll(d, 1, 2);
    w.m.devices_per_node = roll(d, 1, 3);
    w.m.cores_per_node = w.m.devices_per_node;
    *devices = roll(d, 1, hp_machine_devices(&w.m));
    w.setup.graph = w.g;
    w.setup.device = w.m.share_cpu ? NULL : &hp_devices[HP_DEVICE_CUDA];
    w.setup.batch = (int64_t)*devices * roll(d, 1, 2);
    w.setup.mode = train ? HP_MODE_TRAIN : HP_MODE_INFER;
    return w;
}

static hp_search_result search_all(world *w, const hp_space *space, hp_sort sort) {
    hp_error err = {HP_OK, ""};
    hp_search_result r;
    const hp_search_options o = {.top = 1, .sort = sort, .threads = 2};
    if (hp_search(w->arena, &w->setup, space, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

/* With all of the memory, with a part of it, and with less than anything needs. */
static bool compare(world *w, const hp_space *space, uint64_t seed, hp_sort sort) {
    const optimum best = try_all(w, space, INT_MAX);
    const hp_search_result r = search_all(w, space, sort);
    if ((r.n > 0) != (best.fit > 0)) fail_msg("seed %lu: %d found, %d fit", seed, r.n, best.fit);
    if (!r.n) return false;
    hp_error err = {HP_OK, ""};
    hp_evaluation v;
    hp_strategy plain = r.best[0].strategy;
    for (int t = 0; t < HP_TRAFFICS; t++) plain.comm[t] = HP_COMM_AUTO; /* chosen afterwards */
    if (hp_evaluate(hp_eval_new(w->arena, &w->setup), w->arena, &plain, HP_EVAL_RANK, &v, &err) != HP_OK)
        fail_msg("%s", err.text);
    const hp_candidate *chosen = &r.best[0].figures; /* includes its back ends, which may have made it the
                                                      * best */
    const double found = fmin(chosen->step_s, v.figures.step_s);
    if (r.open || found > best.value)
        fail_msg("seed %lu: %s takes %.9f, the best of %d %.9f; %lld open", seed, r.best[0].figures.strategy,
                 found, best.fit, best.value, (long long)r.open);
    return true;
}

static void the_answer_is_the_best_of_all(void **state) {
    (void)state;
    const int most = most_points();
    uint64_t found = 0, none = 0;
    for (uint64_t seed = 1; seed <= law_cases(50); seed++) {
        dice d = {seed, 4242};
        int devices;
        world w = draw_world(&d, &devices);
        w.setup.machine = &w.m;
        const hp_space space = {.graph = w.g,
                                .mode = w.setup.mode,
                                .batch = w.setup.batch,
                                .n_devices = devices,
                                .most_clients = w.m.share_cpu ? 1 : 2};
        const hp_sort sort = coin(&d) ? HP_SORT_IMAGES : HP_SORT_TIME;
        w.setup.memory_limit = INT64_C(1) << 60;
        const optimum free = try_all(&w, &space, most);
        if (free.points <= most && free.fit) {
            static const double part[] = {1.5, 1.05, 1, 0.99};
            const int k = roll(&d, 0, 5);
            if (k < 4) w.setup.memory_limit = (int64_t)(part[k] * (double)free.least_bytes);
            *(compare(&w, &space, seed, sort) ? &found : &none) += 1;
        }
        hp_arena_free(w.arena);
    }
    assert_true(found > law_cases(50) / 2 && none > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_answer_is_the_best_of_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
