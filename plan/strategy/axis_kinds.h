/* axis_kinds.h - kinds of values that several keys have: degrees, words. */
#ifndef HP_AXIS_KINDS_H
#define HP_AXIS_KINDS_H

#include "plan/strategy/strategy_axis.h"

hp_status hp_degree_parse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err);
void hp_degree_print(const hp_axis *a, const hp_strategy *s, char *value);
bool hp_degree_is_one(const hp_axis *a, const hp_strategy *s);
void hp_degree_reset(const hp_axis *a, hp_strategy *s);

hp_status hp_word_parse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err);
void hp_word_print(const hp_axis *a, const hp_strategy *s, char *value);
int32_t hp_field_value(const hp_axis *a, const hp_strategy *s);
bool hp_field_is_zero(const hp_axis *a, const hp_strategy *s);
/* The value is what a cut depends on. */
int hp_field_cut_key(const hp_axis *a, const hp_strategy *s, int32_t *word);

/* A number from 1 on, 1 where it is not written. */
#define HP_DEGREE(member)                                                                                    \
    .at = offsetof(hp_strategy, member), .parse = hp_degree_parse, .print = hp_degree_print,                 \
    .omits = hp_degree_is_one, .reset = hp_degree_reset
/* One of a list, the first where it is not written. */
#define HP_WORD(member, list)                                                                                \
    .at = offsetof(hp_strategy, member), .words = (list), .parse = hp_word_parse, .print = hp_word_print,    \
    .omits = hp_field_is_zero

#endif
