/* test_estimate.c - what is known of a strategy before lowering, compared with its program: bounds on time
 * and memory, cuts; what an eager framework keeps, compared with published counts; what limits a step. */
#include "networks/deploy/deploy.h"
#include "plan/memory/memory_device.h"
#include "sim/memory/eager.h"
#include "sim/search/predict.h"
#include "tests/support/plan/built/whole_shape.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/law_cases.h"
#include "plan/lower/lower.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct world {
    hp_arena *arena;
    hp_graph *g;
    hp_machine m;
    hp_cost_table *t;
    hp_eval *e;
    const hp_device_info *device; /* NULL: any */
} world;

static void must(hp_status status, const hp_error *err) {
    if (status != HP_OK) fail_msg("%s", err->text);
}

static world world_of(const char *machine, hp_graph *(*net)(hp_arena *, uint64_t), uint64_t seed) {
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    must(hp_machine_load(machine, &w.m, &err), &err);
    must(hp_cost_load(w.arena, NULL, &w.m, &w.t, &err), &err);
    w.g = net(w.arena, seed);
    return w;
}

static void evaluate_in(world *w, hp_mode mode, int64_t batch, bool eager) {
    w->e = hp_eval_new(w->arena, &(hp_eval_setup){.graph = w->g,
                                                  .machine = &w->m,
                                                  .table = w->t,
                                                  .mode = mode,
                                                  .dtype = HP_F32,
                                                  .batch = batch,
                                                  .memory_limit = INT64_MAX / 2,
                                                  .eager = eager,
                                                  .device = w->device,
                                                  .straggler_rank = -1});
}

static void evaluate_with(world *w, int64_t batch, bool eager) {
    evaluate_in(w, HP_MODE_TRAIN, batch, eager);
}

static hp_graph *small_net(hp_arena *arena, uint64_t seed) {
    return random_net(arena, seed, 4 + (int)(seed % 5));
}

/* --- bounds --- */

/* No simulation is faster than the bound, and no rank of the program needs less than the memory. */
static void must_bound(world *w, const hp_strategy *s, int seed) {
    hp_error err = {HP_OK, ""};
    hp_evaluation v;
    hp_estimate out;
    char text[HP_STRATEGY_TEXT];
    must(hp_eval_estimate(w->e, s, &out, &err), &err);
    must(hp_evaluate(w->e, w->arena, s, HP_EVAL_PLACED, &v, &err), &err);
    assert_int_equal(v.reject.code, HP_FEASIBLE);
    const bool streams_all = s->strips.n > 1; /* in that case, nothing is known of its time */
    if (!(out.bound_s > (streams_all ? -1 : 0) &&
          out.bound_s <= v.figures.step_s * (1 + 1e-6) + 1e-7)) /* rounding to ns */
        fail_msg("seed %d %s: bound %g, step %g", seed, hp_strategy_text(s, text), out.bound_s,
                 v.figures.step_s);
    if (out.memory_bytes > (double)v.figures.memory_bytes)
        fail_msg("seed %d %s: bound %g, memory %lld", seed, hp_strategy_text(s, text), out.memory_bytes,
                 (long long)v.figures.memory_bytes);
    if (hp_eval_weights(w->e, s) > (double)v.figures.memory_bytes)
        fail_msg("seed %d %s: weights %g, memory %lld", seed, hp_strategy_text(s, text),
                 hp_eval_weights(w->e, s), (long long)v.figures.memory_bytes);
}

/* A draw over all axes, in every precision of training. */
static void must_bound_draw(uint64_t seed) {
    dice d = {seed, 500};
    world w = world_of(coin(&d) ? "local" : "thesis-a100", small_net, seed);
    const int groups = roll(&d, 1, 12);
    hp_strategy s = random_strategy_of(&d, w.g, groups, 24, DRAW_ALL);
    w.g = random_precision(&d, w.arena, w.g, &s);
    w.device = coin(&d) ? &hp_devices[HP_DEVICE_CUDA] : NULL;
    const bool eager = seed % 4 == 0;
    evaluate_with(&w, hp_strategy_batch(&s, groups), eager);
    must_bound(&w, &s, (int)seed);
    hp_arena_free(w.arena);
}

