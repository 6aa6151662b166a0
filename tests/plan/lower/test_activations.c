/* test_activations.c - what a transformer layer keeps from its forward to its backward pass, tensor by
 * tensor, compared with Korthikanti et al. ("Reducing Activation Recomputation in Large Transformer Models",
 * 2022).
 *
 * They count, for b samples of s tokens and h channels in 16 bits, s b h (34 + 5 a s / h) bytes on one rank,
 * (10 + 24/t + ...) with tensor parallelism, and (34/t + ...) with sequence parallelism in addition. Of the
 * 34, 11 are in attention, 19 in the perceptron, 4 in the norms. Attention here keeps no map of s x s, so the
 * term in a s / h does not arise; nor do dropout masks. */
#include "plan/lower/lower.h"
#include "plan/strategy/sequence.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/token_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* In units of s b h bytes. */
typedef struct kept_row {
    const char *layer; /* the layer that outputs the tensor */
    int whole, split;  /* each of t ranks has whole + split / t */
    int paper;         /* bytes on one rank; with sequence parallelism, each has 1/t of it */
} kept_row;

static const kept_row rows[] = {
    {"layer0.add2", 0, 2, 2}, /* read by norm1 */
    {"norm1", 2, 0, 2},       /* gathered for queries, keys and values, and kept so */
    {"q", 0, 2, 2},           {"k", 0, 2, 2},
    {"v", 0, 2, 2},           {"attention", 0, 2, 2}, /* by the output projection */
    {"drop1", 0, 0, 1},                               /* its mask, which here follows from the seed */
    {"add1", 0, 2, 2},                                /* by norm2 */
    {"norm2", 2, 0, 2},       {"up", 0, 8, 8},
    {"act", 0, 8, 8},         {"drop2", 0, 0, 1},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const hp_graph *made(hp_arena *arena, const token_stack *n, const hp_strategy *s) {
    return hp_strategy_graph(arena, hp_graph_train_in(arena, token_stack_build(arena, n), HP_PREC_BF16), s);
}

static const hp_program *lowered(hp_arena *arena, const hp_graph *g, const hp_strategy *s, int samples) {
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = samples};
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    if (hp_lower(arena, g, s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
    return p;
}

/* Row of a tensor of layer1, or of its input from the layer before. -1: none. */
static int row_of(const char *layer) {
    const char *name = strncmp(layer, "layer1.", 7) == 0 ? layer + 7 : layer;
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].layer, name) == 0) return i;
    return -1;
}

static bool is_of_layer1(const char *layer) {
    return strcmp(layer, "layer0.add2") == 0 ||
           (strncmp(layer, "layer1.", 7) == 0 && strcmp(layer, "layer1.add2") != 0);
}

static int first_backward(const hp_role *r) {
    int t = 0;
    while (r->task[t].op != HP_TASK_BWD && r->task[t].op != HP_TASK_BWDW) t++;
    return t;
}

/* Adds maps (including their parts in transit) and saved values that are alive when the backward pass
 * begins. */
static void add_kept(const hp_graph *g, const hp_role *r, int64_t map[ROWS], int64_t *saved) {
    const int turn = first_backward(r);
    for (int i = HP_BUF_FIXED; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        if (b->first >= turn || b->last < turn || b->what < 0 || b->micro < 0) continue;
        const bool saves = b->kind == HP_BUF_SAVE;
        const char *layer = g->layer[saves ? b->what : g->tensor[b->what].producer].name;
        if (!is_of_layer1(layer)) continue;
        if (saves) {
            *saved += b->bytes;
            continue;
        }
        const int row = row_of(layer);
        if (row < 0) fail_msg("%s is kept, too: %lld bytes", layer, (long long)b->bytes);
        map[row] += b->bytes;
    }
}

typedef struct drawn_case {
    token_stack net;
    hp_strategy s;
    int samples;
} drawn_case;

static drawn_case draw_case(dice *d, hp_recompute recompute) {
    drawn_case c = {.s = hp_strategy_default(), .samples = roll(d, 1, 3)};
    c.s.tp = roll(d, 1, 4);
    c.s.prec = HP_PREC_BF16;
    c.s.recompute = recompute;
    const int heads = c.s.tp * roll(d, 1, 2), width = heads * 8 * roll(d, 1, 3);
    c.net = (token_stack){.layers = 3,
                          .heads = heads,
                          .tokens = c.s.tp * roll(d, 1, 8),
                          .ids = 10,
                          .logits = 16,
                          .width = width,
                          .inner = 4 * width,
                          .causal = coin(d),
                          .drops = coin(d)};
    return c;
}

/* `table` false: nothing except the layer's input. */
static void check_roles(const drawn_case *c, bool table, uint64_t seed) {
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = made(arena, &c->net, &c->s);
    const hp_program *p = lowered(arena, g, &c->s, c->samples);
    const int64_t bs = (int64_t)c->samples * c->net.tokens, sbh = bs * c->net.width;
    for (int i = 0; i < p->n_role; i++) {
        int64_t map[ROWS] = {0}, saved = 0;
        add_kept(g, &p->role[i], map, &saved);
        for (int k = 0; k < ROWS; k++) {
            const int64_t want = table || k == 0 ? rows[k].whole * sbh + rows[k].split * sbh / c->s.tp : 0;
            if (map[k] != want)
                fail_msg("seed %llu, tp=%d: %s keeps %lld bytes, not %lld", (unsigned long long)seed, c->s.tp,
                         rows[k].layer, (long long)map[k], (long long)want);
        }
        /* the logarithm of the sum per query and head, in float32; norms recompute their statistics */
        assert_int_equal(saved, table ? 4 * bs * c->net.heads / c->s.tp : 0);
    }
    hp_arena_free(arena);
}

static void a_layer_keeps_what_the_table_says(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 8400};
        const drawn_case c = draw_case(&d, HP_RECOMPUTE_NONE);
        check_roles(&c, true, seed);
    }
}

/* Each unit is a layer: 2 s b h / t, compared with 2 s b h in the paper. */
static void recomputation_keeps_the_input_of_a_layer(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 8500};
        const drawn_case c = draw_case(&d, HP_RECOMPUTE_BOUNDARY);
        check_roles(&c, false, seed);
    }
}

/* 4 + 28/t here, 32 of which are the paper's 34 without two masks. */
static void the_table_adds_up(void **state) {
    (void)state;
    int whole = 0, split = 0, paper = 0, masks = 0;
    for (int k = 0; k < ROWS; k++) {
        whole += rows[k].whole;
        split += rows[k].split;
        paper += rows[k].paper;
        masks += strncmp(rows[k].layer, "drop", 4) == 0 ? rows[k].paper : 0;
    }
    assert_int_equal(paper, 34);
    assert_int_equal(whole, 4);
    assert_int_equal(split, 28);
    assert_int_equal(whole + split, paper - masks);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_layer_keeps_what_the_table_says),
                                       cmocka_unit_test(recomputation_keeps_the_input_of_a_layer),
                                       cmocka_unit_test(the_table_adds_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
