/* template.h - a strategy with one number left open: "dp=*,stages=2" is as wide as the devices allow. */
#ifndef HP_TEMPLATE_H
#define HP_TEMPLATE_H

#include "plan/strategy/strategy.h"

/* The star may stand for any number that changes how many devices a strategy occupies: a degree, stages, a
 * side of a grid. A plain strategy is a template without a star. */
bool hp_template_has_star(const char *text);

/* Does it name strategies? Errors: HP_EUSAGE (two stars, or one that changes no number of devices). */
hp_status hp_template_check(const char *text, hp_error *err);

/* The strategy with a star of 1. */
hp_status hp_template_smallest(const char *text, hp_strategy *s, hp_error *err);

typedef struct hp_filled {
    bool exact; /* s occupies all devices */
    hp_strategy
        s;    /* else the largest that occupies fewer; none, with star 0, where the smallest is too large */
    int star; /* what stands in its place */
    hp_strategy above; /* not exact: the smallest that occupies more */
    bool has_above;
} hp_filled;

/* Fills a checked template for that many devices. Without a star: the strategy itself, exact if it occupies
 * as many. The number of devices grows with the star, so bisection finds it. Errors: HP_EUSAGE. */
hp_status hp_template_fill(const char *text, int devices, hp_filled *out, hp_error *err);

#endif