static void bounds_are_below_programs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(250); seed++) must_bound_draw(seed);
    must_bound_draw(287); /* zero-bubble, whose weight gradients run while sums of statistics are awaited */
}

static hp_graph *deployed(world *w, int prec) {
    hp_graph *g = NULL;
    hp_error err = {HP_OK, ""};
    const hp_deploy_options o = {.prec = prec};
    must(hp_graph_deploy(w->arena, w->g, &o, &g, &err), &err);
    return g;
}

/* Strategies are drawn for float32; among the other precisions, only dynamic ranges affect legality. */
static hp_strategy inference_strategy(dice *d, world *w, int *groups, int prec) {
    const bool whole = prec == HP_PREC_INT8_DYNAMIC; /* maps: their ranges are known only when they are
                                                      * complete */
    const int cut = DRAW_TILES | DRAW_SHARED | DRAW_HALO | DRAW_OVERLAP,
              any = DRAW_LDP | DRAW_CLIENTS | DRAW_BRANCHES;
    *groups = roll(d, 1, 6);
    hp_strategy s = random_strategy_of(d, w->g, *groups, 16, whole ? any : cut | any);
    hp_strategy strips = s;
    strips.strips.n = roll(d, 2, 7);
    strips.strips.deep = coin(d) ? roll(d, 1, w->g->n_unit) : 0;
    if (!whole && roll(d, 0, 2) && hp_strategy_legal(&strips, w->g, hp_strategy_batch(&s, *groups), 0, NULL))
        s = strips;
    s.prec = prec;
    return s;
}

/* A strategy's likely need decides what is simulated first. It is close to its program's need, here for
 * transformers and a residual net, including recomputation, packed weights, gathered maps and the loss. */
static void likely_memory_is_near_programs(void **state) {
    (void)state;
    enum { BATCH = 32 };
    static const char *const nets[] = {"gpt:8,512,8,512,8192", "vit-b16", "resnet50"};
    static const char *const strategies[] = {
        "dp=1",
        "dp=4,micro=2",
        "stages=4,micro=8,sched=1f1b",
        "stages=4,micro=8,recompute=full",
        "stages=2,chunks=4,micro=8,sched=interleaved,recompute=except-last",
        "tp=4",
        "dp=2,tp=8,micro=4,recompute=boundary",
        "stages=2,tp=4,micro=4,sched=1f1b",
        "bp=2",
        "stages=2,bp=3,micro=4,recompute=full"};
    for (size_t i = 0; i < sizeof nets / sizeof *nets * sizeof strategies / sizeof *strategies; i++) {
        const char *const net = nets[i % 3], *const text = strategies[i / 3];
        if (i % 3 == 2 && strstr(text, "tp=")) continue; /* a residual net has no layers to share */
        if (i % 3 == 0 && strstr(text, "bp=")) continue; /* the head has the embedding's parameter */
        world w = world_of("dgx-h100", small_net, 1);
        hp_error err = {HP_OK, ""};
        hp_strategy s;
        hp_estimate out;
        hp_evaluation v;
        w.device = &hp_devices[HP_DEVICE_CUDA];
        must(hp_net_build(w.arena, net, i % 3 ? 64 : 512, i % 3 ? 64 : 1, 1000, &w.g, &err), &err);
        evaluate_with(&w, BATCH, false);
        must(hp_strategy_parse(text, &s, &err), &err);
        must(hp_eval_estimate(w.e, &s, &out, &err), &err);
        must(hp_evaluate(w.e, w.arena, &s, HP_EVAL_FITS, &v, &err), &err);
        const double ratio = out.likely_bytes / (double)v.figures.memory_bytes;
        if (v.reject.code || ratio < 0.7 || ratio > 1.3)
            fail_msg("%s %s: %.4g bytes likely, %lld needed: %.2f", net, text, out.likely_bytes,
                     (long long)v.figures.memory_bytes, ratio);
        hp_arena_free(w.arena);
    }
}

