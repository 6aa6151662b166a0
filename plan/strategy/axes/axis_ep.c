/* axis_ep.c - `ep`: experts on ranks of their own, which this version does not have. */
#include "plan/strategy/strategy_axis.h"

#include <string.h>

static const char ONLY[] = "1"; /* the value that there is */

static hp_status parse_later(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)s;
    if (strcmp(value, ONLY) == 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "strategy: %s=%.60s is not in this version, which has %s=%s only",
                   a->name, value, a->name, ONLY);
}

static void print_later(const hp_axis *a, const hp_strategy *s, char *value) {
    (void)a, (void)s;
    strcpy(value, ONLY);
}

static bool is_only(const hp_axis *a, const hp_strategy *s) {
    (void)a, (void)s;
    return true;
}

const hp_axis hp_axis_ep = {.name = "ep",
                            .example = "ep=2",
                            .usual = "1",
                            .means = "experts on ranks of their own (planned)",
                            .parse = parse_later,
                            .print = print_later,
                            .omits = is_only};
