/* test_ahead.c - reading ahead: whatever was requested before, a room taken for a step holds that step; rooms
 * are filled one at a time, in the order of requests; errors reach the taker. */
#include "exec/interp/exec_ahead.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOMS = 6 };

typedef struct rooms {
    int32_t held[ROOMS]; /* step that each room was filled for */
    atomic_int inside, fills, order[4 * ROOMS];
    int slow_us;
} rooms;

static hp_status fill(void *self, int32_t item, int32_t iter, hp_error *err) {
    rooms *r = self;
    assert_int_equal(atomic_fetch_add(&r->inside, 1), 0);
    if (r->slow_us) usleep((useconds_t)r->slow_us);
    r->held[item] = iter;
    const int n = atomic_fetch_add(&r->fills, 1);
    if (n < 4 * ROOMS) atomic_store(&r->order[n], item);
    atomic_fetch_sub(&r->inside, 1);
    if (iter == 13) return hp_fail(err, HP_EDATA, "no image for step %d", iter);
    return HP_OK;
}

static hp_ahead *start(rooms *r) {
    hp_ahead *a;
    hp_error err;
    assert_int_equal(hp_ahead_start(ROOMS, fill, r, &a, &err), HP_OK);
    return a;
}

static void a_room_holds_the_step_it_is_taken_for(void **state) {
    (void)state;
    hp_error err;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rooms r = {.slow_us = seed % 3 ? 0 : 20};
        hp_ahead *a = start(&r);
        for (uint64_t i = 0; i < 300; i++) {
            const int32_t item = (int32_t)hp_rng_below(seed, 1, i, ROOMS),
                          iter = 20 + (int32_t)hp_rng_below(seed, 2, i, 3);
            if (hp_rng_below(seed, 3, i, 2)) {
                hp_ahead_ask(a, item, iter);
                continue;
            }
            assert_int_equal(hp_ahead_wait(a, item, iter, &err), HP_OK);
            assert_int_equal(r.held[item], iter);
        }
        hp_ahead_stop(a); /* also with requests still open */
    }
}

static void rooms_are_filled_before_they_are_taken_in_the_order_asked(void **state) {
    (void)state;
    static const int32_t order[ROOMS] = {3, 0, 5, 1, 4, 2};
    hp_error err;
    rooms r = {.slow_us = 100};
    hp_ahead *a = start(&r);
    for (int i = 0; i < ROOMS; i++) hp_ahead_ask(a, order[i], 7);
    while (atomic_load(&r.fills) < ROOMS) usleep(100); /* none is taken */
    for (int i = 0; i < ROOMS; i++) assert_int_equal(atomic_load(&r.order[i]), order[i]);
    for (int i = 0; i < ROOMS; i++) assert_int_equal(hp_ahead_wait(a, i, 7, &err), HP_OK);
    assert_int_equal(atomic_load(&r.fills), ROOMS);
    hp_ahead_stop(a);
}

static void errors_reach_who_takes(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    rooms r = {0};
    hp_ahead *a = start(&r);
    hp_ahead_ask(a, 2, 13);
    assert_int_equal(hp_ahead_wait(a, 2, 13, &err), HP_EDATA);
    assert_string_equal(err.text, "no image for step 13");
    hp_ahead_ask(a, 2, 13); /* this step never comes: its error is not reported */
    assert_int_equal(hp_ahead_wait(a, 2, 14, &err), HP_OK);
    hp_ahead_stop(a);
    hp_ahead_stop(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_room_holds_the_step_it_is_taken_for),
        cmocka_unit_test(rooms_are_filled_before_they_are_taken_in_the_order_asked),
        cmocka_unit_test(errors_reach_who_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
