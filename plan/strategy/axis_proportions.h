/* axis_proportions.h - what `share`, `rows` and `cols` have in common: weights of replicas, or of rows or
 * columns of tiles, written 3:1 or `even`. */
#ifndef HP_AXIS_PROPORTIONS_H
#define HP_AXIS_PROPORTIONS_H

#include "plan/strategy/strategy_axis.h"

hp_status hp_proportions_parse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err);
void hp_proportions_print(const hp_axis *a, const hp_strategy *s, char *value);
bool hp_proportions_are_even(const hp_axis *a, const hp_strategy *s);
int hp_proportions_cut_key(const hp_axis *a, const hp_strategy *s, int32_t *word);
#define HP_PROPORTIONS(axis)                                                                                 \
    .at = offsetof(hp_strategy, by[axis]), .parse = hp_proportions_parse, .print = hp_proportions_print,     \
    .omits = hp_proportions_are_even, .cut_key = hp_proportions_cut_key

/* Are there as many as an axis has replicas, rows or columns of tiles, or a divisor of those? *misfit, if
 * not NULL: the first spatial stage that they do not fit, -1 where none has several. */
bool hp_proportions_fit(const hp_strategy *s, int axis, int *misfit);
/* 4:2 is 2:1, where they fit. */
void hp_proportions_settle(hp_strategy *s, int axis);
/* Rows or columns: do they fit the tiles? */
bool hp_proportions_legal(const hp_strategy *s, int axis, const char *key, hp_reject *why);

#endif