/* Inference, in every precision, whole and in strips. */
static void bounds_are_below_inference_programs(void **state) {
    (void)state;
    int in_strips = 0;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++) {
        dice d = {seed, 900};
        world w = world_of(coin(&d) ? "local" : "thesis-a100", small_net, seed);
        int groups;
        const int prec = roll(&d, 0, HP_PRECS - 1);
        hp_graph *trained = w.g;
        w.g = deployed(&w, HP_PREC_FP32);
        const hp_strategy s = inference_strategy(&d, &w, &groups, prec);
        w.g = trained;
        w.g = deployed(&w, prec);
        w.device = coin(&d) ? &hp_devices[HP_DEVICE_CUDA] : NULL;
        evaluate_in(&w, HP_MODE_INFER, hp_strategy_batch(&s, groups), false);
        must_bound(&w, &s, (int)seed);
        in_strips += s.strips.n > 1;
        hp_arena_free(w.arena);
    }
    assert_true(in_strips > (int)law_cases(120) / 6);
}

/* One rank with whole maps holds what the graph holds at once (hp_graph_live_bytes, counted by hand in
 * test_deploy.c) and the constants, no more. */
static void one_rank_holds_what_the_graph_says(void **state) {
    (void)state;
    static const char *const nets[] = {"resnet50", "vgg19", "unet:8", "mobilenetv2"};
    for (int i = 0; i < 4 * HP_PRECS; i++) {
        const int prec = i / 4;
        world w = {.arena = hp_arena_new()};
        hp_error err = {HP_OK, ""};
        hp_estimate out;
        hp_strategy s = hp_strategy_default();
        must(hp_machine_load("thesis-a100", &w.m, &err), &err);
        must(hp_cost_load(w.arena, NULL, &w.m, &w.t, &err), &err);
        must(hp_net_build(w.arena, nets[i % 4], 256, 256, 10, &w.g, &err), &err);
        w.g = deployed(&w, prec);
        evaluate_in(&w, HP_MODE_INFER, 1, false);
        s.prec = prec;
        must(hp_eval_estimate(w.e, &s, &out, &err), &err);
        double constants = 0;
        for (int l = 1; l < w.g->n_layer; l++) {
            const hp_shape shape = whole_shape(w.g, l, 1);
            constants += (double)hp_infer_pack_bytes(w.g, l, &shape, HP_F32);
        }
        const double live = (double)hp_graph_live_bytes(w.g), have = out.memory_bytes - constants;
        if (!(have <= live && have >= 0.98 * live)) fail_msg("%s: %g, graph %g", nets[i % 4], have, live);
        hp_arena_free(w.arena);
    }
}

/* --- one node --- */

/* Nothing crosses a NIC. */
static void the_network_of_one_node_is_unused(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(30); seed++) {
        dice d = {seed, 800};
        world w = world_of("local", small_net, seed);
        const int groups = roll(&d, 1, 6);
        const hp_strategy s = random_strategy_of(&d, w.g, groups, 12, DRAW_ALL);
        hp_estimate out[2];
        hp_evaluation v[2];
        hp_error err = {HP_OK, ""};
        for (int i = 0; i < 2; i++) {
            w.m.inter.bytes_per_s *= i ? 1e-3 : 1;
            w.m.inter.latency_s *= i ? 1e3 : 1;
            evaluate_with(&w, hp_strategy_batch(&s, groups), false);
            must(hp_eval_estimate(w.e, &s, &out[i], &err), &err);
            must(hp_evaluate(w.e, w.arena, &s, HP_EVAL_PLACED, &v[i], &err), &err);
        }
        assert_true(out[0].estimate_s == out[1].estimate_s && out[0].bound_s == out[1].bound_s);
        assert_true(v[0].figures.step_s == v[1].figures.step_s);
        hp_arena_free(w.arena);
    }
}

/* --- cuts --- */

static double stage_time(const hp_part_sums *p, int first, int end) {
    return p->forward[end] - p->forward[first] + p->backward[end] - p->backward[first];
}

