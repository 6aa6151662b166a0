/* test_volumes.c - the bytes that a program sends equal the literature's closed forms, kind by kind, over
 * random transformers, degrees and precisions.
 *
 * Let u = b s h e (samples of a micro-batch, tokens, channels, bytes per element). Bytes sent by all ranks of
 * a replica together, per layer and micro-batch:
 * - tp=t: two all-reduces of u forward and two backward (Shoeybi et al. 2019), 8 (t-1)/t u for each of t
 *   ranks (Narayanan et al. 2021). Replacing each by an all-gather and a reduce-scatter moves as much
 *   (Korthikanti et al. 2022): 8 (t-1) u.
 * - seq=P:ring: a rank's keys and values, 2 u/P, go to the P-1 others, and their gradients come back (Liu et
 *   al. 2023): 4 (P-1) u. With causal attention, no token needs later ones: half.
 * - seq=P:a2a: four all-to-alls of u (queries, keys, values and attention's output), of which each of P ranks
 *   sends u/P (P-1)/P, and four backward (Jacobs et al. 2023): 8 (P-1)/P u.
 * - Recomputation sends forward messages again: 3/2 of all these.
 * - stages: u forward and u backward at each boundary (Narayanan et al. 2021).
 *
 * For m bytes of parameters shared by n ranks, in a step of k micro-batches (Rajbhandari et al. 2020, section
 * 7; n-1 times the data for a scatter or gather among n, Patarasu and Yuan 2009): see `shared`. */
#include "plan/program/traffic.h"
#include "plan/strategy/sequence.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/token_stack.h"
#include "plan/lower/lower.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct draw {
    token_stack net; /* its sizes need no padding and divide evenly */
    hp_strategy s;
    int samples; /* samples per micro-batch */
    hp_dtype dtype;
} draw;

enum { ALIGN = 16 /* elements: parameters, and parts of buckets, begin at multiples */ };

static hp_strategy draw_strategy(dice *d) {
    static const int degrees[] = {1, 1, 2, 3, 4};
    hp_strategy s = hp_strategy_default();
    s.tp = degrees[roll(d, 0, 4)];
    s.seq.ranks = degrees[roll(d, 0, 4)];
    s.seq.by = coin(d) ? HP_SEQ_RING : HP_SEQ_A2A;
    s.dp = roll(d, 1, 3);
    s.stages = roll(d, 1, 2);
    s.micro = roll(d, 1, 3);
    s.sched = s.stages * s.micro == 1 ? HP_SCHED_LP : coin(d) ? HP_SCHED_GPIPE : HP_SCHED_1F1B;
    s.zero.stage = roll(d, 0, 3);
    s.zero.keep = s.zero.stage == 3 && coin(d);
    s.recompute = s.zero.stage == 3 ? HP_RECOMPUTE_NONE : roll(d, HP_RECOMPUTE_NONE, HP_RECOMPUTE_FULL);
    s.prec = coin(d) ? HP_PREC_FP32 : HP_PREC_BF16;
    s.fuse_bytes = INT64_C(1) << 40; /* one bucket per group */
    return s;
}

static draw draw_case(uint64_t seed) {
    dice d = {seed, 8300};
    draw c = {.s = draw_strategy(&d), .samples = roll(&d, 1, 3)};
    const int parts = c.s.tp * c.s.seq.ranks, multiple = ALIGN * parts * c.s.dp;
    c.dtype = c.s.prec == (int)HP_PREC_FP32 && coin(&d) ? HP_F64 : HP_F32;
    c.net = (token_stack){.layers = roll(&d, c.s.stages, 4),
                          .heads = parts * roll(&d, 1, 2),
                          .tokens = parts * roll(&d, 1, 6),
                          .ids = multiple,
                          .logits = multiple,
                          .width = 2 * multiple,
                          .inner = multiple * roll(&d, 1, 4),
                          .causal = coin(&d),
                          .drops = coin(&d),
                          .tied = coin(&d) && (c.s.stages == 1 || c.s.zero.stage < 2)};
    return c;
}

