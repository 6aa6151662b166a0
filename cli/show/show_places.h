/* show_places.h - where two runs were made: notes that times of different machines are not comparable. */
#ifndef HP_SHOW_PLACES_H
#define HP_SHOW_PLACES_H

#include "cli/cli.h"
#include "traces/query.h"

/* A note on stderr where both are measured, on different hosts or processors; `a` and `b` name the sides.
 * Returns whether there was one. */
bool places_note(const hp_trace *a, const char *name_a, const hp_trace *b, const char *name_b);
/* {"host": …, "processor": …}; null where nothing was measured. */
json_t *places_json(const hp_trace *t);

#endif