/* The smallest possible slowest stage, over all cuts. */
static double try_all(hp_parts *parts, const hp_strategy *s, int64_t samples, int stage, int first,
                      int n_unit) {
    const hp_layout layout = hp_stage_layout(s, stage);
    const hp_part_sums *p = hp_parts_of(parts, &layout, samples);
    if (stage == s->stages - 1) return stage_time(p, first, n_unit);
    double best = INFINITY;
    for (int end = first + 1; end <= n_unit - (s->stages - 1 - stage); end++)
        best =
            fmin(best, fmax(stage_time(p, first, end), try_all(parts, s, samples, stage + 1, end, n_unit)));
    return best;
}

static void cuts_over_unequal_stages_are_optimal(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 700};
        world w = world_of("thesis-a100", small_net, seed);
        hp_strategy s = hp_strategy_default();
        s.stages = roll(&d, 2, 4);
        s.sp.n = roll(&d, 1, s.stages);
        for (int i = 0; i < s.sp.n; i++) {
            s.sp.rows[i] = roll(&d, 1, 3);
            s.sp.cols[i] = roll(&d, 1, 3);
        }
        hp_cost_cache *cache = hp_cost_cache_new(w.arena, w.t, &w.m, NULL);
        hp_parts *parts = hp_parts_new(w.arena, w.g, cache, HP_F32, HP_MODE_TRAIN, NULL, NULL);
        int32_t counts[HP_MAX_STAGES];
        const hp_cut_costs by = {&w.m, {parts}};
        hp_cut_stages(&by, w.g, &s, 2, HP_CUT_TIME, false, counts);
        double slowest = 0;
        int first = 0;
        for (int stage = 0; stage < s.stages; first += counts[stage++]) {
            const hp_layout layout = hp_stage_layout(&s, stage);
            assert_true(counts[stage] >= 1);
            slowest = fmax(slowest, stage_time(hp_parts_of(parts, &layout, 2), first, first + counts[stage]));
        }
        assert_int_equal(first, w.g->n_unit);
        assert_true(slowest <= try_all(parts, &s, 2, 0, 0, w.g->n_unit) * (1 + 1e-9));
        hp_arena_free(w.arena);
    }
}

/* --- what an eager framework keeps --- */

static hp_graph *net_of(hp_arena *arena, const char *name, int image, int classes) {
    hp_graph *g = NULL;
    hp_error err = {HP_OK, ""};
    must(hp_net_build(arena, name, image, image, classes, &g, &err), &err);
    return g;
}

static hp_program *lower(hp_arena *arena, const hp_graph *g, const char *strategy, int64_t batch) {
    hp_strategy s;
    hp_program *p = NULL;
    hp_error err = {HP_OK, ""};
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = batch};
    must(hp_strategy_parse(strategy, &s, &err), &err);
    must(hp_lower(arena, g, &s, &o, &p, &err), &err);
    return p;
}

/* Without parameters (weights, gradients, momentum; running statistics). */
static double kept_bytes(const hp_program *p, const hp_graph *g, int role) {
    double fixed = 0;
    for (int i = 0; i < g->n_param; i++)
        fixed += 4.0 * (double)p->role[role].place[i].count * (hp_param_trained(&g->param[i]) ? 3 : 1);
    hp_framework counted = hp_frameworks[0];
    counted.memory.blocks = false; /* publications count tensors, not what an allocator rounds them to */
    return (double)hp_eager_bytes(p, g, &counted, role) - fixed;
}

/* ResNet-110-v2 keeps 4,659 elements per pixel (counted by hand in MPI4DL's source), 19.5 GB per image at
 * 1024 x 1024 and 78 GB at 2048 x 2048, in addition to the first gradients. AmoebaNet-D(18,214): 5.9 and 23.7
 * GB; (18,416): 11.6 and 46.5 GB. */
