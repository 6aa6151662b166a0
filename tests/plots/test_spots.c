/* test_spots.c - numbers beside points lie on no point, on no axis and on no other number. */
#include "plots/spots.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { POINTS = 12, LABELS = 7 };

static int overlap(hp_spot a, hp_spot b, double width, double height) {
    return fabs(a.x - b.x) < width * (1 - 1e-9) && fabs(a.y - b.y) < height * (1 - 1e-9);
}

static void labels_are_free(const hp_spot *point, double width, double height) {
    hp_spot label[LABELS];
    hp_spot_labels(point, POINTS, LABELS, width, height, label);
    for (int k = 0; k < LABELS; k++) {
        assert_true(label[k].x >= width / 2 && label[k].y >= height / 2);
        for (int i = 0; i < POINTS; i++) assert_false(overlap(label[k], point[i], width, height));
        for (int i = 0; i < k; i++) assert_false(overlap(label[k], label[i], width, height));
        /* beside its point: within a few of its own sizes */
        assert_true(hypot(label[k].x - point[k].x, label[k].y - point[k].y) < 4 * (width + height));
    }
}

/* Doubling, as images/s of a sweep do: the lowest are closer than a label is high. */
static void a_column_of_points(void **state) {
    (void)state;
    hp_spot point[POINTS];
    for (int i = 0; i < POINTS; i++)
        point[i] = (hp_spot){i < LABELS ? 100 : 300, 300 / (double)(1 << i % LABELS)};
    labels_are_free(point, 16, 13);
}

static void points_apart(void **state) {
    (void)state;
    hp_spot point[POINTS];
    for (int i = 0; i < POINTS; i++) point[i] = (hp_spot){40 * i, 40 * i};
    labels_are_free(point, 16, 13);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_column_of_points), cmocka_unit_test(points_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