static const hp_program *lower(hp_arena *arena, const draw *c) {
    const hp_graph *g = hp_graph_train_in(arena, token_stack_build(arena, &c->net), c->s.prec);
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = c->dtype, .batch = c->s.dp * c->s.micro * c->samples};
    if (hp_lower(arena, hp_strategy_graph(arena, g, &c->s), &c->s, &o, &p, &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

/* --- the closed forms: all ranks together, in a step --- */

/* In units of (n-1) m bytes: all-reduces, scatters and gathers of a step, and those of a micro-batch. */
static const struct {
    int reduce, scatter, scatter_each, gather, gather_each;
} shared[] = {{.reduce = 2},
              {.scatter = 1, .gather = 1},
              {.scatter_each = 1, .gather = 1},
              {.scatter_each = 1, .gather_each = 2}, /* forward and backward */
              {.scatter_each = 1, .gather = 1}};     /* kept after the first micro-batch */

static void add_parameters(const hp_strategy *s, int64_t m, int64_t n, int64_t want[HP_TRAFFICS]) {
    const int z = s->zero.stage + s->zero.keep;
    want[HP_TRAFFIC_ALLREDUCE] += shared[z].reduce * (n - 1) * m;
    want[HP_TRAFFIC_REDUCE_SCATTER] += (shared[z].scatter + shared[z].scatter_each * s->micro) * (n - 1) * m;
    want[HP_TRAFFIC_ALL_GATHER] += (shared[z].gather + shared[z].gather_each * s->micro) * (n - 1) * m;
}

static int64_t of_layer(const draw *c, int64_t u) {
    const int64_t t = c->s.tp, p = c->s.seq.ranks, tensor = 8 * (t - 1) * u, a2a = 8 * (p - 1) * u / p,
                  ring = (c->net.causal ? 2 : 4) * (p - 1) * u,
                  all = tensor + (c->s.seq.by == (int)HP_SEQ_A2A ? a2a : ring);
    return c->s.recompute ? all * 3 / 2 : all;
}

/* A table whose rows ranks share: its summands are scattered and their gradients gathered; a tied head
 * gathers its input. The head's input is kept if it is a unit's input. */
static int64_t of_vocabulary(const draw *c, int64_t u) {
    const bool again = c->s.recompute != HP_RECOMPUTE_NONE, alone = c->s.recompute == HP_RECOMPUTE_BOUNDARY;
    const int table = again ? 3 : 2, head = !c->net.tied ? 0 : again && !alone ? 3 : 2;
    return (table + head) * (c->s.tp - 1) * u;
}

static void expect(const draw *c, int64_t want[HP_TRAFFICS]) {
    const token_stack *n = &c->net;
    const hp_strategy *s = &c->s;
    const int64_t real = c->dtype == HP_F64 ? 8 : 4, e = s->prec == (int)HP_PREC_BF16 ? 2 : real,
                  h = n->width, f = n->inner, layers = n->layers, holders = (int64_t)s->seq.ranks * s->dp,
                  passes = (int64_t)s->dp * s->micro, u = c->samples * n->tokens * h * e;
    /* matrices and biases whose channels tensor parallelism splits; layers that work on tokens hold their
     * parameters whole */
    const int64_t split = layers * (4 * h * h + 3 * h + 2 * h * f + f),
                  whole = layers * 6 * h + (n->tied ? 0 : (h + 1) * n->logits);
    const int64_t tables = n->tied && s->stages > 1 ? 2 : 1; /* the first stage's, and the last one's */
    want[HP_TRAFFIC_HALO] = (of_layer(c, u) * layers + of_vocabulary(c, u)) * passes;
    if (n->tied) /* for each row of logits, every rank's sums over its classes, in float64 */
        want[HP_TRAFFIC_STATS] = 2 * (s->tp - 1) * s->tp * c->samples * n->tokens * HP_MAXSUMS * 8 * passes;
    want[HP_TRAFFIC_STAGE] = 2 * u * (s->stages - 1) * passes;
    add_parameters(s, split * real, holders, want);
    add_parameters(s, n->ids * h * real, tables * holders, want);
    add_parameters(s, whole * real, holders * s->tp, want);
    want[HP_TRAFFIC_ALLREDUCE] += 2 * (holders * s->tp * s->stages - 1) * HP_METRICS * 8; /* the loss */
}

/* --- */

static void check_kinds(const draw *c, uint64_t seed, const hp_program *p, const int64_t want[HP_TRAFFICS]) {
    hp_sent sent[HP_TRAFFICS];
    char text[HP_STRATEGY_TEXT];
    int64_t all = 0;
    hp_program_sends(p, sent);
    for (int k = 0; k < HP_TRAFFICS; k++) {
        all += want[k];
        if (llround(sent[k].bytes) != want[k])
            fail_msg(
                "seed %llu, %s, %d layers of %d and %d channels, %d heads, %d tokens%s: %s of %.0f bytes, "
                "not %lld",
                (unsigned long long)seed, hp_strategy_text(&c->s, text), c->net.layers, c->net.width,
                c->net.inner, c->net.heads, c->net.tokens, c->net.causal ? ", causal" : "",
                hp_traffic_names[k], sent[k].bytes, (long long)want[k]);
    }
    assert_int_equal(hp_program_sent_bytes(p), all);
}

/* Within a stage, all ranks send equally much, except in causal rings, where earlier tokens' keys go to more
 * ranks. */
static void check_ranks(const draw *c, const hp_program *p, const int64_t want[HP_TRAFFICS]) {
    const bool causal_ring = c->s.seq.ranks > 1 && c->net.causal && c->s.seq.by == (int)HP_SEQ_RING;
    for (int i = 0; i < p->n_role && c->s.stages == 1; i++) {
        hp_sent sent[HP_TRAFFICS] = {{0}};
        hp_role_sends(p, &p->role[i], sent);
        for (int k = causal_ring ? HP_TRAFFIC_STAGE : HP_TRAFFIC_HALO; k < HP_TRAFFICS; k++)
            assert_int_equal(llround(sent[k].bytes * hp_program_ranks(p)), want[k]);
    }
}

static void programs_send_what_the_formulas_say(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        const draw c = draw_case(seed);
        int64_t want[HP_TRAFFICS] = {0};
        hp_arena *arena = hp_arena_new();
        const hp_program *p = lower(arena, &c);
        expect(&c, want);
        check_kinds(&c, seed, p, want);
        check_ranks(&c, p, want);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_send_what_the_formulas_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
