/* place.h - which rank sits where (machines/placement.h), as strategies write it: place=cyclic, place=0:2:1:3. */
#ifndef HP_PLACE_H
#define HP_PLACE_H

#include "plan/strategy/strategy.h"

/* Errors: HP_EUSAGE. */
hp_status hp_place_parse(const char *value, hp_strategy *s, hp_error *err);
/* `out` holds HP_STRATEGY_TEXT bytes. */
void hp_place_text(const hp_strategy *s, char *out);
/* Has every place its own seat? */
bool hp_place_is_plain(const hp_strategy *s);

#endif
