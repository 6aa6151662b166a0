/* axis_deep.c - `deep`: units that strips of the image pass through. */
#include "plan/strategy/axis_kinds.h"

#include <string.h>

/* 0: as many as the first stage has. */
static hp_status parse_deep(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    if (strcmp(value, "0") != 0) return hp_degree_parse(a, value, s, err);
    s->strips.deep = 0;
    return HP_OK;
}

static void settle(hp_strategy *s) {
    if (s->strips.n == 1) s->strips.deep = 0;
}

const hp_axis hp_axis_deep = {.name = "deep",
                              .example = "deep=6",
                              .usual = "0",
                              .means = "units that the strips pass through; 0: all of the first stage",
                              .at = offsetof(hp_strategy, strips.deep),
                              .parse = parse_deep,
                              .print = hp_degree_print,
                              .omits = hp_field_is_zero,
                              .settle = settle};