static void published_counts_of_saved_tensors(void **state) {
    (void)state;
    static const struct {
        const char *net;
        int image;
        double gigabytes;
    } cases[] = {{"resnet-v2-110", 1024, 19.5},     {"resnet-v2-110", 2048, 78},
                 {"amoebanetd:18,214", 1024, 5.9},  {"amoebanetd:18,214", 2048, 23.7},
                 {"amoebanetd:18,416", 1024, 11.6}, {"amoebanetd:18,416", 2048, 46.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = net_of(arena, cases[i].net, cases[i].image, 10);
        const double bytes = kept_bytes(lower(arena, g, "dp=1", 1), g, 0);
        if (fabs(bytes * 1e-9 - cases[i].gigabytes) > 0.012 * cases[i].gigabytes)
            fail_msg("%s at %d: %g bytes, published %g GB", cases[i].net, cases[i].image, bytes,
                     cases[i].gigabytes);
        hp_arena_free(arena);
    }
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net_of(arena, "resnet-v2-110", 1024, 10);
    const double first_gradients =
        4.0 * 256 / 256; /* gradient of the average pooling's input: 256 channels at 1/16 of a side */
    assert_true(
        fabs(kept_bytes(lower(arena, g, "dp=1", 1), g, 0) / 4 / 1048576 - 4659 - 4 * first_gradients) < 1);
    hp_arena_free(arena);
}

/* Inference holds three maps of 64 channels while a norm's input waits for the addition at the block's end:
 * the input, its norm, and that one's activation. At the addition, it holds as many. */
static void inference_holds_three_maps(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_program *p = NULL;
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    const hp_deploy_options d = {.prec = HP_PREC_FP32};
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F32, .batch = 2};
    must(hp_graph_deploy(arena, net_of(arena, "resnet-v2-110", 256, 10), &d, &g, &err), &err);
    must(hp_strategy_parse("dp=1", &s, &err), &err);
    must(hp_lower(arena, g, &s, &o, &p, &err), &err);
    const double maps = (double)hp_eager_infer_bytes(p, g, NULL, 0) / (2.0 * 64 * 256 * 256 * 4);
    if (fabs(maps - 3) > 1e-6) fail_msg("%.9g maps", maps); /* and labels */
    hp_arena_free(arena);
}

/* GPipe keeps every micro-batch; 1F1B keeps as many as there are stages from its own on; GEMS keeps those of
 * one pass; recomputation keeps less. */
static void schedules_keep_what_their_tables_say(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = net_of(arena, "resnet-v2-110", 128, 10);
    static const char *const cut = "stages=4,cut=9:9:9:11";
    double one[4];
    const hp_program *p = lower(arena, g, cut, 1);
    for (int r = 0; r < 4; r++) one[r] = kept_bytes(p, g, r);
    static const struct {
        const char *more;
        int micro, kept[4];
    } cases[] = {{"micro=6", 6, {6, 6, 6, 6}}, {"micro=6,sched=1f1b", 6, {4, 3, 2, 1}}};
    for (int i = 0; i < 2; i++) {
        p = lower(arena, g, hp_arena_printf(arena, "%s,%s", cut, cases[i].more), cases[i].micro);
        for (int r = 0; r < 4; r++)
            assert_true(fabs(kept_bytes(p, g, r) - cases[i].kept[r] * one[r]) <
                        0.13 * one[r] * cases[i].kept[r]);
    }
    p = lower(arena, g, hp_arena_printf(arena, "%s,sched=gems", cut), 2);
    for (int r = 0; r < 4; r++) assert_true(kept_bytes(p, g, r) < 1.1 * fmax(one[r], one[3 - r]));
    p = lower(arena, g, hp_arena_printf(arena, "%s,recompute=full", cut), 1);
    for (int r = 0; r < 4; r++) assert_true(kept_bytes(p, g, r) < 1.2 * one[r]);
    p = lower(arena, g, "recompute=boundary", 1);
    assert_true(kept_bytes(p, g, 0) < 0.4 * kept_bytes(lower(arena, g, "dp=1", 1), g, 0));
    hp_arena_free(arena);
}

/* As published: two images of 2048 x 2048 on five A100s with 40 GB fit neither as five stages nor as four
 * tiles and one rank; one image does, and tiles are faster. */
