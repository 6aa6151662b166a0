/* test_runs.c - the runs of a part of two boxes are its elements, each once, at their places in both
 * buffers. */
#include "base/rng.h"
#include "plan/program/runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int below(uint64_t round, uint64_t *c, int n) {
    return (int)hp_rng_below(43, round, (*c)++, (uint64_t)n);
}

/* A box around the part, often equal along an axis. */
static hp_box around(uint64_t round, uint64_t *c, const hp_box *part) {
    hp_box b = *part;
    for (int a = 0; a < HP_AXES; a++) {
        b.lo[a] -= below(round, c, 4) == 0 ? below(round, c, 3) : 0;
        b.hi[a] += below(round, c, 4) == 0 ? below(round, c, 3) : 0;
    }
    return b;
}

static int64_t place(const hp_box *box, const int32_t at[HP_AXES]) {
    int64_t e = 0;
    for (int a = 0; a < HP_AXES; a++) e = e * hp_box_len(box, a) + at[a] - box->lo[a];
    return e;
}

/* Element number i over all runs in order. */
static void in_runs(const hp_runs *r, int64_t i, int64_t *to, int64_t *from) {
    *to = r->to + i % r->run;
    *from = r->from + i % r->run;
    i /= r->run;
    for (int a = HP_AXES - 2; a >= 0; a--) {
        *to += i % r->n[a] * r->to_stride[a];
        *from += i % r->n[a] * r->from_stride[a];
        i /= r->n[a];
    }
}

static void every_element_once_and_in_order(void **state) {
    (void)state;
    int longest = 0, pixels = 0;
    for (uint64_t round = 0; round < 2000; round++) {
        uint64_t c = 0;
        hp_box part;
        for (int a = 0; a < HP_AXES; a++) {
            part.lo[a] = below(round, &c, 4);
            part.hi[a] = part.lo[a] + 1 + below(round, &c, 4);
        }
        const hp_box to = around(round, &c, &part), from = around(round, &c, &part);
        const hp_runs r = hp_runs_between(&to, &from, &part);
        assert_int_equal(r.run * r.n[0] * r.n[1] * r.n[2], hp_box_elems(&part));
        int64_t i = 0;
        int32_t at[HP_AXES];
        for (at[0] = part.lo[0]; at[0] < part.hi[0]; at[0]++)
            for (at[1] = part.lo[1]; at[1] < part.hi[1]; at[1]++)
                for (at[2] = part.lo[2]; at[2] < part.hi[2]; at[2]++)
                    for (at[3] = part.lo[3]; at[3] < part.hi[3]; at[3]++, i++) {
                        int64_t x, y;
                        in_runs(&r, i, &x, &y);
                        assert_int_equal(x, place(&to, at));
                        assert_int_equal(y, place(&from, at));
                    }
        longest += r.run == hp_box_elems(&part);
        pixels += r.run == hp_box_len(&part, HP_AXIS_C) && r.run < hp_box_elems(&part);
    }
    assert_true(longest > 100 && pixels > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_element_once_and_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
