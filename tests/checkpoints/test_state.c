/* test_state.c - over random networks and strategies every element of parameters and of the optimiser's state
 * is home on one rank, and every rank's pieces lie in its buffers, apart from each other. */
#include "checkpoints/checkpoint_state.h"

#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_RANKS = 12 };

typedef struct counts { /* per kind and parameter: how many homes each element has */
    unsigned char *home[HP_STATE_KINDS][256];
} counts;

static void check_piece(const hp_program *p, const hp_role *r, const hp_state_piece *s, unsigned char *used) {
    const int64_t each = hp_dtype_bytes((hp_dtype)p->dtype), end = (s->at + s->count) * each;
    assert_true(s->at >= 0 && s->count > 0 && end <= r->buffer[s->buffer].bytes);
    for (int64_t i = s->at * each; i < end; i++) assert_int_equal(used[r->buffer[s->buffer].offset + i]++, 0);
}

static void count_rank(hp_arena *arena, const hp_program *p, const hp_graph *g, int rank, counts *c) {
    int n;
    const int role = rank % p->n_role;
    const hp_state_piece *s = hp_state_pieces(arena, p, g, role, rank / p->n_role, &n);
    unsigned char *used = HP_NEW(arena, unsigned char, p->role[role].arena_bytes);
    for (int i = 0; i < n; i++) {
        check_piece(p, &p->role[role], &s[i], used);
        for (int64_t e = s[i].first; s[i].home && s[i].kind != HP_STATE_CARRY && e < s[i].first + s[i].count;
             e++)
            c->home[s[i].kind][s[i].param][e]++;
    }
}

/* Statistics may be shared out: there is at least one home. */
static void assert_homes(const hp_graph *g, const counts *c, const char *text) {
    for (int i = 0; i < g->n_param; i++)
        for (int kind = 0; kind < HP_STATE_KINDS; kind++) {
            const hp_optimizer_info *o = hp_optimizer_of(g);
            const int state = kind - HP_STATE_OPTIMIZER - (int)o->first;
            const bool trained = hp_param_trained(&g->param[i]),
                       wanted = kind == HP_STATE_STATISTICS ? !trained
                                : kind == HP_STATE_WEIGHTS  ? trained
                                                            : trained && state >= 0 && state < o->states;
            for (int64_t e = 0; e < g->param[i].count; e++) {
                const int n = c->home[kind][i][e];
                if (n != wanted && !(wanted && !trained && n > 0))
                    fail_msg("%s: element %lld of the %s of %s is home on %d ranks", text, (long long)e,
                             hp_state_names[kind], g->param[i].name, n);
            }
        }
}

static void every_element_is_home_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(150); seed++) {
        dice d = {seed, 9300};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, roll(&d, 3, 6)));
        hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 6), MAX_RANKS, DRAW_ALL);
        char text[HP_STRATEGY_TEXT];
        hp_program *p;
        hp_error err = {.code = HP_OK, .text = ""};
        s.fuse_bytes = 4096;
        if (s.zero.stage == 0 && s.by[HP_AXIS_N].n == 0 && coin(&d)) s.sync.how = HP_SYNC_PS;
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 12), .place = true};
        if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
        counts *c = HP_NEW(arena, counts, 1);
        assert_true(g->n_param <= 256);
        for (int i = 0; i < g->n_param; i++)
            for (int k = 0; k < HP_STATE_KINDS; k++)
                c->home[k][i] = HP_NEW(arena, unsigned char, g->param[i].count);
        for (int r = 0; r < hp_program_ranks(p); r++) count_rank(arena, p, g, r, c);
        assert_homes(g, c, hp_strategy_text(&s, text));
        hp_arena_free(arena);
    }
}

/* No replica has more than its share and a parameter of each kind beyond it. */
static void replicas_divide_what_they_save(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(50); seed++) {
        dice d = {seed, 9301};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, roll(&d, 3, 6)));
        const int dp = roll(&d, 2, 4);
        hp_strategy s = hp_strategy_default();
        hp_program *p;
        hp_error err = {.code = HP_OK, .text = ""};
        int64_t largest = 0;
        char text[32];
        snprintf(text, sizeof text, "dp=%d", dp);
        assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 12), .place = true};
        if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
        for (int i = 0; i < g->n_param; i++)
            if (g->param[i].count > largest) largest = g->param[i].count;
        const int kinds = 1 + (int)hp_optimizer_of(g)->states;
        const int64_t share = p->role[0].trained_elems / dp + 1; /* with padding between parameters */
        for (int r = 0; r < dp; r++) {
            int n;
            int64_t own = 0;
            const hp_state_piece *piece = hp_state_pieces(arena, p, g, 0, r, &n);
            for (int i = 0; i < n; i++)
                if (piece[i].home &&
                    (piece[i].kind == HP_STATE_WEIGHTS || piece[i].kind >= HP_STATE_OPTIMIZER))
                    own += piece[i].count;
            if (own > kinds * (share + largest))
                fail_msg("dp=%d: replica %d saves %lld of %lld elements", dp, r, (long long)own,
                         (long long)(kinds * p->role[0].trained_elems));
        }
        hp_arena_free(arena);
    }
}

static void names_are_read_as_they_are_written(void **state) {
    (void)state;
    hp_param param[] = {{.name = "a/7/b"}};
    const hp_graph g = {.n_param = 1, .param = param};
    hp_arena *arena = hp_arena_new();
    for (int32_t kind = 0; kind < HP_STATE_KINDS; kind++) {
        const hp_state_piece s = {.kind = kind, .first = kind == HP_STATE_CARRY ? 0 : 1234567890123};
        int32_t kind_read;
        int64_t first;
        const char *name = hp_state_parse(hp_state_name(arena, &g, &s), &kind_read, &first);
        assert_string_equal(name, kind == HP_STATE_CARRY ? "0" : "a/7/b");
        assert_int_equal(kind_read, kind);
        assert_int_equal(first, s.first);
    }
    static const char *const WRONG[] = {"",
                                        "weights",
                                        "weights/",
                                        "weights//x",
                                        "weights/-1/x",
                                        "weights/1",
                                        "other/1/x",
                                        "weights/9999999999999999999/x"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        int32_t kind;
        int64_t first;
        assert_null(hp_state_parse(WRONG[i], &kind, &first));
    }
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_home_once),
        cmocka_unit_test(replicas_divide_what_they_save),
        cmocka_unit_test(names_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