static void published_limits_of_spatial_and_layer_parallelism(void **state) {
    (void)state;
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    static const char *const strategies[] = {"stages=5", "sp=2x2,stages=2", "sp=4x1,stages=2",
                                             "sp=1x4,stages=2"};
    must(hp_machine_load("thesis-a100", &w.m, &err), &err);
    must(hp_cost_load(w.arena, NULL, &w.m, &w.t, &err), &err);
    w.g = net_of(w.arena, "resnet-v2-110", 2048, 10);
    double step[4];
    for (int batch = 1; batch <= 2; batch++) {
        evaluate_with(&w, batch, true);
        hp_eval_setup setup = *hp_eval_get(w.e);
        setup.memory_limit = 0;
        w.e = hp_eval_new(w.arena, &setup);
        for (int i = 0; i < 4; i++) {
            hp_strategy s;
            hp_evaluation v;
            must(hp_strategy_parse(strategies[i], &s, &err), &err);
            must(hp_evaluate(w.e, w.arena, &s, HP_EVAL_PLACED, &v, &err), &err);
            if (batch == 1) step[i] = v.figures.step_s;
            assert_true(batch == 1 ? !v.reject.code : v.reject.code == HP_REJECT_MEM);
        }
    }
    for (int i = 1; i < 4; i++) assert_true(step[i] < 0.7 * step[0]);
    hp_arena_free(w.arena);
}

/* --- what bounds a step --- */

static void each_bound_is_named(void **state) {
    (void)state;
    static const struct {
        const char *strategy, *bound_by;
        int image, batch;
        double rate, latency; /* rate and latency of the links, relative to the machine's */
    } cases[] = {{"dp=1", "compute", 128, 4, 1, 1},
                 {"stages=4", "pipeline bubble", 128, 1, 1, 1},
                 {"dp=8", "gradient all-reduce", 32, 8, 1e-2, 1},
                 {"sp=4x1,bn=local", "halo", 256, 1, 1, 100},
                 {"sp=8x1", "batch-norm statistics", 32, 1, 1, 1},
                 {"stages=2,micro=8", "stage transfers", 64, 8, 1e-3, 1},
                 {"recompute=boundary", "memory", 128, 4, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = {.arena = hp_arena_new()};
        hp_error err = {HP_OK, ""};
        hp_strategy s;
        hp_evaluation v;
        must(hp_machine_load("thesis-a100", &w.m, &err), &err);
        w.m.inter.bytes_per_s *= cases[i].rate;
        w.m.intra.bytes_per_s *= cases[i].rate;
        w.m.inter.latency_s *= cases[i].latency;
        w.m.intra.latency_s *= cases[i].latency;
        must(hp_cost_load(w.arena, NULL, &w.m, &w.t, &err), &err);
        w.g = net_of(w.arena, "resnet-v1-20", cases[i].image, 10);
        evaluate_with(&w, cases[i].batch, false);
        must(hp_strategy_parse(cases[i].strategy, &s, &err), &err);
        must(hp_evaluate(w.e, w.arena, &s, HP_EVAL_PLACED, &v, &err), &err);
        if (!v.bound_by || strcmp(v.bound_by, cases[i].bound_by) != 0)
            fail_msg("%s: %s (%s), expected %s", cases[i].strategy, v.bound_by, v.figures.note,
                     cases[i].bound_by);
        hp_arena_free(w.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_below_programs),
        cmocka_unit_test(likely_memory_is_near_programs),
        cmocka_unit_test(bounds_are_below_inference_programs),
        cmocka_unit_test(one_rank_holds_what_the_graph_says),
        cmocka_unit_test(the_network_of_one_node_is_unused),
        cmocka_unit_test(cuts_over_unequal_stages_are_optimal),
        cmocka_unit_test(published_counts_of_saved_tensors),
        cmocka_unit_test(inference_holds_three_maps),
        cmocka_unit_test(schedules_keep_what_their_tables_say),
        cmocka_unit_test(published_limits_of_spatial_and_layer_parallelism),
        cmocka_unit_test(each_bound_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
