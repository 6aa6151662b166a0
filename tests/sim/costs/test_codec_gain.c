/* test_codec_gain.c - where compression pays: two replicas with only gradient traffic, compared with the
 * closed form. */
#include "sim/costs/codec_gain.h"

#include "plan/lower/lower.h"
#include "networks/nets/nets.h"
#include "tests/support/sim/made_up_machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void break_even_is_bytes_saved_by_seconds_spent(void **state) {
    (void)state;
    const hp_codec_gain half = {.plain_bytes = 8e9, .coded_bytes = 4e9, .codec_s = 2},
                        none = {.plain_bytes = 4e9, .coded_bytes = 5e9, .codec_s = 2},
                        gift = {.plain_bytes = 8e9, .coded_bytes = 4e9};
    const double b = hp_codec_break_even_bytes_per_s(&half);
    assert_true(b == 2e9);
    assert_true(half.plain_bytes / b == half.coded_bytes / b + half.codec_s); /* the definition of
                                                                               * break-even */
    assert_true(hp_codec_break_even_bytes_per_s(&none) == 0);
    assert_true(isinf(hp_codec_break_even_bytes_per_s(&gift)));
}

static void gains_of(const char *text, hp_codec_gain *gain, int64_t *elems) {
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_program *p = NULL;
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    assert_int_equal(hp_net_build(arena, "cnn", 28, 28, 10, &g, &err), HP_OK);
    assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 24, .place = true};
    if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_machine m = local_like(8);
    hp_cost_table *t = NULL;
    assert_int_equal(hp_cost_load(arena, NULL, &m, &t, &err), HP_OK);
    hp_codec_gains(arena, p, g, t, &m, gain);
    *elems = p->role[0].trained_elems;
    hp_arena_free(arena);
}

/* With p members, a ring moves 2 (p-1)/p of the data, a gather (p-1) times a member's. */
static void bytes_are_those_of_the_collectives(void **state) {
    (void)state;
    hp_codec_gain gain[HP_TRAFFICS];
    int64_t n;
    gains_of("dp=3,fuse=100M,compress=allreduce:bf16", gain, &n);
    const hp_codec_gain *sums = &gain[HP_TRAFFIC_ALLREDUCE];
    assert_int_equal(sums->messages, 1);
    assert_true(fabs(sums->plain_bytes - 4.0 * (double)n * 4 / 3) < 1);
    assert_true(fabs(sums->coded_bytes - sums->plain_bytes / 2) < 1);
    assert_true(sums->codec_s > 0 && hp_codec_break_even_bytes_per_s(sums) > 0);
    gains_of("dp=3,fuse=100M,compress=allreduce:int8", gain, &n);
    assert_true(fabs(sums->coded_bytes - 2.0 * ((double)n + 4 * ceil((double)n / 256))) < 1);
    gains_of("dp=12,fuse=100M,compress=allreduce:int8", gain, &n);
    assert_true(hp_codec_break_even_bytes_per_s(sums) == 0);
    gains_of("dp=2", gain, &n);
    assert_true(!gain[HP_TRAFFIC_ALLREDUCE].codec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(break_even_is_bytes_saved_by_seconds_spent),
        cmocka_unit_test(bytes_are_those_of_the_collectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
