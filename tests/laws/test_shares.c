/* test_shares.c - replicas with unequal shares of the batch: the update is the mean, weighted by samples, of
 * each share's own update; batch norms accumulate statistics share by share. */
#include "tests/support/exec/law_run.h"

enum {
    MAX_RANKS = 12,
    DRAW_AXES = DRAW_SHARES | DRAW_TILES | DRAW_PROPORTIONS | DRAW_CP | DRAW_LDP | DRAW_HALO | DRAW_ZERO |
                DRAW_BRANCHES
};

/* Its gradient is the mean over samples, and a sample's noise does not depend on its place in the batch. */
static bool is_plain(const hp_graph *g) {
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_DROPOUT) return false;
    return logits->h * logits->w == 1;
}

static double momentum_of(const hp_graph *g, int param) {
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_param; k++)
            if (g->layer[l].param[k] == param) return (double)g->layer[l].momentum;
    return 0;
}

/* One rank with the samples of one share only. */
static outcome share_alone(hp_arena *arena, const law_training *t, int64_t first, int64_t samples) {
    law_training one = *t;
    one.s = law_one_rank(1);
    one.first_sample = first;
    one.batch = samples;
    return law_run(arena, &one);
}

/* The shares' combined result after one step from `start`. */
static void combine(const hp_graph *g, const double *start, const outcome *share, const double *part, int n,
                    outcome *out) {
    int64_t at = 0;
    out->loss[0] = 0;
    for (int k = 0; k < n; k++) out->loss[0] += part[k] * share[k].loss[0];
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = 0; e < g->param[i].count; e++, at++) {
            const double keep = 1 - momentum_of(g, i);
            out->weights[at] = start[at];
            for (int k = 0; k < n; k++)
                if (hp_param_trained(&g->param[i]))
                    out->weights[at] += part[k] * (share[k].weights[at] - start[at]);
                else /* accumulates the statistics of one share after the other */
                    out->weights[at] = keep * out->weights[at] + share[k].weights[at] - keep * start[at];
        }
}

static void shares_are_weighted_by_their_samples(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        dice d = {seed, 9900};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int replicas = roll(&d, 2, 4);
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = 1, .lr = 0.05, .seed = seed};
        const hp_proportions *by = &t.s.by[HP_AXIS_N];
        t.s = hp_strategy_default();
        for (int tries = 0; tries < 40 && by->n != replicas; tries++)
            t.s = random_strategy_of(&d, g, replicas, MAX_RANKS, DRAW_AXES);
        if (by->n == replicas && is_plain(g)) {
            t.s.bn = HP_BN_SYNC;
            t.batch = hp_strategy_batch(&t.s, 1);
            outcome share[4], want = {.weights = HP_NEW(arena, double, ranks_param_elems(g))};
            double part[4];
            int64_t first = 0;
            for (int k = 0; k < replicas; k++) {
                const int64_t samples = t.batch / hp_proportions_sum(by) * by->of[k];
                share[k] = share_alone(arena, &t, first, samples);
                part[k] = (double)samples / (double)t.batch;
                first += samples;
            }
            want.n = ranks_param_elems(g);
            combine(g, law_parameters(arena, g, seed), share, part, replicas, &want);
            const outcome have = law_run(arena, &t);
            law_close(&t, &want, &have, 1e-9, 1e-9);
            tried++;
        }
        hp_arena_free(arena);
    }
    assert_true((uint64_t)tried >= law_cases(300) / 4);
    print_message("%d of %llu draws had shares\n", tried, (unsigned long long)law_cases(300));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares_are_weighted_by_their_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
