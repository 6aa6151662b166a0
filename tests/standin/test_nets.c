/* test_nets.c - networks trained on a GPU or its stand-in: any legal strategy, with messages staged through
 * the host, gives the loss and weights of one rank on the reference within rounding. Ranks are threads that
 * share the GPU and its streams. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "networks/graph/precision.h"
#include "tests/support/exec/law_run.h"
#include "tests/support/plan/random_tokens.h"

enum { MAX_RANKS = 6 };

static hp_comm *staged(hp_comm *inner, const hp_memory *memory) {
    return hp_comm_staged(inner, memory);
}

static hp_strategy by_way_of_the_host(hp_strategy s) {
    for (int t = 0; t < HP_TRAFFICS; t++) s.comm[t] = hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_LIBRARY);
    return s;
}

/* Relative rounding error of the maps' store, or of tf32 factors. */
static double eps_of(int32_t prec) {
    static const double eps[HP_PRECS] = {
        [HP_PREC_TF32] = 0x1p-11, [HP_PREC_BF16] = 0x1p-9, [HP_PREC_FP16] = 0x1p-11};
    return eps[prec];
}

/* Norm of the difference of two updates, relative to one's norm. */
static double update_off(const hp_graph *g, const outcome *exact, const outcome *have, const double *start) {
    double off = 0, all = 0;
    int64_t at = 0;
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = 0; e < g->param[i].count; e++, at++) {
            if (!hp_param_trained(&g->param[i])) continue;
            off += pow(exact->weights[at] - have->weights[at], 2);
            all += pow(exact->weights[at] - start[at], 2);
        }
    return all > 0 ? sqrt(off / all) : off;
}

/* The bound of tests/laws/test_train.c: a step's update is lr * gradient, whose relative error grows with the
 * depth and the length of the sums. In low precision, values near the middle of two numbers round to one or
 * the other, and a maximum or a kink may go the other way: then the whole update is compared. */
static void holds(uint64_t seed, const hp_graph *g, const hp_strategy *s, int groups, hp_arena *arena) {
    law_training there = {.g = g,
                          .s = by_way_of_the_host(*s),
                          .ops = &hp_device_cuda,
                          .comm = staged,
                          .batch = hp_strategy_batch(s, 2 * groups),
                          .steps = 1,
                          .lr = 0.01,
                          .loss_scale = hp_graph_scales_loss(g) ? 256 : 1,
                          .seed = seed};
    law_training one = there;
    one.s = law_one_rank(groups);
    one.s.prec = g->prec;
    one.ops = &hp_device_ref;
    one.comm = NULL;
    const outcome exact = law_run(arena, &one), have = law_run(arena, &there);
    const double eps = 0x1p-24, terms = 4096, low = eps_of(g->prec);
    law_close(&there, &exact, &have, eps * terms + 4 * low,
              low > 0 ? -1 : 0.01 * eps * terms * g->n_layer + 4 * eps);
    const double off = update_off(g, &exact, &have, law_parameters(arena, g, seed));
    if (low > 0 && !(off <= 64 * low))
        fail_msg("seed %llu: the update is off by %g of it", (unsigned long long)seed, off);
}

typedef hp_graph *net_fn(hp_arena *arena, uint64_t seed, int n_block);

static void one_rank(net_fn *net, uint64_t first, uint64_t cases) {
    for (uint64_t seed = first; seed < first + law_cases(cases); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 3);
        const hp_strategy s = law_one_rank(groups);
        holds(seed, g, &s, groups, arena);
        hp_arena_free(arena);
    }
}

static void any_strategy(net_fn *net, uint64_t first, uint64_t cases) {
    for (uint64_t seed = first; seed < first + law_cases(cases); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4);
        const hp_strategy s = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT);
        holds(seed, g, &s, groups, arena);
        hp_arena_free(arena);
    }
}

static void low_precision(net_fn *net, uint64_t first, uint64_t cases) {
    static const int32_t low[] = {HP_PREC_TF32, HP_PREC_BF16, HP_PREC_FP16};
    for (uint64_t seed = first; seed < first + law_cases(cases); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4), prec = low[seed % 3];
        hp_strategy s = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT);
        s.prec = prec;
        holds(seed, hp_graph_train_in(arena, g, prec), &s, groups, arena);
        hp_arena_free(arena);
    }
}

