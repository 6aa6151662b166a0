/* grids.h - the tiles of spatial stages, as strategies write them: sp=4x1:2x1. */
#ifndef HP_GRIDS_H
#define HP_GRIDS_H

#include "plan/strategy/strategy.h"

/* Errors: HP_EUSAGE. */
hp_status hp_grids_parse(const char *value, hp_strategy *s, hp_error *err);
/* After what `out` holds; it has HP_STRATEGY_TEXT bytes. */
void hp_grids_text(const hp_strategy *s, char *out);

#endif
