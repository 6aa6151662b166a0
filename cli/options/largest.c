/* largest.c - gallops up from a size that fits, then bisects between it and one that does not. */
#include "cli/options/largest.h"

enum { ROUNDEST = 64 };

/* *n fits; raises it to a size whose next one does not. */
static hp_status climb(largest_test *test, void *self, int64_t most, int64_t *n, hp_error *err) {
    int64_t stride = 1, over = most + 1;
    bool yes = true;
    while (yes && *n + stride <= most) {
        HP_TRY(test(self, *n + stride, &yes, err));
        if (yes) {
            *n += stride;
            stride *= 2;
        } else {
            over = *n + stride;
        }
    }
    while (over - *n > 1) {
        const int64_t middle = *n + (over - *n) / 2;
        HP_TRY(test(self, middle, &yes, err));
        if (yes)
            *n = middle;
        else
            over = middle;
    }
    return HP_OK;
}

/* Raises *n to the first of the rounder numbers above it that fits. */
static hp_status step_over(largest_test *test, void *self, int64_t most, int64_t *n, bool *yes,
                           hp_error *err) {
    *yes = false;
    int64_t asked = *n + 1;
    for (int64_t round = 2; round <= ROUNDEST; round *= 2) {
        const int64_t next = (*n / round + 1) * round;
        if (next == asked || next > most) continue;
        asked = next;
        HP_TRY(test(self, next, yes, err));
        if (!*yes) continue;
        *n = next;
        return HP_OK;
    }
    return HP_OK;
}

hp_status largest_find(largest_test *test, void *self, int64_t most, int64_t *n, hp_error *err) {
    bool yes = false;
    *n = 0;
    HP_TRY(test(self, 1, &yes, err));
    if (yes) *n = 1;
    while (yes) {
        HP_TRY(climb(test, self, most, n, err));
        HP_TRY(step_over(test, self, most, n, &yes, err));
    }
    return HP_OK;
}