static void one_rank_stays_within_rounding(void **state) {
    (void)state;
    one_rank(random_net, 1, 9);
    one_rank(random_tokens, 1, 9);
    one_rank(random_maps, 1, 9);
}

/* Attention with heads of several chunks of 32 channels, over several tiles of pixels. */
static hp_graph *wide_heads(hp_arena *arena, uint64_t seed, int n_block) {
    static const int channels[] = {34, 64, 98, 130, 256};
    const int head = channels[seed % 5], heads = 1 + (int)(seed % 2), shared = 1 + (int)(seed / 2 % 2);
    const hp_heads kinds[] = {
        {.causal = true}, {.window_h = 5, .window_w = 4, .shift_w = 2, .bias = true}, {.rotary = 50}};
    (void)n_block;
    hp_error err;
    hp_builder b = hp_builder_start(arena, "wide", 9, 9, 3, &err);
    hp_heads h = kinds[seed / 3 % 3]; /* low_precision uses seed % 3 */
    h.kv_heads = shared;
    h.heads = heads * shared;
    const int x = hp_build_conv(&b, 0, "patch", 6, (hp_window){.k = 1, .stride = 1, .bias = true}),
              q = hp_build_project(&b, x, "q", head * h.heads, true),
              k = hp_build_project(&b, x, "k", head * shared, true),
              v = hp_build_project(&b, x, "v", head * shared, true),
              y = hp_build_attention(&b, q, k, v, "attend", h);
    hp_build_linear(&b, hp_build_crop(&b, y, "first", 4, 4, 2, 1), "fc", 3);
    hp_graph *g = NULL;
    assert_int_equal(hp_builder_finish(&b, &g), HP_OK);
    return hp_graph_fuse(arena, g);
}

/* Seeds 5 and 46 have heads of 34 and 64 channels. */
static void heads_of_many_channels_stay_within_rounding(void **state) {
    (void)state;
    const bool all = law_all("heads of 98 to 256 channels");
    one_rank(wide_heads, all ? 1 : 5, all ? 6 : 3);
    low_precision(wide_heads, all ? 31 : 46, all ? 9 : 3);
}

static void any_strategy_stays_within_rounding(void **state) {
    (void)state;
    any_strategy(random_net, 101, 9);
    any_strategy(random_tokens, 101, 9);
    any_strategy(random_maps, 101, 9);
}

static void any_strategy_in_low_precision_stays_within_rounding(void **state) {
    (void)state;
    low_precision(random_net, 301, 9);
    if (law_all("any strategy of transformers in low precision")) low_precision(random_tokens, 301, 9);
    low_precision(random_maps, 301, 9);
}

static void the_same_run_twice_gives_the_same_bits(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const law_training t = {.g = random_net(arena, 5, 6),
                            .s = law_one_rank(2),
                            .ops = &hp_device_cuda,
                            .comm = staged,
                            .batch = 8,
                            .steps = LAW_STEPS,
                            .lr = 0.01,
                            .seed = 5};
    const outcome a = law_run(arena, &t), b = law_run(arena, &t);
    assert_memory_equal(a.loss, b.loss, sizeof a.loss);
    assert_memory_equal(a.weights, b.weights, sizeof(double) * (size_t)a.n);
    hp_arena_free(arena);
}

/* The GPU is opened once, before ranks share it. */
static int open_gpu(void **state) {
    (void)state;
    hp_cuda *c = NULL;
    hp_error err;
    if (hp_cuda_open(NULL, &c, &err) != HP_OK) return 1;
    hp_cuda_close(c);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_stays_within_rounding),
        cmocka_unit_test(heads_of_many_channels_stay_within_rounding),
        cmocka_unit_test(any_strategy_stays_within_rounding),
        cmocka_unit_test(any_strategy_in_low_precision_stays_within_rounding),
        cmocka_unit_test(the_same_run_twice_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_gpu, NULL);
}
